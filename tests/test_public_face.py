"""``lifefold`` itself: its public names, found where they are defined, and nothing imported before it is used."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import lifefold

NAMES = (
    "ANY STAY Activity AggregateType Effect Engine Envelope Event Interpreter Ledger Machine MemoryStore Record"
    " SqliteStore State Step System __version__ after alone always always_step check does eventually handles leads_to"
    " replace row rule simulate sometimes strongly weakly"
).split()


def test_these_names_are_public_and_no_other() -> None:
    assert lifefold.__all__ == NAMES
    assert dir(lifefold) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(lifefold, name) is not None


def test_the_version_is_that_of_the_distribution() -> None:
    assert lifefold.__version__ == version("lifefold")


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Robot'"):
        lifefold.Robot  # noqa: B018 - that is the test


def test_importing_lifefold_imports_nothing_else_of_it() -> None:
    """A pytest plugin and a shim are loaded with it, and have to begin at once."""
    program = "import sys, lifefold; print([each for each in sys.modules if each.startswith('lifefold.')])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
