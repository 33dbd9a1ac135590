"""A model service that answers by scripts: one for each task, found by its name in brackets in the prompt.

A script is a file ``NAME.toml`` with steps. A step is an answer: ``write`` with ``content``, ``run`` with a command, or
``say`` with a text. The number of tool results in a conversation tells which step is next, so a conversation that is
resumed goes on where it was. ``limit_s`` refuses the step's first request: the account is limited for so many seconds.
``hold`` keeps the first answer back until the service is told to ``release`` it.
"""

import time
import tomllib
from collections import Counter
from pathlib import Path
from threading import Event, Lock
from typing import Final

import msgspec

from dialects import DONE, Answer, Served
from model_service import Failure, Mode, Service, failure, offered, running, tools_answered, writing

SCRIPTS: Final = Path(__file__).parent / "scripts"
PATIENCE_S: Final = 300
"""The longest time for which an answer is held back."""


class ScriptStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer of the model, and what happens before it."""

    write: str = ""
    content: str = ""
    run: str = ""
    say: str = DONE
    limit_s: int = 0
    hold: bool = False


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answers to one task, in order; the last one is a text."""

    steps: tuple[ScriptStep, ...]


def scripts(folder: Path = SCRIPTS) -> dict[str, Script]:
    """Return the scripts of a folder by the names of their tasks."""
    return {
        path.stem: msgspec.convert(tomllib.loads(path.read_text()), Script) for path in sorted(folder.glob("*.toml"))
    }


class ScriptedService(Service):
    """The service of all tasks of a fleet. ``spent`` has what the answers to each task have cost.

    ``held`` is set while an answer is held back, and ``limits`` counts the refused requests of each task.
    """

    def __init__(self, known: dict[str, Script]) -> None:
        """Listen, for these scripts by the names of their tasks."""
        super().__init__(Mode.TEXT)
        self.known: Final = known
        self.spent: Final = dict.fromkeys(known, Served())
        self.answers: Final = Counter[str]()
        self.limits: Final = Counter[str]()
        self.held: Final = Event()
        self._released: Final = Event()
        self._lock: Final = Lock()
        self._met: Final = set[tuple[str, int]]()

    def release(self) -> None:
        """Give the answers that are held back."""
        self._released.set()

    def reply(self, dialect: str, body: str) -> Answer | Failure | None:
        """Return the next answer to the task of a request."""
        task = self._task(body)
        step, place = self._step(task, body)
        if self._is_first(task, place):
            if step.limit_s:
                self.limits[task] += 1
                return failure(dialect, Mode.LIMIT, round(time.time()) + step.limit_s)
            if step.hold:
                self.held.set()
                self._released.wait(PATIENCE_S)
        with self._lock:
            self.answers[task] += 1
        wanted = writing(step.write, step.content) if step.write else running(step.run) if step.run else ()
        return Answer(len(self.requests), offered(wanted, body), step.say)

    def charge(self, cost: Served, body: str) -> None:
        """Note what an answer to a task has cost."""
        task = self._task(body)
        with self._lock:
            self.spent[task] = self.spent[task].plus(cost)

    def _task(self, body: str) -> str:
        return next(name for name in self.known if f"[{name}]" in body)

    def _step(self, task: str, body: str) -> tuple[ScriptStep, int]:
        steps = self.known[task].steps
        place = min(tools_answered(body), len(steps) - 1)
        return steps[place], place

    def _is_first(self, task: str, place: int) -> bool:
        """Return whether this is the first request for a step."""
        with self._lock:
            is_first = (task, place) not in self._met
            self._met.add((task, place))
            return is_first
