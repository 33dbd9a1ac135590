"""The wiring of a system: which events trigger each rule, and which events a rule leads to.

Triggers are declared, so they are read off the rules and the rows. What a rule asks for is decided when it runs. So its
source is read: the events and records that the rule, and the functions that it names, construct. A construction that
is never asked for would be one arrow too many. An event without a construction in the source, such as one that a field
holds, is missing. A test compares the wiring of the shipped fleet with what its rules ask for in simulations.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import lru_cache
from textwrap import dedent
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple, TypeGuard

from lifefold.core.kernel import (
    ActivityEnded,
    AggregateType,
    Create,
    Created,
    Dispatch,
    Does,
    Event,
    Machine,
    Opened,
    Record,
    Rule,
    State,
    System,
)
from lifefold.effects import Tell


class Lead(NamedTuple):
    """An event for the machine of an aggregate of this kind: ``Created`` for a new entity.

    A new aggregate gets ``Opened``, which is for no single machine.
    """

    kind: str
    machine: str
    event: str


class Wire(NamedTuple):
    """A rule of a kind of aggregate, the events that can trigger it, and what it leads to.

    ``is_unconditional``: the rule declares no trigger, so it looks at every transition of its machine.
    """

    kind: str
    rule: Rule
    events: tuple[str, ...]
    leads: tuple[Lead, ...]

    @property
    def is_unconditional(self) -> bool:
        """Whether every transition of the machine triggers the rule."""
        return not (self.rule.events or self.rule.leaves or self.rule.enters)

    @property
    def trigger(self) -> str:
        """The declared trigger in words."""
        parts = [" or ".join(each.__name__ for each in self.rule.events)] if self.rule.events else []
        parts += [f"leaves {_or(self.rule.leaves)}"] if self.rule.leaves else []
        parts += [f"enters {_or(self.rule.enters)}"] if self.rule.enters else []
        where = [f"with {self.rule.beside}"] if self.rule.beside else []
        return ", ".join([", ".join(parts) or "every transition", *where])


def wiring(system: System) -> tuple[Wire, ...]:
    """Return the wires of a system, by kind, in the order of the rules."""
    return tuple(
        Wire(kind, each, tuple(_events(of.machines[each.on], each)), tuple(_leads(system, of, each)))
        for kind, of in system.aggregates.items()
        for each in of.rules
    )


def _or(states: frozenset[State]) -> str:
    return " or ".join(sorted(states))


def _events(machine: Machine[Any], rule: Rule) -> Iterator[str]:
    """Yield the events of a machine that can trigger a rule, by its rows; first the creation of an entity."""
    if any(_fits(rule, Created, None, state) for state in machine.states):
        yield Created.__name__
    for event in machine.events:
        rows = (row for row in machine.rows if row.event is event)
        if any(_fits(rule, event, *change) for row in rows for change in _changes(machine, row)):
            yield event.__name__
    has_activities = any(isinstance(span.during, Does) for span in machine.spans.values())
    if has_activities and _fits(rule, ActivityEnded, None, None):
        yield ActivityEnded.__name__


def _changes(machine: Machine[Any], row: Any) -> Iterator[tuple[State | None, State | None]]:
    """Yield the state that a row leaves and the state that it enters, for each of its sources; None for a stay."""
    for source in machine.sources(row):
        stays = row.target is source or not isinstance(row.target, State)
        yield (None, None) if stays else (source, row.target)


def _fits(rule: Rule, event: type[Event], left: State | None, entered: State | None) -> bool:
    is_of = not rule.events or issubclass(event, rule.events)
    return is_of and (not rule.leaves or left in rule.leaves) and (not rule.enters or entered in rule.enters)


def _leads(system: System, of: AggregateType, rule: Rule) -> Iterator[Lead]:
    """Yield what a rule leads to: in its own aggregate first, then by messages."""
    made = _construct(rule.follow)
    if Create in made.classes:
        for machine in of.machines.values():
            if machine.record in made.classes:
                yield Lead(of.kind, machine.name, Created.__name__)
    if Dispatch in made.classes:
        yield from _accepting(of, made)
    if Tell in made.classes:
        for kind, other in system.aggregates.items():
            if kind != of.kind and made.kinds & {kind, ""}:
                if Opened in made.classes:
                    yield Lead(kind, "", Opened.__name__)
                yield from _accepting(other, made)


def _accepting(of: AggregateType, made: "_Made") -> Iterator[Lead]:
    for machine in of.machines.values():
        for event in machine.events:
            if event in made.classes:
                yield Lead(of.kind, machine.name, event.__name__)


class _Made(NamedTuple):
    """What some functions construct: classes, and the kinds of aggregates that they send messages to."""

    classes: frozenset[type]
    kinds: frozenset[str]


def _construct(follow: Callable[..., Any]) -> _Made:
    """Return what a function constructs, with all functions of its package that it names, at any depth."""
    package = follow.__module__.partition(".")[0]
    todo: list[Any] = [follow]
    done: set[int] = set()
    classes, kinds = set[type](), set[str]()
    while todo:
        function = todo.pop()
        if id(function) in done:
            continue
        done.add(id(function))
        reader = _Reader(function)
        reader.visit(_tree(function))
        classes |= reader.classes
        kinds |= reader.kinds
        todo += (each for each in reader.functions if (each.__module__ or "").partition(".")[0] == package)
    return _Made(frozenset(classes), frozenset(kinds))


@lru_cache(maxsize=1_024)
def _tree(function: FunctionType) -> ast.AST:
    try:
        return ast.parse(dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):  # typed in at a prompt, or a lambda within a line
        return ast.Module([], [])


_MISSING: Final = object()


class _Reader(ast.NodeVisitor):
    """Reads one function: the classes that it calls, and the functions that it names."""

    def __init__(self, function: FunctionType) -> None:
        closure = inspect.getclosurevars(function)
        self._names: Final = {**function.__globals__, **closure.nonlocals}
        self._locals: Final[dict[str, ast.expr]] = {}
        self.classes: Final[set[type]] = set()
        self.kinds: Final[set[str]] = set()
        self.functions: Final[list[Any]] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Read the body and the defaults: annotations and decorators construct nothing."""
        for each in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(each)

    def visit_Call(self, node: ast.Call) -> None:
        called = self._value(node.func)
        if _is_plain(called):
            return
        if isinstance(called, type):
            self.classes.add(called)
            if called is Tell and node.args:
                self._send(node.args[0])
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Remember what a name stands for, such as the receiver of several messages."""
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._locals[target.id] = node.value
        self.generic_visit(node)

    def _send(self, to: ast.expr) -> None:
        """Note the kind of aggregate of a message: the first part of its name. An empty one stands for any kind."""
        to = self._locals.get(to.id, to) if isinstance(to, ast.Name) else to
        first = to.values[0] if isinstance(to, ast.JoinedStr) and to.values else to
        first = first.value if isinstance(first, ast.FormattedValue) else first
        begins = first.value if isinstance(first, ast.Constant) else self._value(first)
        self.kinds.add(begins.partition("/")[0] if isinstance(begins, str) else "")

    def visit_Name(self, node: ast.Name) -> None:
        self._note(self._value(node))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        value = self._value(node)
        if value is _MISSING:
            self.generic_visit(node)
        else:
            self._note(value)

    def _note(self, value: Any) -> None:
        if isinstance(value, Rule):
            self.functions.append(value.follow)
        elif isinstance(value, FunctionType) and not _is_plain(value):
            self.functions.append(value)
        elif isinstance(value, Event | Record):
            self.classes.add(type(value))
        elif _is_tuple(value):
            for each in value:
                self._note(each)

    def _value(self, node: ast.expr) -> Any:
        """Return the value of a name, or of a name in a module."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, _MISSING)
        if isinstance(node, ast.Attribute):
            home = self._value(node.value)
            return getattr(home, node.attr, _MISSING) if isinstance(home, ModuleType) else _MISSING
        return _MISSING


def _is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    """Tell whether a value is a tuple, such as a table of functions that a rule runs one after the other."""
    return isinstance(value, tuple)


def _is_plain(function: Any) -> bool:
    """Tell whether a function returns a truth value, a number or a text: an event that it gets is not asked for."""
    if not isinstance(function, FunctionType):
        return False
    returned = function.__annotations__.get("return")
    return returned in {bool, int, str, "bool", "int", "str"}
