"""What all peers do in a step, and how it is measured."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time

PROMPT = "Make the tests of the package pass, and say in two sentences what was wrong with them."
PHASES = ("Prompting", "Spawning", "Running", "Preparing")
"""The phases of a session; a step leads from one to the next."""

State = dict[str, str | int]
"""The state of an agent: its phase, the number of its sessions, and its prompt."""

BEGIN: State = {"phase": "Preparing", "sessions": 0, "prompt": ""}


@dataclass(frozen=True)
class Measured:
    """The steps of a run, the time by the clock, and the processor time of the program; both in seconds."""

    steps: int
    seconds: float
    processor_s: float
    version: str


def stepped(state: State) -> State:
    """Return the state after the next step."""
    place = (PHASES.index(str(state["phase"])) + 1) % len(PHASES)
    sessions = int(state["sessions"]) + (PHASES[place] == "Spawning")
    return {"phase": PHASES[place], "sessions": sessions, "prompt": PROMPT if place else ""}


class Watch:
    """Measures the steps, without the start of the program."""

    def __init__(self) -> None:
        """Begin now."""
        self._begun = perf_counter(), process_time()

    def printed(self, package: str, steps: int) -> None:
        """Print what was measured up to now."""
        took = perf_counter() - self._begun[0], process_time() - self._begun[1]
        print(json.dumps(asdict(Measured(steps, *took, version(package)))))


def after(steps: int) -> State:
    """Return the state after so many steps, which each peer must have in the end."""
    state = BEGIN
    for _ in range(steps):
        state = stepped(state)
    return state


def run(measure: Callable[[Path, int], None]) -> None:
    """Run a program of a peer."""
    measure(Path(sys.argv[1]), int(sys.argv[2]))
