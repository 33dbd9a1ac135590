"""The targets of checks by name: shipped lifecycles and systems, and those of a user's module.

A shipped target has a *check configuration*: its initial record or its opening, and the bounds that make its search
finite.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final

from lifefold.core.kernel import Machine, Row, System
from lifefold.interpreters.called import called
from lifefold.interpreters.search.configuration import Bounds
from lifefold.interpreters.search.opening import Opening, opened
from lifefold.interpreters.targets.catalogue import machines, systems
from lifefold.interpreters.targets.configurations import CHECK_CONFIGURATIONS, CheckConfiguration
from lifefold.interpreters.targets.target import SHIPPED, Target, UnusableTarget


def known() -> tuple[str, ...]:
    """Return the names of all shipped targets except the larger ones."""
    return (*machines(), *systems())


def larger() -> tuple[str, ...]:
    """Return the names of the shipped targets that take minutes."""
    return tuple(name for name, configuration in CHECK_CONFIGURATIONS.items() if configuration.of)


def named(name: str) -> Target:
    """Return the target of a name, or of ``module:attribute``. Raises ``UnusableTarget``."""
    if ":" in name:
        return _found(name)
    configuration = CHECK_CONFIGURATIONS.get(name, CheckConfiguration())
    of = configuration.of or name
    more = tuple(
        each for module, attribute in configuration.properties for each in getattr(import_module(module), attribute)
    )
    if of in systems():
        return Target(
            name,
            systems()[of].with_properties(*more),
            configuration.opening,
            configuration.bounds,
            (SHIPPED, "systems"),
            f'systems()["{of}"]',
            properties=configuration.properties,
            crashes=configuration.crashes,
        )
    if name not in machines():
        raise UnusableTarget(f"unknown target {name!r};{_meant(name)} {_listed(name)}")
    machine = machines()[name]
    if configuration.record is not None:
        machine = machine.starting(configuration.record)
    machine = machine.with_properties(*more)
    spelled, needs = f'machines()["{name}"]', (SHIPPED, "machines")
    return Target(
        name,
        machine,
        (),
        configuration.bounds,
        needs,
        spelled,
        configuration.record,
        properties=configuration.properties,
        crashes=configuration.crashes,
    )


def of_logs(name: str) -> Target:
    """Return the target of a system by which a log is read: shipped, or ``module:attribute``, with or without opening.

    Raises ``UnusableTarget``.
    """
    if ":" not in name:
        return named(name) if name not in systems() else _shipped(name)
    found, made = _value(name)
    needs = _needs(name)
    spelled = f"{name.partition(':')[2]}{'()' if made else ''}"
    match found:
        case Machine():
            return Target(name, found, (), Bounds(), needs, spelled)
        case System():
            return Target(name, found, (), Bounds(), needs, spelled)
        case (System() as system, _opening):
            return Target(name, system, (), Bounds(), needs, f"{spelled}[0]")
        case _:
            raise UnusableTarget(f"{name} is {called(found)}; accepted: a System, or {_ACCEPTED}")


def _shipped(name: str) -> Target:
    """Return a shipped system with its own properties: those of its small configurations need not hold in every log."""
    return Target(name, systems()[name], (), Bounds(), (SHIPPED, "systems"), f'systems()["{name}"]')


def _needs(name: str) -> tuple[str, str]:
    module, _, attribute = name.partition(":")
    return module, attribute.partition(".")[0]


def _listed(name: str) -> str:
    """Return where targets are listed; for a name like that of a fleet all fleets, because no command lists them."""
    fleets = f"; the small fleets are {', '.join(sorted(larger()))}" if name.startswith("fleet") else ""
    return f"`lifefold machines` lists machines and systems{fleets}; your own is named module:attribute"


def _meant(name: str) -> str:
    """Return a question with the nearest names, or with the target notation of a Python file; empty without any."""
    if name.endswith(".py") or Path(f"{name.replace('.', '/')}.py").is_file():
        return f" did you mean {name.removesuffix('.py').replace('/', '.')}:ATTRIBUTE?"
    nearest = get_close_matches(name.lower(), (*known(), *larger()), n=3)
    return f" did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""


_ACCEPTED: Final = "a Machine, a pair (System, opening), or a function without parameters that returns one of them"


def _value(name: str) -> tuple[Machine[Any] | System | tuple[Any, ...], bool]:
    """Return what a name stands for, and whether a function has made it."""
    module, _, attribute = name.partition(":")
    found = _attribute(name, module, attribute)
    made = _is_function(found)
    return _called(name, found) if made else found, made


def _found(name: str) -> Target:
    _, _, attribute = name.partition(":")
    value, made = _value(name)
    spelled, needs = f"{attribute}{'()' if made else ''}", _needs(name)
    match value:
        case Machine():
            _must_declare_effects(name, value)
            return Target(name, value, (), Bounds(), needs, spelled)
        case (System() as system, opening):
            for machine in (each for kind in system.aggregates.values() for each in kind.machines.values()):
                _must_declare_effects(name, machine)
            return Target(name, system, _opening(name, system, opening), Bounds(), needs, spelled, opened_there=True)
        case System():
            raise UnusableTarget(f"{name} is a System without its opening; accepted: {_ACCEPTED}")
        case _:
            raise UnusableTarget(f"{name} is {called(value)}; accepted: {_ACCEPTED}")


def _must_declare_effects(name: str, machine: Machine[Any]) -> None:
    """Raise ``UnusableTarget`` for actions without a return annotation, naming all of them with their rows."""
    missing = [f"  {row}: {_name_of(row.action)}" for row in machine.rows if not _declares_effects(row)]
    if missing:
        head = f"{name}: these actions of {machine.name!r} do not declare what they return:"
        raise UnusableTarget("\n".join((head, *missing, f"accepted: {_RETURNS}")))


_RETURNS: Final = "a function with a return annotation: -> Step[RECORD, EFFECT | ...], or Step[RECORD, Never]"


def _declares_effects(row: Row[Any]) -> bool:
    with suppress(TypeError, NameError, AttributeError):
        tuple(row.effects)
        return True
    return False


def _name_of(action: object) -> str:
    return str(getattr(action, "__qualname__", action))


def _is_function(found: Any) -> bool:
    return callable(found) and not isinstance(found, type)


def _attribute(name: str, module: str, attribute: str) -> Any:
    """Find the attribute as ``python -m`` would: the current folder comes first."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = _part(name, found, part)
    except UnusableTarget:
        raise
    except Exception as error:
        meant = _meant(module) if module.endswith(".py") else ""
        said = f"{module!r} cannot be imported{_place(error)}: {type(error).__name__}: {error}"
        raise UnusableTarget(f"{name}: {said};{meant.replace('ATTRIBUTE', attribute)}".rstrip(";")) from error
    return found


def _place(error: Exception) -> str:
    """Return the innermost line of a file of this folder that has led to an error; empty without one."""
    here = Path.cwd()
    for frame in reversed(extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(here) and "site-packages" not in frame.filename:
            return f", at {Path(frame.filename).relative_to(here)}:{frame.lineno}"
    return ""


def _part(name: str, of: Any, attribute: str) -> Any:
    try:
        return getattr(of, attribute)
    except AttributeError as error:
        there = [each for each in dir(of) if not each.startswith("_") and not isinstance(getattr(of, each, None), type)]
        nearest = get_close_matches(attribute, there, n=3)
        meant = f"; did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""
        raise UnusableTarget(f"{name}: {error}{meant}") from error


def _called(name: str, found: Callable[[], Any]) -> Any:
    try:
        return found()
    except Exception as error:
        raise UnusableTarget(f"{name}() fails: {type(error).__name__}: {error}") from error


def _opening(name: str, system: System, given: Any) -> Opening:
    try:
        return opened(system, given)
    except ValueError as error:
        raise UnusableTarget(f"{name}: {error}") from error
