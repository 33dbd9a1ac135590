"""Faults of the disk while a log is in use: full, read-only, gone, slow, and flushes that fail.

A store says what is wrong and what to do, for each of its operations. A runner waits while the disk is full or slow. It
stops for the other faults, and the next run goes on. Nothing that was acknowledged is lost.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

import anyio

import disturbed_store
import interposing
from fleet_sandbox import Run, Sandbox
from interposing import Fault, Switch
from lifefold.interpreters.store import SqliteStore
from recorded_runs import foreign_in
from trials import Verdict

SAID: Final[Mapping[Fault, str]] = {
    Fault.FULL: "the disk is full",
    Fault.READ_ONLY: "Make it writable, and run this again",
    Fault.GONE: "Check the disk, and run this again when it works",
    Fault.UNSYNCED: "Check the disk, and run this again when it works",
    Fault.SLOW: "",
}
"""By fault: the words of each error that it causes; a slow disk causes none."""

READABLE: Final = frozenset({Fault.FULL, Fault.READ_ONLY, Fault.UNSYNCED})
"""The faults with which a log that is open can be read."""

STOPS: Final = frozenset({Fault.READ_ONLY, Fault.GONE, Fault.UNSYNCED})
"""The faults for which a runner stops, unless it waits for its sessions' files first."""

WAITS: Final = ("waiting until there is room", "waits to see its session")
"""The words of a runner that waits: for the disk of its log, or for that of its sessions' files."""

SLOW_MS: Final = 30_000
"""The time for which a campaign's slow disk makes a flush wait."""


def store_told(folder: Path, fault: Fault, pause_ms: int) -> dict[str, Any]:
    """Use a log on a disk with a fault; return its answers. Raises ``LookupError`` without the library."""
    disk, switch = folder / "disk", Switch(folder / "switch")
    disk.mkdir()
    program = [sys.executable, disturbed_store.__file__, str(disk), str(switch.path), fault.name, str(pause_ms)]
    environment = interposing.environment(under=disk, switch=switch.path)
    answer = subprocess.run(program, check=True, env=environment, stdout=subprocess.PIPE).stdout
    told: dict[str, Any] = json.loads(answer)
    return told


def store_problems(fault: Fault, told: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a program should not have been told."""
    if told["lost"] or not told["goes on"]:
        yield f"{told['lost']} acknowledged entries are lost, and the log goes on: {told['goes on']}"
    for name in ("append", "submit", "read", "open", "make"):
        is_well = fault is Fault.SLOW or (name == "read" and fault in READABLE)
        if is_well != (told[name] == "") or SAID[fault] not in (told[name] or SAID[fault]):
            yield f"{name} with a disk that is {fault.name}: {told[name]!r}"


class DisturbedFleet:
    """A fleet of one agent whose log is on a disk with a switch."""

    def __init__(self, folder: Path) -> None:
        """Prepare two tasks; the second one waits at a gate."""
        self.sandbox: Final = Sandbox(folder).prepare("plain-1", "plain-2", gates=["plain-2"])
        self._disk: Final = folder / "disk"
        self._disk.mkdir()
        self.log: Final = self._disk / "fleet.db"
        self.switch: Final = Switch(folder / "switch")

    @contextmanager
    def running(self) -> Generator[Run]:
        """Run the fleet on the disk."""
        command = [sys.executable, "-m", "lifefold.interpreters.cli", "run", str(self.sandbox.fleet), "--transitions"]
        environment = interposing.environment(under=self._disk, switch=self.switch.path)
        pipe, errors = subprocess.PIPE, subprocess.STDOUT
        with subprocess.Popen(
            [*command, "--db", str(self.log)],
            cwd=self.sandbox.folder, env=environment, stdout=pipe, stderr=errors, text=True, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                yield Run(process)
            finally:
                process.kill()

    def tried(self, fault: Fault, pause_ms: int) -> Iterator[str]:
        """Run the fleet, have the fault at the gate, and end the fault; yield what is wrong."""
        with self.running() as run:
            run.until("plain-1", "CLOSED")
            with self.sandbox.at_gate("plain-2"):
                self.switch.turn(fault, pause_ms)
            text = self._waited(run)
            disturbed = self.switch.disturbed
            self.switch.turn(Fault.SOUND)
            text += run.rest()
        if not disturbed:
            yield "the fault has disturbed nothing"
        if fault in SAID and run.process.returncode == 3 and SAID[fault] not in " ".join(text.split()):
            yield f"the runner has stopped, and does not say what to do: {text[-400:]}"
        if run.process.returncode not in ({0, 3} if fault in STOPS else {0}):
            yield f"the runner ended with {run.process.returncode}: {text[-400:]}"
        if run.process.returncode:
            with self.running() as again:
                text = again.rest()
            if again.process.returncode:
                yield f"the next runner ended with {again.process.returncode}: {text[-400:]}"
        if sorted(self.sandbox.merges()) != [f"Merge plain-{n}: Write plain-{n}.txt" for n in (1, 2)]:
            yield f"merged: {self.sandbox.merges()}"
        if left := self.sandbox.processes():
            yield f"orphans: {left}"
        with SqliteStore.peek(self.log) as store:
            anyio.run(store.read_on, 0)  # verifies the chain
        foreign = foreign_in(self.log)
        if foreign is not None:
            yield str(foreign)

    def _waited(self, run: Run) -> str:
        """Return what a runner says until it waits, or ends."""
        assert run.process.stdout is not None
        text = ""
        while line := run.process.stdout.readline():
            text += line
            if any(words in line for words in WAITS):
                break
        return text


TRIALS: Final = tuple((place, fault) for fault in SAID for place in ("store", "fleet"))


class DiskCampaign:
    """Each fault below a store, and below a whole fleet, in turn."""

    name: ClassVar[str] = "disk"

    def attempt(self, number: int) -> Verdict:
        """Make one trial."""
        place, fault = TRIALS[number % len(TRIALS)]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            folder = Path(name)
            if place == "store":
                wrong = list(store_problems(fault, store_told(folder, fault, SLOW_MS)))
            else:
                fleet = DisturbedFleet(folder)
                try:
                    wrong = list(fleet.tried(fault, SLOW_MS))
                except AssertionError as error:  # a line that never came
                    wrong = [str(error)]
                finally:
                    fleet.sandbox.kill_all()
        return Verdict(f"{place}: {fault.name.lower().replace('_', '-')}", tuple(wrong), {"faults": 1})

    def close(self) -> None:
        """Keep nothing."""
