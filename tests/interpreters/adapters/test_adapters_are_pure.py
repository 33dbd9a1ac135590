"""Adapters reach no clock, chance, disk, network or process, and no other part of the interpreters."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifefold.interpreters import adapters

FOLDER = Path(adapters.__file__).parent
ALLOWED = {"collections.abc", "datetime", "decimal", "difflib", "enum", "functools", "msgspec", "re", "typing"}
OUTSIDE = {"registry.py": {"importlib.metadata"}}
"""The registry alone looks at what is installed."""


def imported(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_an_adapter_imports_the_core_and_other_adapters_only(path: Path) -> None:
    own = ("lifefold.core", "lifefold.effects", "lifefold.interpreters.adapters")
    others = {each for each in imported(path) if not each.startswith(own)}
    assert others <= ALLOWED | OUTSIDE.get(path.name, set())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_an_adapter_asks_for_no_moment_and_opens_no_file(path: Path) -> None:
    """The moment is an argument."""
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert not {"open", "print", "input", "datetime.now", "datetime.today", "datetime.utcnow"} & {*calls}
