"""What every test run has in common.

Properties are tried with few examples here, and with many in a campaign (`make campaigns`). A campaign also runs the
tests with its mark, which are longer forms of other tests. Each test is measured (`slow_tests`).
"""

import atexit
import gc
import os
import shutil
import signal
import sys
import sysconfig
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from case_share import SHARED, CaseShare
from recorded_runs import Place, RecordedRuns
from slow_tests import SlowTests, listed

settings.register_profile("short", derandomize=True, deadline=None, max_examples=30, print_blob=True)
settings.register_profile("campaign", settings.get_profile("short"), max_examples=100)
settings.load_profile("short")

gc.set_threshold(50_000, 20, 50)  # tests make much that stays, and little that only the collector can find


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that leave out cases of long tests."""
    for marker in SHARED:
        told = f"run the first case of each test function with the marker {marker}, and each N-th after it"
        parser.addoption(f"--{marker}-share", type=int, default=1, metavar="N", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C mean what it does on a terminal, here and in what is started; a background job would ignore it.

    Runners note their fleets in a folder of the tests, and not in the user's.
    """
    config.pluginmanager.register(SlowTests(listed()))
    for marker in SHARED:
        config.pluginmanager.register(CaseShare(marker, getattr(config.option, f"{marker}_share")))
    config.pluginmanager.register(RecordedRuns())
    os.environ["XDG_STATE_HOME"] = state = tempfile.mkdtemp(prefix="lifefold-state-")
    atexit.register(shutil.rmtree, state, ignore_errors=True)
    # One cache of versions of rules for all workers and runs: each test would compute the same one.
    os.environ["XDG_CACHE_HOME"] = str(config.rootpath / ".venv" / "cache")
    # A pytest that a test starts loads no plugin in vain: this one takes longer than most such runs.
    os.environ["PYTEST_ADDOPTS"] = f"{os.environ.get('PYTEST_ADDOPTS', '')} -p no:schemathesis".lstrip()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    scripts = sysconfig.get_path("scripts")
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):  # messages name commands as a shell finds them
        os.environ["PATH"] = os.pathsep.join(filter(None, (scripts, os.environ.get("PATH", ""))))


def pytest_collection_finish() -> None:
    """Let the collector leave alone what stays: thousands of tests, and all that they import."""
    gc.collect()
    gc.freeze()


@contextmanager
def _traced_if_covered(item: pytest.Item) -> Generator[None]:
    """Trace nothing in a test that is not to be covered: in a worker, pytest-cov pauses one of two tracers only.

    Slow tests are not traced, because a trace takes more time than the test. A slow test with the marker ``cover``
    takes branches that no other test takes, and is traced.
    """
    marked = {mark.name for mark in item.iter_markers()}
    tracing = sys.gettrace()
    if "no_cover" in marked or ("slow" in marked and "cover" not in marked):
        sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracing)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Make the fixtures of a test as the test is run."""
    with _traced_if_covered(item):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test, traced if it is to be covered."""
    with _traced_if_covered(item):
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run half as many tests again at a time as there are processors: many of them wait for processes."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a test log any text, also what is not Unicode: a worker can only report what is."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture
def recorded_place(tmp_path: Path) -> Place:
    """Enter the temporary folder of a test that runs fleets without a sandbox: each run must be one of the model."""
    return Place(tmp_path, "**/*.db")
