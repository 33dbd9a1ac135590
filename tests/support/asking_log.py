"""A log in which the session of ann works at T1 and asks, which no runner has written."""

from pathlib import Path
from typing import Final

from fleet_log import FleetLog
from lifefold.core.fleet import TaskPlan
from lifefold.core.fleet.worker import assignment
from lifefold.core.fleet.worker.question import REF, Kind, QuestionAsked, Terms
from lifefold.core.lifecycles import session, task

T1: Final = TaskPlan("T1", "do it")
LEAVE: Final = QuestionAsked("T1", 1, id="a", kind=Kind.PERMISSION, tool="Bash", subject="rm -rf build", asked_ms=1)
WORDS: Final = QuestionAsked("T1", 1, id="b", text="Which\none?", choices=("red", "blue"))


def at_work(path: Path, *asked: QuestionAsked, terms: Terms | None = None) -> FleetLog:
    """Return a log in which the session of ann works at T1 and has asked these questions."""
    log = FleetLog(path, T1, questions=Terms() if terms is None else terms)
    log.reported("worker/ann", "session", session.WorktreeReady())
    log.claimed("T1").happens("worker/ann", "assignment", assignment.Assigned(task.Brief("T1", 1, "do it")))
    log.reported("worker/ann", "assignment", assignment.CheckedOut())
    log.reported("worker/ann", "session", session.SessionStarted(0))
    return log.happens("worker/ann", REF, *asked)
