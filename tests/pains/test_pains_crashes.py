"""Crashes: a wrong order of a runner's work, and a short trace of each.

The mutants here are not rules. They change the order in which a runner decides, persists, performs and records; it runs
the shipped session.
"""

from typing import Final

from lifefold.interpreters.check import CrashBounds, Discipline, Fault, Stage, check_crashes
from mutated import STUCK, shipped, way_in

DECIDE, PERSIST, PERFORM, RECORD = Stage.DECIDE, Stage.PERSIST, Stage.PERFORM, Stage.RECORD
FEW: Final = CrashBounds(inputs=2, crashes=1, batch=1)
DIES: Final = "crash   the runner dies; another one reads the log"


def way_of(fault: Fault, *order: Stage, together: bool = True) -> list[str]:
    """Let runners with this order die at every possible point; return the trace to a broken property."""
    report = check_crashes(shipped("session"), discipline=Discipline(order, together), bounds=FEW)
    return [line.strip() for line in way_in(report, fault)]


def test_an_effect_is_recorded_with_its_consequences() -> None:
    """langchain-ai/langgraph#8039: the order of two writes is random, and so is a repetition after a crash."""
    trace = way_of(Fault.PAST, DECIDE, PERSIST, PERFORM, RECORD, together=False)
    assert DIES in trace[-2]
    assert trace[-1].endswith("LogFatal(message='no space left'), again")


def test_work_before_an_interruption_is_not_done_again() -> None:
    """langchain-ai/langgraph#6792, #3206: after an interruption, the work before it is done again."""
    trace = way_of(Fault.PAST, DECIDE, PERSIST, PERFORM)
    assert DIES in trace[-2]
    assert trace[-1].endswith("LogFatal(message='no space left'), again")


def test_nothing_is_begun_that_is_not_in_the_log() -> None:
    """MervinPraison/PraisonAI#2994: no journal records the progress, so a crash restarts the run from its beginning."""
    trace = way_of(Fault.TWICE, DECIDE, PERFORM, PERSIST, RECORD)
    assert [line.partition(" ")[2] for line in trace] == [
        "decide  session 1: begins",
        "perform session, PrepareWorktree: begins",
        DIES,
        "decide  session 1: begins",
        "perform session, PrepareWorktree: begins",
    ]


def test_a_mark_that_something_was_done_is_not_made_before_it_is() -> None:
    """liza-mas/liza#137: marks of planned work survive the crash, and the work is never done."""
    trace = way_of(Fault.LOST, DECIDE, PERSIST, RECORD, PERFORM)
    assert any("as performed" in line for line in trace[: trace.index(next(line for line in trace if DIES in line))])
    assert not any("perform " in line for line in trace)
    assert trace[-1] == STUCK.strip()


def test_outgoing_messages_survive_a_restore() -> None:
    """basiltt/xstate-statemachine#213: a state that is restored and saved again has lost its outgoing messages."""
    trace = way_of(Fault.LOST, DECIDE, PERSIST, RECORD, PERFORM, together=False)
    assert not any("perform " in line for line in trace)
    assert trace[-1] == STUCK.strip()
