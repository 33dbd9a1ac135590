"""Crashes in the middle: the order of a runner's work got wrong in each way, and found out by a short way.

What is planted here is no rule but the order in which a runner decides, keeps, performs and notes down; what it runs is
the shipped session.
"""

from typing import Final

from lifefold.interpreters.check import CrashBounds, Discipline, Fault, Stage, check_crashes
from planted import STUCK, shipped, way_in

DECIDE, PERSIST, PERFORM, RECORD = Stage.DECIDE, Stage.PERSIST, Stage.PERFORM, Stage.RECORD
FEW: Final = CrashBounds(inputs=2, crashes=1, batch=1)
DIES: Final = "crash   the runner dies; another one reads the log"


def way_of(fault: Fault, *order: Stage, together: bool = True) -> list[str]:
    """Let runners with this order die wherever they may; return the way to where they break a property."""
    report = check_crashes(shipped("session"), discipline=Discipline(order, together), bounds=FEW)
    return [line.strip() for line in way_in(report, fault)]


def test_what_was_done_is_noted_down_with_what_follows_from_it() -> None:
    """langchain-ai/langgraph#8039: chance decides which of the two is kept first, and whether it is done twice."""
    way = way_of(Fault.PAST, DECIDE, PERSIST, PERFORM, RECORD, together=False)
    assert DIES in way[-4]
    assert way[-1].endswith("LogFatal(message='no space left'), again")


def test_what_was_done_before_an_interruption_is_not_done_again() -> None:
    """langchain-ai/langgraph#6792, #3206: what came before the interruption is done once more when it is gone on."""
    way = way_of(Fault.PAST, DECIDE, PERSIST, PERFORM)
    assert DIES in way[-4]
    assert way[-1].endswith("LogFatal(message='no space left'), again")


def test_nothing_is_begun_that_is_not_in_the_log() -> None:
    """MervinPraison/PraisonAI#2994: no journal says where a run was, and after a crash it begins from the beginning."""
    way = way_of(Fault.TWICE, DECIDE, PERFORM, PERSIST, RECORD)
    assert [line.partition(" ")[2] for line in way] == [
        "decide  session 1: begins",
        "perform session, PrepareWorktree: begins",
        DIES,
        "decide  session 1: begins",
        "perform session, PrepareWorktree: begins",
    ]


def test_a_mark_that_something_was_done_is_not_made_before_it_is() -> None:
    """liza-mas/liza#137: marks of what was about to be done outlive the crash, and nothing is done any more."""
    way = way_of(Fault.LOST, DECIDE, PERSIST, RECORD, PERFORM)
    assert any("as performed" in line for line in way[: way.index(next(line for line in way if DIES in line))])
    assert not any("perform " in line for line in way)
    assert way[-1] == STUCK.strip()


def test_what_is_to_be_sent_outlives_a_restore() -> None:
    """basiltt/xstate-statemachine#213: what is restored and kept again has lost what it was to send."""
    way = way_of(Fault.LOST, DECIDE, PERSIST, RECORD, PERFORM, together=False)
    assert not any("perform " in line for line in way)
    assert way[-1] == STUCK.strip()
