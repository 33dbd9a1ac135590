"""Losses of power: a recorded run of a writer is cut after any operation, and the log that is left is opened.

Every acknowledged entry, command and answer is there, with the contents that were written. The chain of the log is
whole, and a writer goes on. A log without an acknowledged entry may be missing, and can then be made.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

import anyio

import interposing
import recorded_store
from interposing import Switch
from lifefold.interpreters.store import Batch, SqliteStore, StoreError
from lifefold.interpreters.store.anchor_file import UnreadableAnchor, anchor_beside
from recorded_store import entry
from recording import Disk, Op, Record, records
from trials import Verdict

EACH: Final = 100
"""The number of cuts of one recording."""


def recorded(folder: Path, seed: int, synchronous: str = "FULL", *, fails: bool = False) -> list[Record]:
    """Run the writer, and return what it has done to its disk; with ``fails`` some of its flushes fail.

    Raises ``LookupError`` without the library.
    """
    under, recording, switch = folder / "disk", folder / "recording", Switch(folder / "switch")
    under.mkdir()
    recording.touch()
    program = [sys.executable, recorded_store.__file__, str(under), str(recording), str(seed), synchronous]
    environment = interposing.environment(under=under, record=recording, switch=switch.path)
    subprocess.run([*program, *([str(switch.path)] if fails else [])], check=True, env=environment)
    return list(records(recording))


class Acknowledged:
    """What a program was told before the power was lost."""

    def __init__(self, marks: list[str]) -> None:
        """Read the marks, the oldest first."""
        self.at = ""
        self.entries: dict[str, int] = {}
        self.commands: set[int] = set()
        self.answers: set[int] = set()
        self.session = -1
        self.is_deleted = False
        for each in map(json.loads, marks):
            self.at = each.get("at", self.at)
            self.is_deleted = each.get("deleted", self.is_deleted and "at" not in each)
            self.entries |= each.get("entries", {})
            self.answers |= set(each.get("answers", ()))
            self.commands |= {each["command"]} if "command" in each else set()
            self.session = each.get("session", self.session)


def problems(left: Path, told: Acknowledged) -> Iterator[str]:
    """Yield what is wrong with what a loss of power has left, and go on with it."""
    session = left / recorded_store.SESSION_FILE
    text = session.read_text() if session.exists() else "-1"
    if int(text.split()[0]) not in {told.session, told.session + 1}:
        yield f"the file of a session has {text[:20]!r}, and number {told.session} was acknowledged"
    path = left / (told.at or "log.db")
    if told.is_deleted and not path.exists():  # by another program, and the power was lost before the copy was whole
        return
    try:
        with SqliteStore.open(path) if told.at or path.exists() else SqliteStore.create(path, {}) as store:
            yield from anyio.run(_looked_at, store, told)
    except (StoreError, OSError) as error:
        yield f"{type(error).__name__}: {error}"


async def _looked_at(store: SqliteStore, told: Acknowledged) -> list[str]:
    found = list(await store.read_on(0))  # verifies the chain
    wrong = [
        f"{each.stream} {each.version} is not as written" for each in found if each != entry(each.stream, each.version)
    ]
    versions = {stream: sum(each.stream == stream for each in found) for stream in ("a", "b")}
    for stream, version in told.entries.items():
        if versions[stream] < version:
            wrong.append(f"{stream} {version} was acknowledged, and the log has {versions[stream]}")
    commands = {each.id: each.answer for each in await store.commands(unanswered=False)}
    wrong += await _beside(store)
    wrong += [f"command {number} was acknowledged, and is lost" for number in told.commands - commands.keys()]
    wrong += [f"answer {number} is lost" for number in told.answers if commands.get(number) is None]
    await store.append(Batch([entry("a", versions["a"] + 1)]))
    if len(await store.read_on(0)) != len(found) + 1:
        wrong.append("the next writer did not go on")
    return wrong


def points(every: list[Record]) -> Iterator[str]:
    """Yield the name of each operation: what was done, and to which of the files."""
    names: dict[int, str] = {}
    for each in every:
        if each.op is Op.OPENED:
            names[each.fd] = each.name
        name = Path(each.name or names.get(each.fd, "")).name.replace("log.db", "log")
        yield f"{name} {each.op.name.lower()}" if name else "acknowledged"


async def _beside(store: SqliteStore) -> list[str]:
    """Return what is wrong with the anchor beside a log: it may be missing or old, but not unreadable or other."""
    try:
        anchor = anchor_beside(store.path)
    except UnreadableAnchor as error:
        return [str(error)]
    chain = await store.chain()
    links = [chain.begin.link, *(link for _, link in chain.rows)]
    fits = anchor is None or (anchor.entries < len(links) and links[anchor.entries] == anchor.link)
    return [] if fits else [f"the anchor beside the log names entry {anchor}, and the log has another or none"]


class Recording:
    """One recorded run that is cut again and again, at later and later operations."""

    def __init__(self, seed: int, synchronous: str = "FULL", *, fails: bool = False) -> None:
        """Record the run."""
        with tempfile.TemporaryDirectory() as folder:
            self.records: Final = recorded(Path(folder), seed, synchronous, fails=fails)
        self.points: Final = tuple(points(self.records))
        self._disk = Disk()
        self._done = 0

    def cut(self, place: int, seed: int) -> tuple[str, list[str]]:
        """Lose the power after so many operations; return the last one and what is wrong."""
        if place < self._done:
            self._disk, self._done = Disk(), 0
        for each in self.records[self._done : place]:
            self._disk.apply(each)
        self._done = place
        with tempfile.TemporaryDirectory() as folder:
            self._disk.cut(seed, Path(folder))
            return self.points[place - 1], list(problems(Path(folder), Acknowledged(self._disk.marks)))


class PowerCampaign:
    """Cuts of recorded runs, each with a seed of its own for what is kept. In every second run some flushes fail."""

    name: ClassVar[str] = "power"

    def __init__(self) -> None:
        """Record nothing yet."""
        self._recordings: dict[int, Recording] = {}

    def attempt(self, number: int) -> Verdict:
        """Make one cut."""
        run = number // EACH
        if run not in self._recordings:
            self._recordings = {run: Recording(run, fails=run % 2 == 1)}
        recording = self._recordings[run]
        operations = [n for n, each in enumerate(recording.records, 1) if each.op is not Op.CLOSED]
        place = operations[(number % EACH) * len(operations) // EACH + run % max(1, len(operations) // EACH)]
        last, wrong = recording.cut(place, number)
        return Verdict(f"after {last}", tuple(wrong), {"cuts": 1})

    def close(self) -> None:
        """Keep no recording."""
        self._recordings.clear()
