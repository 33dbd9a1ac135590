"""The fence in the shim is the rule of the core, which the shim cannot import."""

from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.cluster.fencing import Fence as Rule
from lifefold.interpreters.processes.shim.fence import Fence

TIMES_MS = st.integers(0, 100)


@given(TIMES_MS, st.lists(st.tuples(st.booleans(), TIMES_MS), max_size=30))
def test_the_shim_keeps_the_rule_of_the_core(first_ms: int, events: list[tuple[bool, int]]) -> None:
    """After any acknowledgements and looks at the clock, both fences have passed, or neither has."""
    rule, fence = Rule(first_ms), Fence(first_ms, grace_ms=1)
    for is_acknowledgement, at_ms in events:
        if is_acknowledgement:
            rule = rule.moved(at_ms)
            fence.move(at_ms, 1)
        else:
            had_passed, rule = rule.has_passed, rule.seen_at(at_ms)
            assert fence.passes(at_ms) == (rule.has_passed and not had_passed)
        assert fence.is_ahead is not rule.has_passed
        assert fence.until_boot_ms == rule.until_ms


@given(TIMES_MS, TIMES_MS, TIMES_MS)
def test_a_session_is_killed_by_the_clock_also_after_a_freeze(until_ms: int, grace_ms: int, late_ms: int) -> None:
    """A machine that goes on late has no grace left: another host may have the session."""
    fence = Fence(until_ms, grace_ms)
    assert fence.passes(until_ms + late_ms)
    assert fence.grace_left_ms(until_ms + late_ms) == max(0, grace_ms - late_ms)


def test_a_session_without_a_fence_gets_one_later() -> None:
    """A host may fence a session that it has adopted."""
    fence = Fence(None, 0)
    before = fence.is_ahead, fence.passes(10**9)
    fence.move(5, 1)
    after = fence.is_ahead, fence.passes(5), fence.passes(6)
    assert (before, after) == ((False, False), (True, True, False))
    assert Fence(None, 1).grace_left_ms(0) == 0
