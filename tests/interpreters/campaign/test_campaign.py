"""Many seeds are the same seeds, however many work at them."""

from lifefold.interpreters.campaign import Tally, campaign
from lifefold.interpreters.campaign.campaign import PORTION
from lifefold.interpreters.campaign.report import Report, conclusion
from lifefold.interpreters.search.rule_error import ANSWERED
from lifefold.interpreters.simulate.simulation import Found
from lifefold.interpreters.targets.simulation_targets import named


def figures(tally: Tally) -> tuple[object, ...]:
    return (
        tally.seeds,
        tally.inputs,
        tally.transitions,
        tally.crashes,
        tally.again,
        tally.virtual_ms,
        tally.struck,
        tally.seen,
        tally.used,
        tally.state_ms,
        tally.recovery_ms,
        tally.unclaimed_ms,
        tally.task_sessions,
        tally.task_ms,
        tally.points,
        tally.found,
    )


def test_a_campaign_ends_when_it_is_stopped() -> None:
    """With what was tried until then."""
    assert campaign("fleet-2x2", range(1_000), is_stopped=lambda: True).seeds == PORTION


def test_two_find_what_one_finds() -> None:
    """In whatever order they work."""
    seeds: list[int] = []
    one = campaign("fleet-2x3", range(24), tell=lambda tally: seeds.append(tally.seeds))
    assert seeds == [5, 10, 15, 20, 24]
    assert figures(campaign("fleet-2x3", range(24), jobs=2)) == figures(one)
    assert conclusion(one) == "no property is broken in 24 seeds"


def test_a_report_names_every_rule_error_that_there_was_no_time_to_shrink() -> None:
    """Two errors break one property, and each has the first seed that raised it."""
    raised = ("turn: KeyError: 'a'", "turn: ValueError: b", "turn: KeyError: 'c'")
    found = [(seed, Found("turn", ANSWERED, of, 0)) for seed, of in enumerate(raised)]
    words = [each.words() for each in Report(named("turn"), Tally(seeds=3, found=found)).shown_findings()]
    assert words == [f"turn: {ANSWERED}: broken by seed {seed}; it was not shrunk" for seed in (0, 1)]
