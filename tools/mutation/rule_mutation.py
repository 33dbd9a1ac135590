"""Mutants of the rules of a system, made from their source by the grammar of Python alone.

One node in the source of one rule is changed, and the module is executed again beside the original. A rule action is
left out, repeated, addressed to another entity, or has another number or another place. Another event is sent, or a
view loses a field. Conditions change as ``rule_conditions`` says. A whole rule is lost, or runs after the next one.
A trigger of a rule changes as ``rule_triggers`` says. Texts for operators stay as they are.
"""

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import fields

from lifefold.core.kernel import AggregateType, Event, Rule
from rule_conditions import Variant, conditions, named_class
from rule_modules import Written, name_of, restored
from rule_places import watched
from rule_triggers import other_triggers

NUMBERS: Final = ("epoch",)
"""Fields that identify a claim: one more or less is another claim."""

SAID: Final = ("compose",)
"""Functions that only make texts for operators."""


class Made(NamedTuple):
    """The rules of a mutant for its aggregate type, and the fold of its view, if it has one."""

    rules: tuple[Rule, ...]
    fold: Callable[..., Any] | None = None


class RuleMutant(NamedTuple):
    """A mutant of a rule: its part and aggregate type, its kind, its name, and how to make it.

    It can differ only where the function ``within`` runs; if that is empty, it can differ anywhere.
    """

    part: str
    of: str
    kind: str
    name: str
    within: str
    make: Callable[[], Made]


class Source:
    """The modules with a part of the rules of an aggregate type, and those that must be executed again with them."""

    def __init__(
        self, *modules: ModuleType, names: Sequence[str], name: str = "", changed: Sequence[ModuleType] = ()
    ) -> None:
        """Read the modules. The last one has the type; each may import from those before it.

        The functions and tables with these ``names`` are mutated, in the ``changed`` modules or in all. Without a
        ``name``, the source has the name of the type.
        """
        self.of: Final[AggregateType] = modules[-1].aggregate
        self.name: Final = name or self.of.kind
        self._names: Final = names
        self._written: Final = tuple(map(Written, modules))
        self._changed: Final = frozenset(each.__name__ for each in changed or modules)

    def missing(self) -> list[str]:
        """Return the names that no changed module has: nothing of them is mutated."""
        there = {name_of(top) for each in self._written for top in each.body if self._is_changed(each, top)}
        rules = {each.follow.__name__ for each in self.of.rules if self.has(each)}
        return [name for name in self._names if name not in there | rules]

    def has(self, of: Rule) -> bool:
        """Tell whether a rule belongs to this part."""
        name, module = of.follow.__name__, of.follow.__module__
        return name in self._names and module in self._changed

    def mutants(self) -> tuple[RuleMutant, ...]:
        """Return every mutant, each with a unique name; mutants with the same text count once."""
        found: dict[str, RuleMutant] = {}
        for each in (*self._of_rules(), *self._of_text()):
            name, again = each.name, 1
            while name in found:
                again += 1
                name = f"{each.name} ({again})"
            found[name] = each._replace(name=name)
        return tuple(found.values())

    def _of_rules(self) -> Iterator[RuleMutant]:
        rules, kind = self.of.rules, self.of.kind
        for place, each in enumerate(rules):
            left = (*rules[:place], *rules[place + 1 :])
            name = f"{self.name}: {each.name} on {each.on}: is not there"
            if self.has(each):
                yield RuleMutant(
                    self.name, kind, "rule lost", name, each.follow.__qualname__.partition(".")[0], partial(Made, left)
                )
                yield from self._of_triggers(place)
        for machine in self.of.machines:
            places = [place for place, each in enumerate(rules) if each.on == machine]
            for one, other in pairwise(places):
                swapped = list(rules)
                swapped[one], swapped[other] = rules[other], rules[one]
                name = f"{self.name}: {rules[one].name} on {machine}: comes after {rules[other].name}"
                if self.has(rules[one]) or self.has(rules[other]):
                    yield RuleMutant(self.name, kind, "rules swapped", name, "", partial(Made, tuple(swapped)))

    def _of_triggers(self, place: int) -> Iterator[RuleMutant]:
        rules, old = self.of.rules, self.of.rules[place]
        for trigger, what, new in other_triggers(old, self.of.machines[old.on]):
            name = f"{self.name}: {old.name} on {old.on}: {what}"
            make = partial(Made, (*rules[:place], new, *rules[place + 1 :]))
            yield RuleMutant(self.name, self.of.kind, trigger, name, "", make)

    def _of_text(self) -> Iterator[RuleMutant]:
        for place, written in enumerate(self._written):
            texts = [ast.unparse(each) for each in written.body]
            known = set(texts)
            for top, whole in enumerate(written.body):
                silent, within = _unheard(whole), name_of(whole) if isinstance(whole, ast.FunctionDef) else ""
                for number, node in enumerate(ast.walk(whole) if self._is_changed(written, whole) else ()):
                    for kind, what, new in () if node in silent else _variants(node, written.module):
                        text = _changed(whole, number, new)
                        if text not in known:
                            known.add(text)
                            words = " ".join(ast.unparse(node).split())
                            name = f"{self.name}: {name_of(whole)}: `{words[:90]}` {what}"
                            module = "\n".join([*texts[:top], text, *texts[top + 1 :]])
                            make = partial(self._run, place, module)
                            yield RuleMutant(self.name, self.of.kind, kind, name, within, make)

    def called_at_once(self) -> frozenset[str]:
        """Return the functions that run when the modules are executed: a mutant of one can differ anywhere."""
        with restored(each.module.__name__ for each in self._written):
            return watched(lambda: [each.run() for each in self._written])[1]

    def _is_changed(self, written: Written, top: ast.stmt) -> bool:
        return name_of(top) in self._names and written.module.__name__ in self._changed

    def _run(self, place: int, text: str) -> Made:
        """Execute a module from another text, and then the modules that may import from it."""
        changed, *others = self._written[place:]
        with restored(each.module.__name__ for each in self._written):
            runs = [changed.run(text), *(each.run() for each in others)]
        fold = next((each.fold for each in runs if hasattr(each, "fold")), None)
        return Made(runs[-1].aggregate.rules, fold)


