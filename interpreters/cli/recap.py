"""The failures of the demonstration, which it is meant to show, as a table at its end."""

from collections import Counter
from typing import Final

from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import mailbox
from lifefold.core.kernel import Reaction, Refusal, Transition
from lifefold.core.lifecycles import session

IGNORES_SIGNALS: Final = "script: deaf"
"""The prompt of the task whose first agent ignores the request to end."""


class Recap:
    """Observes a run, and counts the failures of the sessions of each task."""

    def __init__(self) -> None:
        """Begin with no failures."""
        self._seen: Counter[tuple[str, str]] = Counter()

    def observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        """Count the failures in one input."""
        if isinstance(outcome, Reaction) and aggregate.startswith(worker.KIND):
            brief = outcome.aggregate.record("assignment").brief
            for transition in outcome.transitions:
                what = _what(transition, ignores_signals=IGNORES_SIGNALS in brief.prompt)
                if what:
                    self._seen[brief.task, what] += 1

    def rows(self) -> list[tuple[str, str]]:
        """Return the name of each task, and its failure."""
        return [(f"  {task}", f"{what}{f', {n} times' if n > 1 else ''}") for (task, what), n in self._seen.items()]


def _what(transition: Transition, *, ignores_signals: bool) -> str:
    match transition.event:
        case session.SessionExited(outcome=session.Error()) if transition.entered is session.State.COOLING_DOWN:
            return "crashed; after a pause it was tried again"
        case session.SessionExited(outcome=session.Timeout()) if ignores_signals:
            return "hung, and ignored the request to end: it was killed, and the task tried again"
        case session.SessionExited(outcome=session.Timeout()):
            return "hung until its timeout; then it was tried again"
        case mailbox.OperatorMessageArrived():
            return "interrupted by an urgent message; the next session got it, and continued the work"
        case _:
            return ""
