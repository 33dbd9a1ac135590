"""Operator commands, false reports of activities, and fairness after healing: so that mistakes come to light."""

from typing import Any, Never

from lifefold.core.kernel import Event, Machine, Property, Record, Row, State, Step, leads_to, replace, row, weakly
from lifefold.core.lifecycles import runtime, session
from lifefold.interpreters.simulate import NONE, Environment, Faults, Limits, hours, simulate
from lifefold.interpreters.simulate.faults import NAMES
from lifefold.interpreters.targets.simulation_targets import ALONE, named


class Stair(State):
    FIRST = "First"
    SECOND = "Second"
    THIRD = "Third"
    TOP = "Top"


class Up(Event, frozen=True):
    pass


class Down(Event, frozen=True):
    pass


class Jumped(Event, frozen=True):
    pass


class Climber(Record, frozen=True):
    state: Stair = Stair.FIRST
    ups: int = 0


def count(climber: Climber, _event: Up) -> Step[Climber, Never]:
    return Step(replace(climber, ups=climber.ups + 1))


ROWS: tuple[Row[Climber], ...] = (
    row(Stair.FIRST, Up, Stair.SECOND, count),
    row(Stair.SECOND, Up, Stair.THIRD, count),
    row(Stair.THIRD, Up, Stair.TOP, count),
    row(Stair.THIRD, Down, Stair.SECOND),
    row(Stair.SECOND, Down, Stair.FIRST),
    row(Stair.FIRST, Jumped, Stair.TOP),
)


def climber(*properties: Property[Any]) -> Machine[Any]:
    return Machine("climber", Climber(), rows=ROWS, final={Stair.TOP}, properties=properties)


ONLY_OPERATORS = Faults({name: 0.0 for name in NAMES if name != "operators"}, swarm=False)


def test_operators_mostly_send_commands_that_are_accepted() -> None:
    """Most of what is said moves something."""
    run = simulate(climber(), seed=1, faults=ONLY_OPERATORS, environment=ALONE)
    assert run.struck["operators"] > run.counts.refused * 3


def test_a_run_without_possible_inputs_does_not_wait() -> None:
    """Who is at the top is asked nothing more: there are no more occasions."""
    run = simulate(climber(), seed=1, faults=ONLY_OPERATORS, environment=ALONE, limits=Limits(until_ms=hours(1_000)))
    assert run.entries[-1].envelope.event in (Up(), Jumped())
    assert run.struck["operators"] < 200


def test_in_some_runs_operators_never_send_one_command() -> None:
    """So that what is over with it goes on; in others they do."""
    every = [simulate(climber(), seed=seed, faults=ONLY_OPERATORS, environment=ALONE) for seed in range(40)]
    said = [{type(each.envelope.event) for each in run.entries} for run in every]
    assert any({Up, Down} <= each and Jumped not in each for each in said)
    assert any(Jumped in each for each in said)


def test_what_is_owed_does_not_come_by_what_another_property_relies_on() -> None:
    """One relies on jumps, which lead to the top; the other does not, and is found out by some seed."""
    jumping: Property[Any] = leads_to(
        "at last at the top", lambda _e: True, lambda e: e.state is Stair.TOP, given=weakly(Jumped, Up)
    )
    staying: Property[Any] = leads_to(
        "goes away", lambda _e: True, lambda e: e.state is not Stair.FIRST, given=weakly(Down)
    )
    assert all(simulate(climber(jumping), seed=seed, faults=NONE).ok for seed in range(20))
    found = {simulate(climber(jumping, staying), seed=seed, faults=NONE).found for seed in range(20)}
    assert {each.prop for each in found if each is not None} == {"goes away"}


def test_what_is_due_when_the_clock_is_right_again_comes() -> None:
    """A clock that was ahead has written the log ahead: after the healing all wait until that time."""
    target = named("runtime-sw4rm-agentpy")
    assert isinstance(target.subject, Machine)
    assert target.subject.initial != runtime.Runtime()
    for seed in range(40):
        faults = Faults({"early timer": 0.3, "operators": 0.6}, swarm=False)
        run = simulate(target.subject, seed=seed, faults=faults, environment=ALONE, limits=Limits(until_ms=hours(1)))
        assert run.found is None, (seed, run.found)


def test_an_activity_may_say_every_example_and_come_to_every_end() -> None:
    """Some only in some runs: a session that ends early has failed, and its report is accepted."""
    faults = Faults({name: 0.0 for name in NAMES if name not in {"exits early", "rambles", "fails"}})
    ends: set[str] = set()
    for seed in range(60):
        run = simulate(session.machine, seed=seed, faults=faults, limits=Limits(until_ms=hours(1)))
        events = (each.envelope.event for each in run.entries)
        ends |= {type(each.outcome).__name__ for each in events if isinstance(each, session.SessionExited)}
    assert {"Success", "Error", "Timeout"} <= ends


def test_an_environment_has_rates_of_its_own_unless_others_are_given() -> None:
    """Where most is said by operators they say more; who says how often is heard."""
    quiet, loud = Environment(rates={"operators": 0.0}), Environment(rates={"operators": 0.9})
    usual = Faults(swarm=False)
    spoken = [
        simulate(climber(), seed=1, faults=usual, environment=each).struck.get("operators", 0) for each in (quiet, loud)
    ]
    assert spoken[0] == 0 < spoken[1]
    assert "operators" not in simulate(climber(), seed=1, faults=NONE, environment=loud).struck
