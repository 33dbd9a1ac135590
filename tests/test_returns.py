"""The guarantee: lifefold uses ``returns`` by its public names alone, and product code folds with ``reduce``.

Every source file is read, not run. A module or an attribute with a leading underscore belongs to the library, which may
change it in any version; ``core/`` and ``effects/`` included, no product module names one.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_origin, get_type_hints

import pytest
import returns
from returns.primitives.container import BaseContainer
from returns.result import Failure, Result, Success

from lifefold.interpreters.fleet_file import loading

ROOT = Path(__file__).parent.parent
SOURCES = [path for folder in ("core", "effects", "interpreters") for path in sorted((ROOT / folder).rglob("*.py"))]

PRIVATE = frozenset(
    name
    for kind in (Result, Success, Failure, BaseContainer)
    for each in kind.__mro__
    for name in vars(each)
    if name.startswith("_") and not name.endswith("__") and each.__module__.partition(".")[0] == returns.__name__
)
"""Private names of the containers, as the installed version has them."""


def is_private(name: str) -> bool:
    return any(part.startswith("_") for part in name.split("."))


def private_uses(source: str) -> Iterator[str]:
    """Say, line by line, what in this source text is private to ``returns``."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                named = [alias.name for alias in names if alias.name.partition(".")[0] == returns.__name__]
            case ast.ImportFrom(module=str(module), names=names, level=0) if module.partition(".")[0] == "returns":
                named = [f"{module}.{alias.name}" for alias in names]
            case ast.Attribute(value=ast.Name(id="self")):
                continue  # a slot of our own class: none of them is a container of the library
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)) if name in PRIVATE:
                yield f"line {node.lineno}: {name}"
                continue
            case _:
                continue
        yield from (f"line {node.lineno}: {name}" for name in named if is_private(name))


def calls_of(attribute: str, source: str) -> Iterator[int]:
    """Yield the line of every call of a method of this name on something that is called a machine."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name)):
                if name == attribute and "machine" in owner:
                    yield node.lineno
            case _:
                pass


def test_the_library_has_the_private_names_that_are_looked_for() -> None:
    assert "_inner_value" in PRIVATE
    assert len(SOURCES) > 100


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_touches_what_is_private_to_returns(path: Path) -> None:
    assert list(private_uses(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "from returns._internal.pipeline.flow import flow",
        "import returns._internal",
        "from returns import _internal",
        "value = result._inner_value",
        "set_value = BaseContainer.__dict__['_inner_value'].__set__",
        "value = getattr(result, '_inner_value')",
    ],
)
def test_a_private_use_is_found(source: str) -> None:
    assert list(private_uses(source))


@pytest.mark.parametrize(
    "source", ["from returns.result import Success", "import returns.result", "value = result.unwrap()", "self._trace"]
)
def test_a_public_use_passes(source: str) -> None:
    assert list(private_uses(source)) == []


def test_interpreters_fold_with_reduce() -> None:
    """The engine's loop keeps ``step``, inside ``advance``; everything beside it that asks a machine gets a Result."""
    read = [path.relative_to(ROOT) for path in SOURCES if path.relative_to(ROOT).parts[0] == "interpreters"]
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in read}
    assert {path.parts[1] for path, text in texts.items() if any(calls_of("reduce", text))} >= {"facades", "simulate"}
    assert [str(path) for path, text in texts.items() if any(calls_of("step", text))] == []


def test_the_fleet_file_is_a_pipeline_of_results() -> None:
    """Each stage before the fleet itself may fail, and says so by its type."""
    for stage in (loading.read, loading.text_of, loading.document_of, loading.validated):
        assert get_origin(get_type_hints(stage)["return"]) is Result, stage
