"""The guarantee: no module imports itself on any way, not within a function either. Annotations do not count."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = ("core", "effects", "interpreters")


def modules() -> dict[str, str]:
    """Return the texts of all modules, by their names; a package has the name of its folder."""
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    names = {file: ".".join(("lifefold", *file.relative_to(ROOT).with_suffix("").parts)) for file in files}
    return {name.removesuffix(".__init__"): file.read_text(encoding="utf-8") for file, name in names.items()}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a module but those under ``if TYPE_CHECKING``."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from statements(child)


def imported(text: str, known: frozenset[str]) -> set[str]:
    """Return the modules that a text imports: of ``from package import name`` the module of that name, if it is one."""
    found = set[str]()
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{each.name}" for each in node.names}
            found |= (parts & known) | ({node.module} if parts - known else set())
    return found & known


def in_order(texts: dict[str, str]) -> list[str]:
    """Return all modules, each after those that it imports. Raises ``CycleError`` with the modules of a circle."""
    known = frozenset(texts)
    return list(TopologicalSorter({name: imported(text, known) for name, text in texts.items()}).static_order())


def test_no_module_imports_itself_on_any_way() -> None:
    assert len(in_order(modules())) > 800


@pytest.mark.parametrize(
    "second",
    [
        "import lifefold.a",
        "from lifefold import a",
        "from lifefold.a import x",
        "def f():\n    from lifefold.a import x",
    ],
)
def test_a_circle_of_two_is_found_in_whatever_way_it_is_written(second: str) -> None:
    texts = {"lifefold": "", "lifefold.a": "from lifefold.b import y", "lifefold.b": second}
    with pytest.raises(CycleError, match="cycle"):
        in_order(texts)


def test_an_import_for_annotations_alone_is_no_circle() -> None:
    only = "if TYPE_CHECKING:\n    from lifefold.a import x"
    assert in_order({"lifefold.a": "import lifefold.b", "lifefold.b": only}) == ["lifefold.b", "lifefold.a"]
