"""Runners that die after every prefix of their work: ours keeps its properties, and every other order is found out."""

from collections import deque
from itertools import permutations
from typing import Any, Final

import pytest

import kiln
from desk import TOLD, Fire, Hearth, Mail, fire, graph, messages, told
from kiln import Announce
from lifefold.core.kernel import (
    Aggregate,
    Created,
    Envelope,
    Machine,
    Reaction,
    Record,
    State,
    alone,
    possible,
    react,
)
from lifefold.core.lifecycles import approval, session, task
from lifefold.interpreters.check import (
    SHIPPED,
    CrashBounds,
    CrashReport,
    Discipline,
    Fault,
    Outcome,
    Progress,
    Stage,
    check_crashes,
)
from lifefold.interpreters.crash.runner_model import Runner

DECIDE, PERSIST, PERFORM, RECORD = SHIPPED.order

FEW: Final = CrashBounds(inputs=2, crashes=1, batch=1)


hasty: Final = Discipline(SHIPPED.order, recovers_first=False)
"""What may not have been performed is performed as soon as the log is read."""

forgetful: Final = Discipline(SHIPPED.order, restores_timers=False)
"""A runner that comes back sets no timer."""

racing: Final = Discipline(SHIPPED.order, together=False)
"""The record of what a node did, and the entry that leads on from it, are written by two threads, in any order."""


def broken(report: CrashReport) -> set[Fault]:
    """Return the properties that do not hold."""
    return {Fault(each.name) for each in report.broken()}


def way(report: CrashReport, fault: Fault) -> list[str]:
    """Return the shortest way to a fault, as it is printed, without the numbers."""
    (trace,) = [each.trace for each in report.verdicts if each.name == fault]
    assert trace is not None
    return [line.partition(". ")[2] for line in trace.lines(120)]


def test_what_the_log_is_past_is_not_done_again() -> None:
    """A graph goes on from its first node, dies, and comes back in the second: the first has not to be done again."""
    report = check_crashes(graph)
    assert report.ok, report
    assert report.again > 0


def test_a_record_that_races_with_the_entry_that_leads_on_is_found() -> None:
    """LangGraph #8039: the new checkpoint is durable, what the node before it did is not on record, and it runs again.

    Nothing else is wrong with such a runner, so nothing else would find it.
    """
    report = check_crashes(graph, discipline=racing)
    assert broken(report) == {Fault.PAST}
    assert way(report, Fault.PAST) == [
        "decide  graph 1: begins",
        "decide  graph 2: operator says Asked()   beginning → first node  [Charge]",
        "persist graph 2",
        "decide  graph 3: operator says Came()   first node → second node  [Charge]",
        "perform graph 2.0: Charge(payment='first')",
        "decide  graph 4: operator says Came()   second node → end",
        "persist graph 4",
        "crash   the runner dies; another one reads the log",
        "perform graph 2.0: Charge(payment='first'), again",
    ]


@pytest.mark.parametrize("machine", [approval.machine, kiln.kiln], ids=["approval", "kiln"])
def test_a_runner_that_sets_no_timer_again_is_found(machine: Machine[Any]) -> None:
    """It strands every entity that waits for one, although nothing else is lost; ours sets all of them."""
    report = check_crashes(machine, discipline=forgetful, bounds=FEW)
    assert Fault.STRANDED in broken(report)
    *_, crash, decided, persisted = [line for line in way(report, Fault.STRANDED) if line.split()[0] != "perform"]
    assert crash.startswith("crash ")
    assert decided.endswith("the runner comes back")
    assert persisted.startswith("persist ")
    assert Fault.STRANDED not in broken(check_crashes(machine, bounds=FEW))


def test_a_runner_that_does_not_wait_until_all_is_taken_up_is_found() -> None:
    """An owed effect that concerns what goes on would reach nothing, and count as performed: ``CancelSession``."""
    report = check_crashes(session.machine, discipline=hasty, bounds=FEW)
    assert broken(report) == {Fault.UNATTENDED}
    crash, performed = way(report, Fault.UNATTENDED)[-2:]
    assert crash == "crash   the runner dies; another one reads the log"
    assert performed.startswith("perform session 3.0: StorePrompt(")
    assert check_crashes(session.machine, bounds=FEW).ok


def test_of_all_orders_of_the_stages_only_ours_is_sound() -> None:
    """Whatever else is done in another order, or not at all, loses something or does what it should not."""
    orders = [(DECIDE, *rest) for count in range(4) for rest in permutations((PERSIST, PERFORM, RECORD), count)]
    sound = [order for order in orders if check_crashes(graph, discipline=Discipline(order), bounds=FEW).ok]
    assert (len(orders), sound) == (16, [SHIPPED.order])


