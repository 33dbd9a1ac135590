"""The pytest plugin: ``--lifefold-seed``, the seed of a failed test, and the first difference of two traces.

pytest loads it wherever lifefold is installed, so it imports only those modules of lifefold that import nothing.
"""

from collections.abc import Generator
from importlib import import_module
from typing import Any, Final, Protocol, cast, runtime_checkable

import pytest

from lifefold.interpreters.seed import PRESENT, SEED_LIMIT, present_seed

SEED: Final = pytest.StashKey[int]()

pytest.register_assert_rewrite("lifefold.interpreters.testing")


@runtime_checkable
class Comparable(Protocol):
    """A value that can name the first step in which it differs from another one: a trace."""

    def first_difference(self, other: Any) -> list[str]:
        """Return lines about the first difference."""
        ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    group = parser.getgroup("lifefold")
    group.addoption(
        "--lifefold-seed",
        type=_seed,
        metavar="N",
        help="draw by this seed in check_laws(), in tests that use lifefold_seed, and in those of hypothesis",
    )


def _seed(text: str) -> int:
    number = int(text)
    if not 0 <= number < SEED_LIMIT:
        message = f"a seed is a number from 0 to {SEED_LIMIT - 1}"
        raise ValueError(message)
    return number


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Show the seed, if one was given."""
    given = config.getoption("lifefold_seed")
    return [] if given is None else [f"lifefold: seed {given}"]


@pytest.fixture
def lifefold_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test: that of ``--lifefold-seed``, or a new one, which a failure shows."""
    return _seed_of(cast("pytest.Item", request.node))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Give the test its seed, and hypothesis too if one was given."""
    given: int | None = item.config.getoption("lifefold_seed")
    if given is not None:
        _give_to_hypothesis(item, given)
    token = PRESENT.set(_seed_of(item))
    try:
        return (yield)
    finally:
        PRESENT.reset(token)


def _seed_of(item: pytest.Item) -> int:
    given: int | None = item.config.getoption("lifefold_seed")
    return item.stash.setdefault(SEED, present_seed() if given is None else given)


def _give_to_hypothesis(item: pytest.Item, seed: int) -> None:
    """Decorate a test of hypothesis with its ``@seed``."""
    function: Any = getattr(item, "obj", None)
    test = getattr(function, "__func__", function)
    if getattr(test, "is_hypothesis_test", False):
        import_module("hypothesis").seed(seed)(test)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the seed to the report of a failed test that has used it."""
    report = yield
    asked = "lifefold_seed" in getattr(item, "fixturenames", ())
    if call.when == "call" and report.failed and asked:
        report.sections.append(("lifefold", f"again with: pytest --lifefold-seed={_seed_of(item)} '{item.nodeid}'"))
    return report


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain from which step on two traces differ."""
    if op != "==" or not isinstance(left, Comparable) or type(left) is not type(right):
        return None
    return ["two traces that are not equal", *left.first_difference(right)]
