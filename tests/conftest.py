"""What every test run has in common."""

from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile("lifefold", derandomize=True, deadline=None, max_examples=100, print_blob=True)
settings.load_profile("lifefold")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a test log any text, also what is not Unicode: a worker can only report what is."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report
