"""Aborts: their reach under each policy, in families of any shape."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.policy.abort import (
    AbortPolicy,
    AbortScope,
    Target,
    affected,
    children,
    descendants,
    escalated,
    siblings,
)
from lifefold.core.policy.reasons import AbortReason

FAMILY: Final = {"a": "root", "b": "root", "c": "root", "a1": "a", "b1": "b", "b2": "b", "b11": "b1", "x": "other"}
"""root has a, b and c; a has a1; b has b1, which has b11, and b2. x is of another family."""

TOOL, SIBLING, SESSION = AbortScope
STRICT: Final = AbortPolicy()
LOOSE: Final = AbortPolicy(tool_to_sibling=True, sibling_to_session=True)


def names(targets: tuple[Target, ...]) -> str:
    """Return the reached sessions, sorted."""
    return " ".join(sorted(target.session for target in targets))


def test_the_abort_of_a_tool_reaches_no_session() -> None:
    """The session goes on."""
    assert affected(FAMILY, "a", TOOL) == ()


def test_siblings_are_taken_along_with_all_that_is_below_them() -> None:
    """Not the session itself, not the sessions below it, not the parent; no session twice (E36)."""
    assert names(affected(FAMILY, "a", SIBLING)) == "b b1 b11 b2 c"
    assert names(affected(FAMILY, "b1", SIBLING)) == "b2"


def test_the_nearest_sessions_come_first_and_among_them_the_first_spawned() -> None:
    """The order is the family's own, the same in every process."""
    assert children(FAMILY, "root") == ("a", "b", "c")
    assert [target.session for target in affected(FAMILY, "root", SESSION)] == "root a b c a1 b1 b2 b11".split()
    later = {"z": "root", **FAMILY}
    assert [target.session for target in affected(later, "a", SIBLING)] == "z b c b1 b2 b11".split()


def test_a_session_is_taken_along_with_all_that_is_below_it() -> None:
    """And first of all itself, with the cause; children are cascaded to (tomcounsell/ai#1113, E36)."""
    found = affected(FAMILY, "b", SESSION, STRICT, AbortReason.TIMEOUT)
    assert found[0] == Target("b", AbortReason.TIMEOUT)
    assert names(found) == "b b1 b11 b2"
    assert {target.abort_reason for target in found[1:]} == {AbortReason.PARENT_ABORTED}
    assert found[-1].session == "b11"


def test_why_a_sibling_ends_is_not_why_its_children_do() -> None:
    """Siblings are aborted as such, their descendants for their parents' sake."""
    why = {target.session: target.abort_reason for target in affected(FAMILY, "a", SIBLING)}
    assert why["b"] is why["c"] is AbortReason.SIBLING_ABORTED
    assert why["b1"] is why["b11"] is why["b2"] is AbortReason.PARENT_ABORTED


POLICIES: Final = {
    (TOOL, False, False): TOOL,
    (TOOL, True, False): SIBLING,
    (TOOL, False, True): TOOL,
    (TOOL, True, True): SESSION,
    (SIBLING, False, False): SIBLING,
    (SIBLING, True, False): SIBLING,
    (SIBLING, False, True): SESSION,
    (SIBLING, True, True): SESSION,
    **{(SESSION, tool, sibling): SESSION for tool in (False, True) for sibling in (False, True)},
}


@pytest.mark.parametrize(("given_", "becomes"), POLICIES.items(), ids=str)
def test_escalation_is_opt_in_and_goes_one_level_per_flag(
    given_: tuple[AbortScope, bool, bool], becomes: AbortScope
) -> None:
    """By default nothing escalates; ``sibling_to_session`` alone does nothing about tools (E37)."""
    scope, tool_to_sibling, sibling_to_session = given_
    policy = AbortPolicy(tool_to_sibling=tool_to_sibling, sibling_to_session=sibling_to_session)
    assert escalated(scope, policy) is becomes
    assert AbortPolicy() == AbortPolicy(tool_to_sibling=False, sibling_to_session=False)


def test_escalated_to_the_session_the_parent_goes_with_all_that_is_below_it() -> None:
    """The parent itself, the cause, and all other sessions below, once each (E36)."""
    for scope in (TOOL, SIBLING):
        assert names(affected(FAMILY, "b1", scope, LOOSE)) == "b b1 b11 b2"
        assert affected(FAMILY, "b1", scope, LOOSE)[0].session == "b"


def test_a_session_without_a_parent_has_no_siblings_and_nothing_to_escalate_to() -> None:
    """Whatever the policy; only what is aborted itself ends."""
    assert siblings(FAMILY, "root") == ()
    assert affected(FAMILY, "root", SIBLING, LOOSE) == ()
    assert affected(FAMILY, "stranger", SIBLING) == ()
    assert names(affected(FAMILY, "stranger", SESSION)) == "stranger"


def test_a_family_that_runs_in_a_circle_is_walked_once_round() -> None:
    """No session twice, and no session is below itself (E36)."""
    circle = {"a": "c", "b": "a", "c": "b", "s": "c", "self": "self"}
    assert sorted(descendants(circle, "a")) == ["b", "c", "s"]
    assert names(affected(circle, "a", SESSION)) == "a b c s"
    assert names(affected(circle, "a", SIBLING)) == "s"
    assert children(circle, "self") == descendants(circle, "self") == ()


NAMES: Final = st.sampled_from("abcdefgh")


@given(
    st.dictionaries(NAMES, NAMES),
    NAMES,
    st.sampled_from(AbortScope),
    st.builds(AbortPolicy, tool_to_sibling=st.booleans(), sibling_to_session=st.booleans()),
)
def test_in_any_family_no_session_is_named_twice_or_without_need(
    parents: dict[str, str],
    session: str,
    scope: AbortScope,
    policy: AbortPolicy,
) -> None:
    """Unique; no session outside of the parent's family; a sibling abort spares the session and its parent."""
    found = [target.session for target in affected(parents, session, scope, policy)]
    root = parents.get(session, session)
    assert len(found) == len(set(found))
    assert set(found) <= {session, root, *descendants(parents, session), *descendants(parents, root)}
    if escalated(scope, policy) is SIBLING:
        assert not {session, parents.get(session)} & set(found)