class _Exchange(ast.NodeTransformer):
    """Replaces a node by others."""

    def __init__(self, old: ast.AST, new: Sequence[ast.AST]) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> Any:
        if node is not self._old:
            return self.generic_visit(node)
        new = [copy.deepcopy(each) for each in self._new]
        return new[0] if len(new) == 1 else new


def _changed(whole: ast.stmt, number: int, new: Sequence[ast.AST]) -> str:
    tree = copy.deepcopy(whole)
    old = next(node for place, node in enumerate(ast.walk(tree)) if place == number)
    return ast.unparse(ast.fix_missing_locations(_Exchange(old, new).visit(tree)))


def _unheard(top: ast.stmt) -> set[ast.AST]:
    """Return the nodes that no mutant changes: docstrings, decorators, signatures, texts, conditions of loops.

    What a decorator declares is changed in the rule that it makes.
    """
    found: list[ast.AST] = []
    for node in ast.walk(top):
        match node:
            case ast.FunctionDef(args=args, returns=returns, decorator_list=decorators):
                found += [args, *decorators, *([] if returns is None else [returns])]
            case ast.While(test=test, body=body):  # a changed condition might never end the loop
                found += [test, *(each for each in body if isinstance(each, ast.Assign))]
            case ast.Expr(value=ast.Constant()) | ast.FormattedValue() | ast.Delete():
                found.append(node)
            case ast.Call(func=ast.Name(id=name)) if name in SAID:
                found.append(node)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="session_profiles"), attr="failure")):
                found.append(node)
            case _:
                pass
    return {inner for each in found for inner in ast.walk(each)}


def _variants(node: ast.AST, module: ModuleType) -> Iterator[Variant]:
    yield from _statements(node)
    yield from _actions(node, module)
    yield from _values(node, module)
    yield from conditions(node, module)


def _statements(node: ast.AST) -> Iterator[Variant]:
    match node:
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            yield "action lost", "is not asked for", (_NOTHING,)
            yield "action doubled", "is asked for twice", (node, node)
        case ast.Return(value=None):
            yield "goes on", "goes on", (ast.Pass(),)
        case _:
            pass
    for field in ("body", "orelse"):
        found: Any = getattr(node, field, None)
        body: list[ast.AST] = _listed(found)
        for one, other in pairwise(body):
            if isinstance(one, ast.Expr | ast.If) and isinstance(other, ast.Expr | ast.If) and not _is_text(one):
                at, changed = body.index(one), copy.copy(node)
                setattr(changed, field, [*body[:at], other, one, *body[at + 2 :]])
                words = " ".join(ast.unparse(other).split())[:60]
                yield "actions swapped", f"has `{words}` before what is before it", (changed,)


