"""Slow tests, by their processor time, and the tests that the list lacks.

``tests/slow.txt`` lists each function with a case of more than ``SLOW_S``, or of a duration of more than ``LONG_S``.
Its cases have the marker ``slow``: ``make test`` leaves them out, ``make test-all`` and the continuous integration run
them. A campaign is listed from some seconds on: ``make campaigns-short`` leaves it out.

A run names at its end each function with a case of more than ``NAMED_S`` that is not listed. The short forms of
``make torture`` are not listed: they run always.

Processor time is that of the test's process, of the processes that it has waited for, and of its commands
(``commands_run``). It depends little on what else the machine does.
"""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Final

import pytest

from processor_time import processor_s

SLOW_S: Final = 0.5
"""A test function with a case that takes longer, in seconds of processor time, is listed."""

LONG_S: Final = 1.0
"""A test function with a case of a longer duration on an idle machine is listed, in seconds. No run measures it."""

NAMED_S: Final = 1.5
"""A case that takes longer and is not listed is named at the end of a run. The rest is for slower processors."""

ROOT: Final = Path(__file__).parents[2]
LIST: Final = ROOT / "tests" / "slow.txt"

ALWAYS: Final = "tests/torture/"
"""The folder of the functions that ``make test`` never leaves out."""

_PROPERTY: Final = "processor_s"
_began: Final = pytest.StashKey[float]()


def listed(path: Path = LIST) -> frozenset[str]:
    """Return the listed functions: the node identifiers without parameters."""
    return frozenset(line for line in path.read_text().splitlines() if line and not line.startswith("#"))


def function_of(case: str) -> str:
    """Return the function of a node identifier."""
    return case.partition("[")[0]


def unlisted(seconds: Mapping[str, float], known: frozenset[str], limit_s: float = NAMED_S) -> list[str]:
    """Return a line for each function with a case over the limit that is not known as slow, the slowest first."""
    most: dict[str, float] = {}
    for case, took in seconds.items():
        most[function_of(case)] = max(took, most.get(function_of(case), 0.0))
    missing = {name: took for name, took in most.items() if name not in known and not name.startswith(ALWAYS)}
    over = sorted((-took, name) for name, took in missing.items() if took > limit_s)
    return [f"{-took:.1f} s  {name}" for took, name in over]


class SlowTests:
    """Marks the listed tests, measures all, and names those that are missing in the list."""

    def __init__(self, known: frozenset[str], limit_s: float = NAMED_S) -> None:
        """Take the listed functions, and the processor time from which on another is named."""
        self.known: Final = known
        self.limit_s: Final = limit_s
        self.seconds: Final[dict[str, float]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark what is listed, before the markers of the command line select."""
        for item in items:
            if function_of(item.nodeid) in self.known:
                item.add_marker(pytest.mark.slow)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin to measure."""
        item.stash[_began] = processor_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the time up to the end of this phase; a worker of pytest-xdist sends it along."""
        del call
        report = yield
        if item.get_closest_marker("cluster") is None:  # `make test` never runs those
            report.user_properties = [*report.user_properties, (_PROPERTY, processor_s() - item.stash[_began])]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the time, in the process that reports the run."""
        took = dict(report.user_properties).get(_PROPERTY)
        if report.when == "teardown" and isinstance(took, float):
            self.seconds[report.nodeid] = took

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the slow tests that are not listed."""
        lines = unlisted(self.seconds, self.known, self.limit_s)
        if lines:
            terminalreporter.section(f"over {self.limit_s} s of processor time, and not in tests/slow.txt")
            for line in lines:
                terminalreporter.line(line)
