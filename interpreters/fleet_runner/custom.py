"""The interpreters that a fleet file puts before the standard one: loaded, made, and composed.

Each is made by a *factory*: a class or function that is called with the ``RunContext`` and its options. It returns an
``Interpreter``, or an object whose methods are handlers. The fleet file names it as ``module:attribute``, in a module
beside the fleet file or installed, or by an entry point of the group ``lifefold.interpreters``. All errors are found
before anything is written, and reported with their place in the fleet file.
"""

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from lifefold.effects import RunSession
from lifefold.interpreters.engine import EffectContext, Interpreter
from lifefold.interpreters.fleet_file import Fleet, InterpreterEntry
from lifefold.interpreters.fleet_file.interpreters import KINDS
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.specs import session_spec
from lifefold.interpreters.processes import SessionSpec
from lifefold.interpreters.processes.private import write_whole
from lifefold.interpreters.worktrees.workplace import Workplace

GROUP: Final = "lifefold.interpreters"
"""The group of entry points that a fleet file may name."""

OWN: Final = tuple(f"{Path(__file__).parents[2] / part}{os.sep}" for part in ("core", "effects", "interpreters"))
"""The folders of lifefold's own modules; an error message names a frame outside them."""


class RunContext(msgspec.Struct, frozen=True):
    """The context of an interpreter: a fleet, and the run of its log.

    ``run`` identifies the log: together with the identity of an effect context it identifies an effect uniquely.
    ``folder`` has the files of the run, ``workplace`` the worktrees of agents. ``below`` is the interpreter below this
    one; it has a handler for every effect. ``tell(agent, message)`` shows the operator a notice.
    """

    fleet: Fleet
    run: str
    folder: FleetFolder
    workplace: Workplace
    below: Interpreter
    tell: Callable[[str, str], None]
    present: Callable[[], Fleet] | None = None
    """Returns the fleet with the plan in force; without it, ``fleet`` is in force."""

    def session(self, activity: RunSession, context: EffectContext) -> SessionSpec:
        """Return the specification of a session: command, folder and environment; write the file of its prompt."""
        write_whole(self.folder.prompt(context.within.key, activity.attempt), activity.prompt)
        fleet = self.fleet if self.present is None else self.present()
        return session_spec(fleet, self.folder, self.workplace, activity, context, self.run)


Factory: TypeAlias = Callable[..., object]
"""Called with the run context and the options; returns an interpreter, or an object with handlers."""


class UnusableInterpreterError(Exception):
    """Interpreters of a fleet file are unusable; the message has each one with its place and the reason."""


def found(fleet: Fleet) -> list[tuple[InterpreterEntry, Factory]]:
    """Load the factories that a fleet file names. Raises ``UnusableInterpreterError`` with all errors."""
    factories: list[tuple[InterpreterEntry, Factory]] = []
    problems: list[str] = []
    if not fleet.interpreters:
        return factories
    folder = fleet.source.parent.resolve()
    _forget_others(folder)
    with _beside(folder):
        for entry in fleet.interpreters:
            try:
                factory = _loaded(entry, folder)
                _must_take(entry, factory)
                factories.append((entry, factory))
            except _Unusable as error:
                problems.append(str(error))
    _raise(problems)
    return factories


def composed(factories: Iterable[tuple[InterpreterEntry, Factory]], context: RunContext) -> Interpreter:
    """Compose interpreters over the one below, the first on top. Raises ``UnusableInterpreterError`` likewise."""
    whole = context.below
    problems: list[str] = []
    for entry, factory in reversed([*factories]):
        try:
            mine = _made(entry, factory, msgspec.structs.replace(context, below=whole))
            whole = _chosen(entry, mine).over(whole)
        except _Unusable as error:
            problems.insert(0, str(error))
    _raise(problems)
    return whole


class _Unusable(Exception):
    """One error, with its place in the fleet file."""

    def __init__(self, entry: InterpreterEntry, key: str, message: str) -> None:
        super().__init__(f"{entry.places.get(key, '')}{message}")


def _raise(problems: list[str]) -> None:
    if problems:
        raise UnusableInterpreterError("\n".join(problems))


@contextmanager
def _beside(folder: Path) -> Generator[None]:
    """Search a folder first for modules, as Python does for a script in it; and afterwards last.

    So later imports of such a module are found, and lifefold's own imports never take a module of that folder.
    """
    before = {*sys.modules}
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        _LOADED.update({name: folder for name in sys.modules.keys() - before if _files(folder, name)})
        sys.path.remove(str(folder))
        if str(folder) not in sys.path:
            sys.path.append(str(folder))


_LOADED: Final[dict[str, Path]] = {}
"""Modules that this process has loaded from beside fleet files, with their folders."""


def _forget_others(folder: Path) -> None:
    """Forget modules beside other fleet files that have a namesake here; importers keep the ones they have."""
    for name, other in [*_LOADED.items()]:
        if other != folder and _files(folder, name):
            del _LOADED[name]
            for each in [*sys.modules]:
                if each.partition(".")[0] == name:
                    del sys.modules[each]


def _files(folder: Path, name: str) -> list[Path]:
    """Return the source files of a module in a folder; empty without one."""
    return [path for path in (folder / name / "__init__.py", folder / f"{name}.py") if path.is_file()]


