"""Each test says what it requires: it asserts, or it calls a helper whose name says that the helper asserts."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MODULES = sorted(TESTS.rglob("test_*.py"))
ASSERTING = ("assert_", "must_", "expect")
"""The beginnings of the names of asserting helpers."""

OF_LIBRARIES = {"raises", "warns", "RaisesGroup", "fail", "validate", "run_state_machine_as_test", "check_laws"}
"""The names of libraries, and of the public test kit, that raise an error for a broken guarantee."""


def name(path: Path) -> str:
    return str(path.relative_to(TESTS))


def names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=found) | ast.Attribute(attr=found):
                yield found
            case _:
                pass


def is_asserting(tree: ast.AST) -> bool:
    """Tell whether a test has an assertion, or names something that asserts."""
    if any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        return True
    return any(each in OF_LIBRARIES or each.startswith(ASSERTING) for each in names_in(tree))


def silent(source: str) -> list[str]:
    """Return the names of the tests without an assertion."""
    found = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [each.name for each in found if each.name.startswith("test_") and not is_asserting(each)]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_each_test_asserts(path: Path) -> None:
    assert silent(path.read_text()) == []


def test_a_test_without_an_assertion_is_found() -> None:
    """A helper of any other name does not count."""
    assert silent(
        "def test_a():\n    check(1)\n\ndef test_b():\n    must_hold(1)\n\ndef test_c():\n    assert 1\n"
    ) == ["test_a"]