def test_a_runner_that_persists_nothing_properties_nothing() -> None:
    """It breaks no property, and is not sound for that."""
    report = check_crashes(graph, discipline=Discipline((DECIDE,)), bounds=FEW)
    assert {each.outcome for each in report.verdicts} == {Outcome.VACUOUS}


def test_performing_before_persisting_is_found() -> None:
    """A runner dies between the two, and what it did was never decided."""
    report = check_crashes(graph, discipline=Discipline((DECIDE, PERFORM, PERSIST, RECORD)), bounds=FEW)
    assert Fault.UNPERSISTED in broken(report)
    assert way(report, Fault.UNPERSISTED) == [
        "decide  graph 1: begins",
        "persist graph 1",
        "decide  graph 2: operator says Asked()   beginning → first node  [Charge]",
        "perform graph 2.0: Charge(payment='first')",
    ]


def test_recording_before_performing_is_found() -> None:
    """A runner dies between the two, and no runner performs the effect that is recorded as performed."""
    report = check_crashes(graph, discipline=Discipline((DECIDE, PERSIST, RECORD, PERFORM)), bounds=FEW)
    assert broken(report) == {Fault.LOST}
    stages = [line.split()[0] for line in way(report, Fault.LOST) if line]
    assert ("perform" in stages, stages.index("record") < stages.index("crash")) == (False, True)
    assert str(report).count("and from then on nothing happens any more") == 1


def test_forgetting_to_record_is_found() -> None:
    """Every runner does everything again that ever was done."""
    report = check_crashes(graph, discipline=Discipline((DECIDE, PERSIST, PERFORM)), bounds=FEW)
    assert broken(report) == {Fault.PAST}


def test_an_effect_that_is_not_idempotent_is_done_twice_by_the_best_of_runners() -> None:
    """No order helps if a runner dies between performing and recording: the receiver must recognise a repetition."""
    report = check_crashes(messages)
    assert broken(report) == {Fault.TWICE}
    assert way(report, Fault.TWICE) == [
        "decide  letters 1: begins",
        "decide  letters 2: operator says Asked()   empty → done  [Mail]",
        "persist letters 2",
        "perform letters 2.0: Mail()",
        "crash   the runner dies; another one reads the log",
        "perform letters 2.0: Mail(), again",
    ]
    known = check_crashes(messages, recognised=(Mail,))
    assert known.ok
    assert "2 performed again; Mail recognised by identity" in " ".join(str(known).split())


def test_activities_and_timers_survive_every_crash() -> None:
    """A fire is lit, stoked, burns out or is put out, and hot pots cool down: each begun once, and ended if it must."""
    report = check_crashes(kiln.kiln, recognised=(Announce,), bounds=CrashBounds(inputs=3, crashes=1))
    assert report.ok, report


def test_an_activity_that_begins_before_it_is_persisted_is_found() -> None:
    """The fire burns, and the log knows of none; the next runner lights another one beside it."""
    early = Discipline((DECIDE, PERFORM, PERSIST, RECORD))
    report = check_crashes(fire, discipline=early, bounds=FEW)
    assert broken(report) == {Fault.UNPERSISTED, Fault.TWICE}
    assert way(report, Fault.UNPERSISTED)[-1] == "perform fire, Burn: begins"


def test_an_activity_that_is_never_begun_or_ended_is_found() -> None:
    """A runner that performs nothing leaves cold what should burn."""
    idle = Discipline((DECIDE, PERSIST, RECORD))
    assert broken(check_crashes(fire, discipline=idle, bounds=FEW)) == {Fault.LOST}


def test_an_end_that_is_never_confirmed_is_found() -> None:
    """The fire that burned is put out, and no handler has confirmed that."""
    system, _ = alone(fire)
    opening = [("fire", Envelope("fire", Created(Fire(Hearth.HOT)), 0))]
    bounds = CrashBounds(inputs=1, crashes=0)
    idle = check_crashes(system, opening=opening, discipline=Discipline((DECIDE, PERSIST)), bounds=bounds)
    assert broken(idle) == {Fault.LOST}
    assert way(idle, Fault.LOST)[1] == "decide  fire 2: operator says Doused()   hot → ash  [End]"


def test_messages_survive_every_crash() -> None:
    """What a kiln tells the tally is taken once, whenever a runner dies in between."""
    bounds = CrashBounds(inputs=3, crashes=1, batch=1)
    report = check_crashes(kiln.system, opening=tuple(kiln.opened()), recognised=(Announce,), bounds=bounds)
    assert report.ok, report
    assert list(report.components) == ["tally", "kiln/a"]


def test_a_message_that_is_never_delivered_is_found() -> None:
    """A runner that performs nothing sends no message."""
    bounds = CrashBounds(inputs=1, crashes=0)
    idle = check_crashes(told, opening=TOLD, discipline=Discipline((DECIDE, PERSIST)), bounds=bounds)
    assert broken(idle) == {Fault.LOST}


