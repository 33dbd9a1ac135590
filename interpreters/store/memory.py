"""An event store in memory, for tests, benchmarks and notebooks: as strict as a durable one, lost with its process."""

from collections.abc import Mapping, Sequence

from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from lifefold.interpreters.store.protocol import (
    Batch,
    Entry,
    Fenced,
    Snapshot,
    SnapshotPart,
    StoredCommand,
    StoreError,
    VersionConflict,
)
from lifefold.interpreters.store.snapshot import Resumption, SnapshotPlace


class Shelf:
    """The contents of memory stores. They outlive a store; opening a second store on a shelf fences the first one."""

    def __init__(self) -> None:
        """Start empty."""
        self.entries: list[Entry] = []
        self.last: dict[str, int] = {}
        self.keys: set[tuple[str, str]] = set()
        self.performed: dict[str, int] = {}
        self.commands: dict[int, StoredCommand] = {}
        self.epoch = 0
        self.snapshot_form = ""
        self.snapshot_position = 0
        self.parts: dict[tuple[str, str], SnapshotPart] = {}


class MemoryStore:
    """A store that is open for writing on a shelf.

    >>> import anyio
    >>> from lifefold import MemoryStore
    >>> anyio.run(MemoryStore().read)
    []
    """

    def __init__(self, shelf: Shelf | None = None) -> None:
        """Open the shelf, or a new one, under a new epoch."""
        self.shelf = shelf or Shelf()
        self.shelf.epoch += 1
        self._epoch = self.shelf.epoch

    async def append(self, batch: Batch) -> None:
        """Write a batch; see ``EventStore``."""
        await checkpoint()
        if self._epoch != self.shelf.epoch:
            message = f"a writer of epoch {self.shelf.epoch} has taken over from this one of epoch {self._epoch}"
            raise Fenced(message)
        last, keys = dict(self.shelf.last), set(self.shelf.keys)
        for entry in batch.entries:
            if entry.version != last.get(entry.stream, 0) + 1:
                message = f"{entry.stream}: version {entry.version} does not follow {last.get(entry.stream, 0)}"
                raise VersionConflict(message)
            if (entry.stream, entry.key) in keys:
                message = f"{entry.stream}: has an entry with the key {entry.key!r} already"
                raise StoreError(message)
            last[entry.stream] = entry.version
            if entry.key:
                keys.add((entry.stream, entry.key))
        if batch.snapshot is not None:
            self._keep(batch.snapshot)
        self.shelf.last, self.shelf.keys = last, keys
        self.shelf.entries.extend(batch.entries)
        self.shelf.performed.update(batch.performed)
        for number, answer in batch.answers.items():
            if number in self.shelf.commands:
                self.shelf.commands[number] = replace(self.shelf.commands[number], answer=answer)

    def _keep(self, snapshot: Snapshot) -> None:
        shelf = self.shelf
        if snapshot.form != shelf.snapshot_form:
            shelf.parts.clear()
        shelf.snapshot_form, shelf.snapshot_position = snapshot.form, len(shelf.entries)
        shelf.parts.update({(each.stream, each.ref): each for each in snapshot.parts})

    async def resumed(self, form: str) -> Resumption:
        """Return the newest snapshot; see ``SnapshotStore``."""
        shelf, entries = self.shelf, self.shelf.entries
        if not shelf.snapshot_form or not shelf.snapshot_form.startswith(form):
            return Resumption((), list(entries), len(entries))
        versions = {stream: part.version for (stream, ref), part in shelf.parts.items() if not ref}
        rest = [each for each in entries if each.version > versions.get(each.stream, 0)]
        new = len(entries) - shelf.snapshot_position
        newest = entries[shelf.snapshot_position - 1] if shelf.snapshot_position else None
        place = SnapshotPlace() if newest is None else SnapshotPlace(newest.at_ms, newest.rules, len(rest) - new)
        return Resumption(list(shelf.parts.values()), rest, len(entries), len(entries) - len(rest), place)

    async def drop_snapshot(self) -> None:
        """Remove the snapshot; see ``SnapshotStore``."""
        self.shelf.snapshot_form = ""
        self.shelf.parts.clear()

    async def known_keys(self, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the known keys; see ``SnapshotStore``."""
        return self.shelf.keys.intersection(keys)

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Return entries; see ``EventStore``."""
        return [e for e in self.shelf.entries if stream in {None, e.stream} and e.version > after]

    async def performed(self) -> Mapping[str, int]:
        """Return the performed versions; see ``EventStore``."""
        return dict(self.shelf.performed)

    async def submit(self, stream: str, envelope: bytes) -> int:
        """Leave an input for the writer; see ``EventStore``."""
        number = len(self.shelf.commands) + 1
        self.shelf.commands[number] = StoredCommand(number, stream, envelope)
        return number

    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        """Return operator commands; see ``EventStore``."""
        return [command for command in self.shelf.commands.values() if command.answer is None or not unanswered]
