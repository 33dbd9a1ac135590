"""The kit exports these names, each with a docstring or a page."""

import inspect
from pathlib import Path
from typing import Final

import pytest

from lifefold.interpreters import testing

PAGE: Final = (Path(__file__).parents[3] / "docs" / "testing.md").read_text()

EXPORTED: Final = """
    ADAPTER_CHECKS INTERPRETER_CHECKS STORE_CHECKS AdapterBench AdapterCheck AdapterConformance Aspect Bench
    EvolutionError Example ForeignEntry Harness InterpreterCheck InterpreterConformance LawBrokenError Log OldLog
    OpeningRefusedError Recording StoreCheck StoreConformance Taken Trace check_evolution check_laws check_store
    events foreign_entry is_behaviour systems traces
""".split()


def test_the_kit_exports_these_names() -> None:
    """Nothing by accident, nothing that is missing."""
    assert testing.__all__ == EXPORTED


@pytest.mark.parametrize("name", EXPORTED)
def test_what_is_exported_says_what_it_is(name: str) -> None:
    """Classes and functions, with what they can be asked."""
    exported = getattr(testing, name)
    if inspect.isclass(exported) or inspect.isfunction(exported):
        assert inspect.getdoc(exported)
    methods = inspect.getmembers(exported, inspect.isfunction) if inspect.isclass(exported) else []
    own = [method for at, method in methods if not at.startswith("_") and "lifefold" in method.__module__]
    assert [method.__name__ for method in own if not inspect.getdoc(method)] == []


def test_the_page_names_what_a_test_begins_with() -> None:
    """The rest is met on the way, in a failure or in a signature."""
    begins = "Harness events traces systems check_laws StoreConformance STORE_CHECKS InterpreterConformance".split()
    assert [name for name in begins if f"`{name}" not in PAGE] == []
