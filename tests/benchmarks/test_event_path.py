"""The way of one event from the interpreter's report to its committed entry does not grow."""

from typing import Final

import pytest

from benchmarks import event_path

FUNCTIONS: Final = 87
FILES: Final = 28


@pytest.fixture(scope="module")
def path() -> event_path.EventPath:
    return event_path.measure()


def test_an_event_passes_no_more_functions_than_before(path: event_path.EventPath) -> None:
    """A new hop needs a reason, and a smaller figure here is an improvement to keep."""
    assert (len(path.functions), len(path.files)) == (FUNCTIONS, FILES), "\n".join(path.tree())


def test_the_path_leads_from_the_report_to_the_transaction(path: event_path.EventPath) -> None:
    """The measure sees the handler's report, the kernel, the rules of the worker, and the thread of the store."""
    names = [each.name for each in path.functions]
    for name in ("RunningActivity.report", "LogWriter.commit", "advance", "work_ends", "SqliteStore._append"):
        assert name in names
    assert names[0] == "RunningActivity.report"
    assert len(list(path.tree())) == len(path.functions)
