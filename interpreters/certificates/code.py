"""The modules of a target: those of its parts, and all modules that these import.

Each module has a digest of its syntax tree, so a changed docstring or comment changes no digest. Of lifefold these are
the kernel, the effects, and the lifecycles of the target with the modules of their tables. Of a user's program they
are all modules that are not installed as a library.
"""

import ast
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from lifefold.core.kernel import AggregateType, Machine, Row, System
from lifefold.interpreters.certificates.syntax import DIGITS, digest_of
from lifefold.interpreters.targets.target import Target

OURS: Final = ("lifefold.core", "lifefold.effects")
_ALWAYS: Final = ("lifefold.core.kernel", "lifefold.effects")
_TEXTS: Final = 512
"""The number of texts whose imports are remembered: several targets share modules."""


def code_of(target: Target) -> dict[str, str]:
    """Return the digests of all modules of a target, by name, in the order of the names."""
    todo = [*_ALWAYS, *filter(None, (target.module,)), *_homes(target.subject), *_modules(target.subject)]
    found: dict[str, str] = {}
    while todo:
        name = todo.pop()
        text = _text(name)
        if name not in found and text is not None:
            found[name] = digest_of(text)
            todo += _imports(name, text)
    return dict(sorted(found.items()))


def digest(texts: Mapping[str, str]) -> str:
    """Return one digest for several named texts."""
    state = sha256()
    for name, text in sorted(texts.items()):
        state.update(f"{len(name)} {len(text)} {name}{text}".encode())
    return state.hexdigest()[:DIGITS]


@lru_cache(maxsize=1)
def checker() -> str:
    """Return one digest of the checker's own code: the modules that a search and its verdicts use."""
    return digest(checker_modules())


def checker_modules() -> dict[str, str]:
    """Return the digests of the checker's own modules, by name."""
    todo, found = [_CHECKER], dict[str, str]()
    while todo:
        name = todo.pop()
        spec = find_spec(name)
        if name in found or spec is None or spec.origin is None:
            continue
        text = Path(spec.origin).read_text(encoding="utf-8")
        found[name] = digest_of(text)
        todo += (each for each in _imports(name, text) if each.startswith(_CHECKERS))
    return found


_CHECKER: Final = "lifefold.interpreters.check.checking"
_CHECKERS: Final = tuple(f"lifefold.interpreters.{room}." for room in ("check", "search", "crash"))


def _homes(subject: Machine[Any] | System) -> set[str]:
    """Return the modules of lifefold that define the subject, whatever its first record is.

    A machine with another name here than in its module is found by its rows, and a system with more properties here by
    its rules.
    """
    ours = [(name, module) for name, module in list(sys.modules.items()) if _is_ours(name)]
    named = [(name, word, thing) for name, module in ours for word, thing in list(vars(module).items())]
    if isinstance(subject, System):
        systems = ((name, word, thing) for name, word, thing in named if isinstance(thing, System))
        return {name for name, word, thing in systems if _has_rules(thing, subject) and _makes(name, word)}
    alike = {
        (name, str(thing.name))
        for name, word, thing in named
        if isinstance(thing, Machine) and _has_rows(thing, subject) and _makes(name, word)
    }
    return {name for name, of in alike if of == subject.name} or {name for name, _ in alike}


def _has_rules(thing: System, subject: System) -> bool:
    kinds = thing.aggregates.keys() == subject.aggregates.keys()
    return kinds and all(each.rules is subject.aggregates[kind].rules for kind, each in thing.aggregates.items())


def _has_rows(thing: Any, subject: Machine[Any]) -> bool:
    return list(map(id, thing.rows)) == list(map(id, subject.rows))


def _makes(name: str, word: str) -> bool:
    """Tell whether a module defines this name, and does not only import it."""
    return word in _assigned(_text(name) or "")


@lru_cache(maxsize=_TEXTS)
def _assigned(text: str) -> frozenset[str]:
    """Return the names that a module assigns at its top level."""
    top = ast.parse(text).body
    targets = [each for node in top if isinstance(node, ast.Assign) for each in node.targets]
    targets += [node.target for node in top if isinstance(node, ast.AnnAssign)]
    return frozenset(each.id for each in targets if isinstance(each, ast.Name))


def _is_ours(name: str) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in OURS)


def _modules(subject: Machine[Any] | System) -> Iterator[str]:
    machines: Iterable[Machine[Any]]
    if isinstance(subject, Machine):
        machines = (subject,)
    else:
        yield from (_module(each.holds) for each in subject.properties)
        for of in subject.aggregates.values():
            yield from _of_type(of)
        machines = (machine for of in subject.aggregates.values() for machine in of.machines.values())
    for machine in machines:
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
    yield from (each for each in (row.action, row.when) if each is not None)


def _module(thing: Any) -> str:
    return getattr(thing, "__module__", None) or type(thing).__module__


def _text(name: str) -> str | None:
    """Return the source of a module that counts, else None; line ends are normalised."""
    module = sys.modules.get(name)
    file = None if module is None else _file(module)
    if file is None or not _counts(name, file):
        return None
    return "\n".join(file.read_text(encoding="utf-8").splitlines())


def _file(module: ModuleType) -> Path | None:
    found = getattr(module, "__file__", None)
    return Path(found).resolve() if isinstance(found, str) and found.endswith(".py") else None


def _counts(name: str, file: Path) -> bool:
    if name.partition(".")[0] == "lifefold":
        return _is_ours(name)
    return not any(file.is_relative_to(folder) for folder in _LIBRARIES)


_LIBRARIES: Final = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def _imports(name: str, text: str) -> Iterator[str]:
    """Yield the modules that one imports. A package is one only if a name of its own is imported from it."""
    module = sys.modules[name]
    package = name if hasattr(module, "__path__") else name.rpartition(".")[0]
    for node in _import_statements(text):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(filter(None, (*above, base)))
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in sys.modules else base


@lru_cache(maxsize=_TEXTS)
def _import_statements(text: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom))
