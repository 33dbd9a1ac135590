"""A check begins in any world of a system: it finds there what it finds from the opening, with traces from there."""

from typing import Any

import pytest

from lifefold import Envelope, always, check
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.kernel import Cause, Input, Property, Reaction, World, alone, replace
from lifefold.core.lifecycles import session
from lifefold.interpreters.check import Bounds, CrashBounds, Outcome
from lifefold.interpreters.replay import Replay
from oven import Lit, machine

_ONCE = AgentPlan("ann", session.Limits(max_consecutive_errors=1, max_total_errors=1))
OPENING = tuple(opening(Plan("small", (_ONCE,), (TaskPlan("T1", "do it", max_retries=0),)), 0))


def opened() -> World:
    """Return the fleet after its opening."""
    return Replay(system, OPENING).world


def burning() -> World:
    """Return an oven that bakes."""
    of, begins = alone(machine)
    world = World(of, now_ms=5_000_000)
    for envelope in (*begins.values(), Envelope("oven", Lit(), 0)):
        came = world.step(Input("oven", replace(envelope, at_ms=5_000_000)))
        assert isinstance(came, tuple)
        world = came[0]
    return world


def test_a_search_from_the_world_after_the_opening_finds_what_one_from_the_opening_finds() -> None:
    """States, steps and outcomes are equal."""
    world, bounds = opened(), Bounds(commands=0, depth=5)
    of_opening = check(system, opening=OPENING, bounds=bounds)
    of_world = check(system, begin=world, bounds=bounds)
    assert (of_world.states, of_world.steps, of_world.depth) == (of_opening.states, of_opening.steps, of_opening.depth)
    assert [each.outcome for each in of_world.verdicts] == [each.outcome for each in of_opening.verdicts]


def test_messages_in_flight_in_a_world_arrive_in_the_search() -> None:
    """The first level of the search has every possible input and every first message of a channel."""
    worlds = [came[0] for given in opened().choices() if isinstance(came := opened().step(given), tuple)]
    world = next(each for each in worlds if each.in_flight)
    taken = [given for given in world.choices() if isinstance(world.outcome(given), Reaction)]
    messages = [given for given in taken if given.cause is Cause.MESSAGE]
    assert messages
    assert check(system, begin=world, bounds=Bounds(depth=1)).steps >= len(taken)
    without = replace(world, in_flight={})
    assert (
        check(system, begin=without, bounds=Bounds(depth=1)).steps
        < check(system, begin=world, bounds=Bounds(depth=1)).steps
    )


def test_a_trace_from_a_world_begins_there() -> None:
    """The first step is one from the world, at the time of the world."""
    hot: Property[Any] = always("it stays hot", lambda of: of.state != "Cooling")
    report = check(machine, begin=burning(), properties=[hot], bounds=Bounds(depth=4))
    (verdict,) = (each for each in report.verdicts if each.name == "it stays hot")
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.trace is not None
    first, *_ = verdict.trace.steps
    assert first.reaction.transitions[0].before.state == "Baking"  # type: ignore[union-attr]
    assert not any("ms later" in line for line in verdict.trace.lines())


def test_a_world_is_no_beginning_for_crashes() -> None:
    """Crashes are searched from an opening alone."""
    with pytest.raises(ValueError, match="crashes are searched from an opening"):
        check(machine, begin=burning(), crashes=CrashBounds(1, 1, 1))
