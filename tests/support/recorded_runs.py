"""Every run that a test records must be a behaviour of the model: the plugin that looks at the logs of all sandboxes.

A sandbox enters its folder here, and so does the fixture ``recorded_place`` for tests without a sandbox. A place of
another system than the fleet's names it, as the logs of the engine's own tests do. After a test
has passed, each log in these folders that has grown is read, and its entries are compared with the model
(``lifefold.interpreters.testing.refinement``). The first entry that is no step of the model fails the test. A log that
cannot be opened is left out: its test asserts the error itself.
"""

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from weakref import WeakSet

import anyio
import pytest

from lifefold.core.fleet import system as fleet
from lifefold.core.kernel import ENGINE, System
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import Entry, SqliteStore, StoreError
from lifefold.interpreters.testing.refinement import ForeignEntry, foreign_entry

FOREIGN: Final = "foreign_log"
"""The marker of tests whose logs have entries that the shipped rules do not write."""


class Place:
    """A folder with logs of one system, as long as the sandbox or the fixture lives that holds this."""

    def __init__(self, folder: Path, logs: str = ".lifefold/*.db", of: System = fleet) -> None:
        """Enter the folder. ``logs`` is the pattern of the paths of its logs, ``of`` their system."""
        self.folder: Final = folder
        self.of: Final = of
        self._pattern: Final = logs
        _places.add(self)

    def logs(self) -> Iterator[Path]:
        """Yield the logs of the folder, in order."""
        yield from sorted(self.folder.glob(self._pattern))


_places: Final[WeakSet[Place]] = WeakSet()


def foreign_in(log: Path, system: System = fleet) -> ForeignEntry | None:
    """Return the first entry of the log of a system that is no step of the model.

    Return None for a log that cannot be opened, for one of another system, and for one that other rules have written:
    their model is another one.
    """
    try:
        # a test in a browser has left an event loop running in this thread, and one on trio its name
        with ThreadPoolExecutor(1) as thread:
            entries = thread.submit(_entries, log).result()
    except StoreError:
        return None
    kinds = {each.stream.partition("/")[0] for each in entries if each.stream != ENGINE}
    is_of_others = any(each.rules not in {"", rules_version(system)} for each in entries)
    return None if is_of_others or not kinds <= system.aggregates.keys() else foreign_entry(system, entries)


def _entries(log: Path) -> Sequence[Entry]:
    with SqliteStore.peek(log) as store:
        return anyio.run(store.read)


class RecordedRuns:
    """Looks at all logs that have grown, after each test."""

    def __init__(self) -> None:
        """Know no log."""
        self._sizes: Final[dict[Path, tuple[int, int]]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a test that has passed if a log has an entry that is no step of the model."""
        passed = yield
        for log, system in self._grown():
            foreign = None if item.get_closest_marker(FOREIGN) else foreign_in(log, system)
            assert foreign is None, f"{log}: {foreign}"
        return passed

    def _grown(self) -> Iterator[tuple[Path, System]]:
        for place in list(_places):
            for log in place.logs():
                wal = log.with_name(f"{log.name}-wal")
                sizes = log.stat().st_mtime_ns, wal.stat().st_mtime_ns if wal.exists() else 0
                if self._sizes.get(log) != sizes:
                    self._sizes[log] = sizes
                    yield log, place.of
