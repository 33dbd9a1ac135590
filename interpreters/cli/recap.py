"""What went wrong in the demonstration: that is what it is there to show, and it is easily missed."""

from collections import Counter
from typing import Final

from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import mailbox
from lifefold.core.kernel import Reaction, Refusal, Transition
from lifefold.core.lifecycles import session

DEAF: Final = "script: deaf"
"""What the prompt of a task has whose first agent takes no notice of being told to end."""


class Recap:
    """Watches a run, and counts what happened to the sessions of each task."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._seen: Counter[tuple[str, str]] = Counter()

    def observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        """Count."""
        if isinstance(outcome, Reaction) and aggregate.startswith(worker.KIND):
            brief = outcome.aggregate.record("assignment").brief
            for transition in outcome.transitions:
                what = _what(transition, deaf=DEAF in brief.prompt)
                if what:
                    self._seen[brief.task, what] += 1

    def rows(self) -> list[tuple[str, str]]:
        """Return each task's name and what happened to it."""
        return [(f"  {task}", f"{what}{f', {n} times' if n > 1 else ''}") for (task, what), n in self._seen.items()]


def _what(transition: Transition, *, deaf: bool) -> str:
    match transition.event:
        case session.SessionExited(outcome=session.Error()) if transition.entered is session.State.COOLING_DOWN:
            return "crashed; after a pause it was tried again"
        case session.SessionExited(outcome=session.Timeout()) if deaf:
            return "hung, and was deaf to being told to end: it was killed, and the task tried again"
        case session.SessionExited(outcome=session.Timeout()):
            return "hung until its time was up; then it was tried again"
        case mailbox.OperatorMessageArrived():
            return "interrupted by an urgent message; the next session had it, and went on where the first had been"
        case _:
            return ""
