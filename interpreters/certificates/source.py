"""Values as Python expressions, with the imports that they need."""

import sys
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final

import msgspec
from pyrsistent import PMap, PSet, PVector

from lifefold.core.kernel import PersistentMap


class Unwritable(ValueError):
    """A value has no expression, or its type cannot be imported; the message says which."""


class Names:
    """The names that a file imports: each type under its own name, or under another one if that is taken."""

    def __init__(self, *taken: str) -> None:
        """Begin without imports; ``taken`` are names with another meaning."""
        self._of: Final[dict[tuple[str, str], str]] = {}
        self._taken: Final = set(taken)

    def of(self, module: str, name: str) -> str:
        """Return the name of an imported object in the file."""
        key = (module, name)
        if key not in self._of:
            known, number = name, 2
            while known in self._taken:
                known, number = f"{name}_{number}", number + 1
            self._taken.add(known)
            self._of[key] = known
        return self._of[key]

    def lines(self) -> list[str]:
        """Return the import statements."""
        modules: dict[str, list[str]] = {}
        for (module, name), known in self._of.items():
            modules.setdefault(module, []).append(name if name == known else f"{name} as {known}")
        return [f"from {module} import {', '.join(sorted(modules[module]))}" for module in sorted(modules)]

    def expression(self, value: Any) -> str:
        """Return a value as an expression, without default fields. Raises ``Unwritable``."""
        for kind, write in _WRITERS:
            if isinstance(value, kind):
                return write(self, value)
        raise Unwritable(f"there is no expression for a {type(value).__name__}: {value!r}")


def _struct(names: Names, value: msgspec.Struct) -> str:
    """Write the fields that differ from their defaults."""
    every, defaults = value.__struct_fields__, value.__struct_defaults__
    usual = dict(zip(every[len(every) - len(defaults) :], defaults, strict=True))
    shown = {name: getattr(value, name) for name in every}
    fields = [
        f"{name}={names.expression(held)}"
        for name, held in shown.items()
        if name not in usual or usual[name] is msgspec.NODEFAULT or usual[name] != held
    ]
    return f"{_type(names, type(value))}({', '.join(fields)})"


def _type(names: Names, kind: type) -> str:
    outer, _, inner = kind.__qualname__.partition(".")
    if "<locals>" in kind.__qualname__:
        raise Unwritable(f"{kind.__module__}.{kind.__qualname__} cannot be imported: it is made inside a function")
    name = outer if kind.__module__ == "builtins" else names.of(_exporter(kind.__module__, outer), outer)
    return f"{name}.{inner}" if inner else name


def _exporter(module: str, name: str) -> str:
    """Return the outermost package that has the same object under the same name."""
    thing = getattr(sys.modules.get(module), name, None)
    components = module.split(".")
    above = (".".join(components[:length]) for length in range(1, len(components)))
    return next((each for each in above if thing is not None and _has(each, name, thing)), module)


def _has(module: str, name: str, thing: object) -> bool:
    return getattr(sys.modules.get(module), name, None) is thing


def _enum(names: Names, value: Enum) -> str:
    return f"{_type(names, type(value))}.{value.name}"


def _tuple(names: Names, value: tuple[Any, ...]) -> str:
    return f"({_all(names, value)},)" if len(value) == 1 else f"({_all(names, value)})"


def _list(names: Names, value: Iterable[Any]) -> str:
    return f"[{_all(names, value)}]"


def _set(names: Names, value: Iterable[Any]) -> str:
    return f"{type(value).__name__}([{', '.join(sorted(map(names.expression, value)))}])"


def _pset(names: Names, value: Iterable[Any]) -> str:
    return f"{names.of('pyrsistent', 'pset')}([{', '.join(sorted(map(names.expression, value)))}])"


def _mapping(names: Names, value: Mapping[Any, Any]) -> str:
    pairs = (f"{names.expression(key)}: {names.expression(held)}" for key, held in value.items())
    return f"{{{', '.join(pairs)}}}"


def _pmap(names: Names, value: Mapping[Any, Any]) -> str:
    return f"{names.of('pyrsistent', 'pmap')}({_mapping(names, value)})"


def _persistent_map(names: Names, value: Mapping[Any, Any]) -> str:
    return f"{names.of('lifefold.core.kernel', 'PersistentMap')}({_mapping(names, value)})"


def _pvector(names: Names, value: Iterable[Any]) -> str:
    return f"{names.of('pyrsistent', 'pvector')}({_list(names, value)})"


def _all(names: Names, values: Iterable[Any]) -> str:
    return ", ".join(map(names.expression, values))


def _quoted(text: str) -> str:
    plain = repr(text)
    return f'"{plain[1:-1]}"' if plain.startswith("'") and '"' not in plain else plain


_WRITERS: Final[tuple[tuple[Any, Callable[[Names, Any], str]], ...]] = (
    (msgspec.Struct, _struct),
    (Enum, _enum),
    (str, lambda _names, value: _quoted(value)),
    (bool | float | bytes | None, lambda _names, value: repr(value)),
    (int, lambda _names, value: f"{value:_}"),
    (type, _type),
    (tuple, _tuple),
    (list, _list),
    (PSet, _pset),
    (AbstractSet, _set),
    (dict, _mapping),
    (PMap, _pmap),
    (PersistentMap, _persistent_map),
    (PVector, _pvector),
)
"""The writers of each kind of value; the first that fits is used."""