def test_what_follows_from_a_message_is_found() -> None:
    """The letter that one aggregate writes when the other has told it something is written twice."""
    report = check_crashes(told, opening=TOLD, bounds=FEW)
    assert broken(report) == {Fault.TWICE}
    assert way(report, Fault.TWICE)[3:] == [
        "decide  talk 2: operator says Asked()   empty → done",
        "persist talk 2",
        "decide  letters 2: talk tells Asked()   empty → done  [Mail]",
        "persist letters 2",
        "perform letters 2.0: Mail()",
        "crash   the runner dies; another one reads the log",
        "perform letters 2.0: Mail(), again",
    ]


def test_a_system_is_opened_in_one_transaction() -> None:
    """No runner comes back to a part of it: the engine takes all openings in one batch."""
    runner = Runner(told, TOLD, SHIPPED, CrashBounds(inputs=0, crashes=1))
    models = [runner.initial()]
    for model in models:
        opened = {runner.states[part][number].version > 0 for part, number in enumerate(model.durable.log)}
        assert len(opened) == 1
        models += [after for _, after, _ in runner.successors(model) if after not in models]
    assert len(models) > 5


def test_the_sender_of_a_message_without_a_receiver_is_named() -> None:
    """A system has to be opened as a whole."""
    opening = [each for each in kiln.opened() if each[0] != "tally"]
    with pytest.raises(ValueError, match="kiln/a sends 'tally' a message; the aggregates are kiln/a"):
        check_crashes(kiln.system, opening=opening)


def test_an_opening_that_is_refused_is_named() -> None:
    """There is nothing to be checked then."""
    with pytest.raises(ValueError, match=r"tally refuses Created.*: 'tally' begins with a Tally, not with a Kiln"):
        check_crashes(kiln.system, opening=[("tally", Envelope("tally", Created(kiln.Kiln()), 0))])


@pytest.mark.parametrize("machine", [session.machine, task.machine], ids=["session", "task"])
def test_what_is_shipped_survives_every_crash(machine: Machine[Any]) -> None:
    """Whatever a runner gets done of the first inputs before it dies, and the next one, too."""
    report = check_crashes(machine, bounds=CrashBounds(inputs=2, crashes=2))
    assert report.ok, report


def in_every_state(machine: Machine[Any]) -> dict[State, Record]:
    """Return for each state of a machine the first record with which it is come to."""
    (of,) = alone(machine)[0].aggregates.values()
    first = Envelope(machine.name, Created(machine.initial), 0)
    met: dict[State, Record] = {}
    found: deque[tuple[Aggregate, Envelope]] = deque([(of.start(machine.name), first)])
    while found:
        came = react(of, *found.popleft())
        if isinstance(came, Reaction) and came.aggregate.record(machine.name).state not in met:
            met[came.aggregate.record(machine.name).state] = came.aggregate.record(machine.name)
            found += [(came.aggregate, each.envelope) for each in possible(of, came.aggregate, 0)]
    return met


SESSIONS: Final = in_every_state(session.machine)


@pytest.mark.parametrize("state", SESSIONS)
def test_a_session_survives_crashes_in_each_of_its_states(state: State) -> None:
    """Whatever a session is at when it is taken up, and whatever comes next."""
    system, _ = alone(session.machine)
    opening = [("session", Envelope("session", Created(SESSIONS[state]), 0))]
    report = check_crashes(system, opening=opening, bounds=CrashBounds(inputs=2, crashes=1, batch=1))
    assert report.ok, report


def test_a_session_can_be_tried_in_all_of_its_states() -> None:
    """None of them is left out above."""
    assert SESSIONS.keys() == set(session.State)


def test_a_search_that_is_cut_short_decides_nothing() -> None:
    """Neither for states nor for time; what has been found until then is found."""
    few = check_crashes(graph, bounds=CrashBounds(states=50))
    assert {each.outcome for each in few.verdicts} == {Outcome.UNDECIDED}
    assert "not everything: more than 50 states" in str(few)
    brief = check_crashes(graph, bounds=CrashBounds(seconds=-1.0))
    assert {each.outcome for each in brief.verdicts} == {Outcome.UNDECIDED}
    found = check_crashes(messages, bounds=CrashBounds(states=100))
    assert broken(found) == {Fault.TWICE}


def test_progress_is_told_while_it_works() -> None:
    """Every few thousand states."""
    told: list[Progress] = []
    report = check_crashes(kiln.kiln, bounds=CrashBounds(inputs=2, crashes=2), tell=told.append)
    assert report.states > told[-1].states > 0


@pytest.mark.parametrize("order", [(), (PERSIST,), (DECIDE, DECIDE), (DECIDE, Stage.CRASH)])
def test_an_invalid_order_of_stages_is_refused(order: tuple[Stage, ...]) -> None:
    """An input is decided on first, and each stage comes once."""
    with pytest.raises(ValueError, match="not an order of stages"):
        Discipline(order)
