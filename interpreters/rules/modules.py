"""The modules that decide: those of the parts of a machine or a system, and all modules that these import.

Of lifefold these are the kernel, the effects, and the lifecycles of the subject with the modules of their tables. Of a
user's program they are all modules that are not installed as a library. A module is found by its file, whether or not
this process has imported it: processes that import different modules must find the same ones.
"""

import ast
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final, NamedTuple

from lifefold.core.kernel import AggregateType, Machine, Row, System

OURS: Final = ("lifefold.core", "lifefold.effects")
_ALWAYS: Final = ("lifefold.core.kernel", "lifefold.effects")
_TEXTS: Final = 512
"""The number of texts whose imports are remembered: several subjects share modules."""


def seeds_of(subject: Machine[Any] | System) -> set[str]:
    """Return the names of the modules in which the parts of a machine or a system are defined."""
    return {*_ALWAYS, *_homes(subject), *_modules(subject)}


class Source(NamedTuple):
    """The source file of a module, with its bytes."""

    file: Path
    data: bytes

    @property
    def text(self) -> str:
        """The text with one kind of line ends. Bytes that are no UTF-8 are replaced."""
        return "\n".join(self.data.decode("utf-8", errors="backslashreplace").splitlines())


def sources_of(seeds: Iterable[str]) -> dict[str, Source]:
    """Return the sources of modules and of all modules that these import, by name, in the order of the names."""
    todo, found = list(seeds), dict[str, Source]()
    while todo:
        name = todo.pop()
        file = None if name in found else file_of(name)
        if file is not None:
            found[name] = Source(file, file.read_bytes())
            todo += imports_of(name, found[name].text)
    return dict(sorted(found.items()))


def file_of(name: str) -> Path | None:
    """Return the source file of a module that counts, else None."""
    top = name.partition(".")[0]
    if not name or top in sys.stdlib_module_names or (top == "lifefold" and not _is_ours(name)):
        return None
    found = _origin(name)
    if found is None or not found.endswith(".py"):
        return None
    return Path(found) if (_is_ours(name) or not _is_of_a_library(found)) and Path(found).is_file() else None


def _origin(name: str) -> str | None:
    """Return the path of a module's file. A module that is not imported is looked for beside those that are."""
    module = sys.modules.get(name)
    if module is not None:
        found: object = getattr(module, "__file__", None)
        return found if isinstance(found, str) else None
    parent = name.rpartition(".")[0]
    paths: list[str] | None = None
    if parent:
        package = sys.modules.get(parent)
        above = None if package is not None else _origin(parent)
        paths = list(getattr(package, "__path__", ())) or ([str(Path(above).parent)] if above else [])
    spec = PathFinder.find_spec(name, paths)
    return None if spec is None else spec.origin


def _is_ours(name: str) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in OURS)


@lru_cache(maxsize=4096)
def _is_of_a_library(file: str) -> bool:
    return any(Path(file).resolve().is_relative_to(folder) for folder in _LIBRARIES)


_LIBRARIES: Final = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def _homes(subject: Machine[Any] | System) -> set[str]:
    """Return the modules that define the subject, whatever its first record is.

    A machine with another name here than in its module is found by its rows, and a system with more properties here by
    its rules. In a user's modules the subject itself is looked for.
    """
    ours = [(name, module) for name, module in list(sys.modules.items()) if _is_ours(name)]
    named = [(name, word, thing) for name, module in ours for word, thing in list(vars(module).items())]
    if isinstance(subject, System):
        systems = ((name, word, thing) for name, word, thing in named if isinstance(thing, System))
        found = {name for name, word, thing in systems if _has_rules(thing, subject) and _makes(name, word)}
        return found | _homes_of_user(subject, *_machines(subject))
    alike = {
        (name, str(thing.name))
        for name, word, thing in named
        if isinstance(thing, Machine) and _has_rows(thing, subject) and _makes(name, word)
    }
    return ({name for name, of in alike if of == subject.name} or {name for name, _ in alike}) | _homes_of_user(subject)


def _homes_of_user(*parts: object) -> set[str]:
    """Return the modules of a user's program that assign one of these parts at their top level."""
    wanted = set(map(id, parts))
    return {
        name
        for name, module in list(sys.modules.items())
        if _is_of_user(name, module)
        for word, thing in list(vars(module).items())
        if id(thing) in wanted and _makes(name, word)
    }


def _is_of_user(name: str, module: object) -> bool:
    file: object = getattr(module, "__file__", None)
    return not name.startswith("lifefold.") and isinstance(file, str) and not _is_of_a_library(file)


def _has_rules(thing: System, subject: System) -> bool:
    kinds = thing.aggregates.keys() == subject.aggregates.keys()
    return kinds and all(each.rules is subject.aggregates[kind].rules for kind, each in thing.aggregates.items())


def _has_rows(thing: Any, subject: Machine[Any]) -> bool:
    return list(map(id, thing.rows)) == list(map(id, subject.rows))


def _makes(name: str, word: str) -> bool:
    """Tell whether a module defines this name, and does not only import it."""
    file = file_of(name)
    return file is not None and word in _assigned(Source(file, file.read_bytes()).text)


@lru_cache(maxsize=_TEXTS)
def _assigned(text: str) -> frozenset[str]:
    """Return the names that a module assigns at its top level."""
    top = _parsed(text).body
    targets = [each for node in top if isinstance(node, ast.Assign) for each in node.targets]
    targets += [node.target for node in top if isinstance(node, ast.AnnAssign)]
    return frozenset(each.id for each in targets if isinstance(each, ast.Name))


def _machines(subject: Machine[Any] | System) -> list[Machine[Any]]:
    if isinstance(subject, Machine):
        return [subject]
    return [machine for of in subject.aggregates.values() for machine in of.machines.values()]


def _modules(subject: Machine[Any] | System) -> Iterator[str]:
    if isinstance(subject, System):
        yield from (_module(each.holds) for each in subject.properties)
        for of in subject.aggregates.values():
            yield from _of_type(of)
    for machine in _machines(subject):
        yield from _of_machine(machine)


def _of_type(of: AggregateType) -> Iterator[str]:
    yield from (_module(each.follow) for each in of.rules)
    yield from (_module(each.fold) for each in of.views.values())
    yield from (_module(each.holds) for each in of.properties)


def _of_machine(machine: Machine[Any]) -> Iterator[str]:
    yield _module(machine.record)
    yield from (_module(event) for event in machine.events)
    for row in machine.rows:
        yield from map(_module, _functions(row))
    yield from (_module(each) for each in machine.invariants)
    yield from (_module(each.holds) for each in machine.properties)


def _functions(row: Row[Any]) -> Iterator[Any]:
    parts: tuple[Callable[..., Any] | None, ...] = (row.action, row.when)
    yield from (each for each in parts if each is not None)


def _module(thing: Any) -> str:
    return getattr(thing, "__module__", None) or type(thing).__module__


def imports_of(name: str, text: str) -> Iterator[str]:
    """Yield the modules that one imports. A package is one only if a name of its own is imported from it."""
    is_package = (_origin(name) or "").endswith("__init__.py")
    package = name if is_package else name.rpartition(".")[0]
    for node in import_statements(text):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(filter(None, (*above, base)))
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if file_of(inner) is not None else base


def _parsed(text: str) -> ast.Module:
    """Return a syntax tree; an empty one for a file that was changed into no program after it was imported."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


@lru_cache(maxsize=_TEXTS)
def import_statements(text: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the import statements of a module's text, wherever they stand."""
    return tuple(node for node in ast.walk(_parsed(text)) if isinstance(node, ast.Import | ast.ImportFrom))