def _must_be_own(entry: InterpreterEntry, folder: Path) -> None:
    """Refuse a module beside the fleet file that would not be imported, because a loaded module has its name."""
    name = entry.use.partition(":")[0].partition(".")[0]
    own = _files(folder, name)
    if own and name in sys.modules:
        there = getattr(sys.modules[name], "__file__", None)
        if there is None or Path(there).resolve() not in [path.resolve() for path in own]:
            taken = f"there is a module {name} already, {there or 'of Python itself'}"
            raise _Unusable(
                entry, "use", f"{entry.use} cannot be loaded: {taken}; give the one in {folder} another name"
            )


def _loaded(entry: InterpreterEntry, folder: Path) -> Factory:
    """Return the factory of an entry."""
    if ":" not in entry.use:
        return _installed(entry)
    module, _, path = entry.use.partition(":")
    _must_be_own(entry, folder)
    try:
        factory: object = attrgetter(path)(import_module(module))
    except (Exception, SystemExit) as error:
        raise _Unusable(entry, "use", f"{entry.use} cannot be loaded: {_explained(error)}") from error
    return _callable(entry, entry.use, factory)


def _installed(entry: InterpreterEntry) -> Factory:
    """Return the factory of an installed entry point."""
    points = {(point.value, _distribution(point)): point for point in entry_points(group=GROUP, name=entry.use)}
    if len(points) > 1:
        which = "; ".join(sorted(f"{value} of {distribution}" for value, distribution in points))
        raise _Unusable(entry, "use", f"{entry.use} names several interpreters: {which}; accepted: one of them")
    for (value, distribution), point in points.items():
        what = f"{entry.use} ({value} of {distribution})"
        try:
            return _callable(entry, what, point.load())
        except (Exception, SystemExit) as error:
            if isinstance(error, _Unusable):
                raise
            raise _Unusable(entry, "use", f"{what} cannot be loaded: {_explained(error)}") from error
    names = sorted(entry_points(group=GROUP).names)
    close = get_close_matches(entry.use, names, n=1)
    hint = f'; did you mean "{close[0]}"?' if close else ""
    accepted = ", ".join([*names, '"module:attribute"'])
    raise _Unusable(entry, "use", f"no interpreter {entry.use} is installed; accepted: {accepted}{hint}")


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"


def _callable(entry: InterpreterEntry, what: str, factory: object) -> Factory:
    if not callable(factory):
        accepted = "a class, or a function, that is called with the run context and its options"
        raise _Unusable(entry, "use", f"{what} is {factory!r}; accepted: {accepted}")
    return factory


def _made(entry: InterpreterEntry, factory: Factory, context: RunContext) -> Interpreter:
    """Call a factory with its options."""
    try:
        made = factory(context, **entry.options)
        return made if isinstance(made, Interpreter) else Interpreter.of(made)
    except (Exception, SystemExit) as error:
        place = _blamed(entry, error)
        raise _Unusable(entry, place, f"{entry.use} cannot be made: {_explained(error)}") from error


def _blamed(entry: InterpreterEntry, error: BaseException) -> str:
    """Return the option that an error names first, or the only one whose value it quotes; otherwise ``use``."""
    said = str(error) if isinstance(error, ValueError | TypeError) else ""
    named = [key for key in entry.options if said.startswith(f"{key}:")]
    quoted = [key for key, value in entry.options.items() if isinstance(value, str) and repr(value) in said]
    found = named or quoted
    return found[0] if len(found) == 1 else "use"


def _must_take(entry: InterpreterEntry, factory: Factory) -> None:
    """Refuse unknown and missing options before the factory raises an error of its own."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # such as a function in C
        return
    _context, *parameters = signature.parameters.values() or [None]
    if any(each.kind is each.VAR_KEYWORD for each in parameters if each):
        return
    names = [each.name for each in parameters if each and each.kind in {each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD}]
    for option in entry.options:
        if option not in names:
            close = get_close_matches(option, ["for", *names], n=1)
            hint = f'did you mean "{close[0]}"?' if close else f"accepted: {', '.join(['for', *names])}"
            raise _Unusable(entry, option, f"{entry.use} has no such option; {hint}")
    try:
        signature.bind("the run context", **entry.options)
    except TypeError as error:
        accepted = f"its options are {', '.join(names)}" if names else "it has no options"
        raise _Unusable(entry, "use", f"{entry.use} cannot be made: {error}; {accepted}") from error


def _chosen(entry: InterpreterEntry, mine: Interpreter) -> Interpreter:
    """Return the handlers of an interpreter that the fleet file asks for."""
    kinds = {KINDS[name] for name in entry.kinds}
    served = {*mine.effects, *mine.activities}
    lacking = sorted(kind.__name__ for kind in kinds - served)
    if lacking:
        accepted = ", ".join(sorted(kind.__name__ for kind in served if kind in KINDS.values()))
        raise _Unusable(entry, "for", f"{entry.use} has no handler for {', '.join(lacking)}; accepted: {accepted}")
    return mine.only(kinds) if kinds else mine


def _explained(error: BaseException) -> str:
    """Return an error as text, with its place in the user's modules if it has one."""
    ours = (__file__, sys.modules[import_module.__module__].__file__, sys.modules[EntryPoint.__module__].__file__)
    frames: list[Any] = [each for each in traceback.extract_tb(error.__traceback__) if each.filename not in ours]
    theirs = [each for each in frames if not each.filename.startswith(("<frozen ", *OWN))]
    place = f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""
    return f"{type(error).__name__}: {error}{place}"