_NOTHING: Final = ast.Expr(ast.YieldFrom(ast.Tuple([], ast.Load())))
"""A statement without an action that keeps the rule a generator."""


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _actions(node: ast.AST, module: ModuleType) -> Iterator[Variant]:
    match node:
        case ast.Call(func=ast.Name(id="Dispatch" | "Tell" | "Create"), args=args):
            for place, each in enumerate(args[:-1]):
                if isinstance(each, ast.JoinedStr | ast.Attribute | ast.Name):
                    other = ast.Call(ast.Name("elsewhere", ast.Load()), [each], [])
                    changed = ast.Call(node.func, [*args[:place], other, *args[place + 1 :]], node.keywords)
                    yield "told to another", f"has `{ast.unparse(each)}` for another one", (changed,)
        case ast.Call(func=ast.Attribute() as event) if _is_event(named_class(event, module)):
            for other_event in _like(event, module):
                yield "another event", f"is {other_event.attr}", (ast.Call(other_event, node.args, node.keywords),)
        case ast.Attribute(attr=attr, ctx=ast.Load()) if attr in NUMBERS:
            for sign, word in ((ast.Add(), "one higher"), (ast.Sub(), "one lower")):
                yield "another number", f"is {word}", (ast.BinOp(node, sign, ast.Constant(1)),)
        case _:
            pass


def _listed(found: Any) -> list[ast.AST]:
    return cast("list[ast.AST]", found) if isinstance(found, list) else []


def _is_event(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Event)


def _like(event: ast.Attribute, module: ModuleType) -> Iterator[ast.Attribute]:
    """Yield the other events of the same lifecycle that rules send and that have the same fields."""
    known, home = named_class(event, module), event.value
    assert isinstance(home, ast.Name)
    lifecycle: Any = getattr(module, home.id)
    others = cast("dict[str, Any]", vars(lifecycle))
    for name, other in sorted(others.items()):
        if name in _SENT and other is not known and _parts(other) == _parts(known):
            yield ast.Attribute(home, name, ast.Load())


def _parts(event: Any) -> list[object]:
    return [each.type for each in fields(event)]


_SENT: Final = frozenset(
    "Started Completed Verified Rejected Failed Released Orphaned Claimed Retried Blocked"
    " WorkWanted WorkerGone TaskGiven WorkRequested Prompted WorkFinished WorkFailed Dropped Assigned"
    " WorktreeReady PromptReady UrgentMessage OperatorStop MessagesTaken MessagesDelivered MailboxClosed"
    " Parked Returned Handed Decomposed SubtasksCompleted Cancelled Approved Declined".split()
)
"""The events that rules of a fleet send."""


def _values(node: ast.AST, module: ModuleType) -> Iterator[Variant]:
    match node:
        case ast.Call(func=ast.Name(id="replace" | "FleetTask"), args=args, keywords=keywords):
            for each in keywords:
                left = [other for other in keywords if other is not each]
                yield "not recorded", f"does not record {each.arg}", (ast.Call(node.func, args, left),)
        case ast.Call(func=ast.Attribute(attr="Brief") as kind, args=[_, _, *_] as args):
            names = [each.name for each in fields(cast("Any", named_class(kind, module)))]
            for place, name in enumerate(names[: len(args)]):
                rest = [ast.keyword(other, each) for other, each in zip(names, args, strict=True)][place + 1 :]
                yield "not told", f"does not tell {name}", (ast.Call(kind, args[:place], rest),)
        case ast.Call(func=ast.Name(id="sorted" | "tuple"), args=[inner]) if isinstance(inner, ast.Call | ast.List):
            yield "not in order", "is in no order", (ast.Call(ast.Name("tuple", ast.Load()), [inner], []),)
        case ast.Tuple(elts=[one, other, *rest], ctx=ast.Load()):
            yield "in another order", "begins with the other one", (ast.Tuple([other, one, *rest], ast.Load()),)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right) if not isinstance(left, ast.Tuple):
            other_op = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
            yield "sign turned", "has the other sign", (ast.BinOp(left, other_op, right),)
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield "another number", "is one higher", (ast.Constant(value + 1),)
        case _:
            pass
