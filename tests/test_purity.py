"""The guarantee: nothing in core/ or effects/ can observe or change the world.

Every file there is read, not run. It may import only modules that are known to be pure, so a clock, chance, the disk,
the network, a process, a thread or an event loop is out of reach; it may not name a builtin that does input or output,
runs text as code, or gives an answer that differs from one process to the next (`hash` of a string follows
PYTHONHASHSEED, `id` follows memory, and so does the order of a set that is walked where it is written); and it may not
keep state in a module's globals. The import contracts in pyproject.toml say the same by other means.

One exception: the kernel writes the reducers of a machine as code (`core/kernel/compiled.py`) and runs that text, once,
to have the functions. Like every file it is read here, and the text names nothing but what that file gives to it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted(path for folder in ("core", "effects") for path in (ROOT / folder).rglob("*.py"))

PURE_MODULES = frozenset(
    "__future__ abc base64 binascii bisect collections copy dataclasses decimal enum fractions functools hashlib heapq"
    " itertools json keyword math msgspec numbers operator pyrsistent re returns statistics string struct textwrap"
    " types typing typing_extensions unicodedata zlib lifefold.core lifefold.effects".split()
)
IMPURE_BUILTINS = frozenset("__import__ breakpoint compile eval exec globals hash id input open print".split())

COMPILER = Path("core/kernel/compiled.py")


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    prefix = "" if isinstance(node, ast.Import) else f"{'.' * node.level}{node.module or ''}."
    return [prefix + alias.name for alias in node.names]


def is_pure(module: str) -> bool:
    return any(module == pure or module.startswith(f"{pure}.") for pure in PURE_MODULES)


ORDERING = frozenset("list tuple enumerate iter zip map filter reversed dict".split())


def unordered(node: ast.AST) -> bool:
    """Tell whether an expression is a set."""
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case _:
            return False


def walked(node: ast.AST) -> list[ast.expr]:
    """Return the expressions whose order this node depends on."""
    match node:
        case ast.For(iter=over) | ast.comprehension(iter=over) | ast.YieldFrom(value=over) | ast.Starred(value=over):
            return [over]
        case ast.Call(func=ast.Name(id=name), args=given) if name in ORDERING:
            return given
        case ast.Call(func=ast.Attribute(attr="join" | "extend"), args=given):
            return given
        case _:
            return []


def impurities(source: str) -> Iterator[str]:
    """Say, line by line, what in this source text breaks the guarantee."""
    tree = ast.parse(source)
    in_dunder_hash = {
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef) and outer.name == "__hash__"
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                for module in imported(node):
                    if not is_pure(module):
                        yield f"line {node.lineno}: imports {module}"
            case ast.Name(id=name, ctx=ast.Load()) if name in IMPURE_BUILTINS:
                if not (name == "hash" and node in in_dunder_hash):
                    yield f"line {node.lineno}: uses {name}"
            case ast.Global(names=names):
                yield f"line {node.lineno}: rebinds {', '.join(names)} in the module"
            case ast.AsyncFunctionDef(name=name):
                yield f"line {node.lineno}: {name} is asynchronous"
            case _:
                for each in filter(unordered, walked(node)):
                    yield f"line {each.lineno}: walks a set, in no fixed order"


def test_there_is_something_to_read() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == {"core", "effects"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pure(path: Path) -> None:
    found = list(impurities(path.read_text(encoding="utf-8")))
    if path.relative_to(ROOT) == COMPILER:
        assert [line.partition(": ")[2] for line in found] == ["uses exec"]
    else:
        assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path",
        "from random import random",
        "from lifefold.interpreters import store",
        "from lifefold import interpreters",
        "from ... import interpreters",
        "def f():\n    import datetime",
        "if TYPE_CHECKING:\n    from pathlib import Path",
        "open('x')",
        "print('x')",
        "input()",
        "exec('x')",
        "eval('x')",
        "say = print",
        "hash('x')",
        "key = id(state)",
        "__import__('os')",
        "def f():\n    global seen\n    seen = 1",
        "async def f(): pass",
        "for name in {'a', 'b'}: pass",
        "names = [name for name in set(given)]",
        "names = list({'a', 'b'})",
        "names = tuple(set(given))",
        "pairs = list(enumerate(frozenset(given)))",
        "line = ','.join({'a', 'b'})",
        "names.extend({name for name in given})",
        "names = [*{'a', 'b'}]",
        "def f():\n    yield from set(given)",
    ],
)
def test_an_impurity_is_found(source: str) -> None:
    assert list(impurities(source))


@pytest.mark.parametrize(
    "source",
    [
        "from dataclasses import dataclass",
        "from collections.abc import Mapping",
        "from lifefold.effects import model",
        "for name in sorted({'a', 'b'}): pass",
        "line = ','.join(sorted({'a', 'b'}))",
        "names = frozenset(each for each in given)",
        "found = 'a' in {'a', 'b'}",
        "class A:\n    def __hash__(self): return hash((self.a, self.b))",
        "store.open(record.id)",
    ],
)
def test_what_is_pure_passes(source: str) -> None:
    assert list(impurities(source)) == []
