"""Mutants of conditions in rules, for ``rule_mutation``.

A condition is negated, is always or never true, or loses a part. A comparison is reversed. A case of a match is lost,
or its guard. A set of states loses or gains a state, and a state is replaced by another.
"""

import ast
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Final

from lifefold.core.kernel import State
from lifefold.core.lifecycles.task import Stage

Variant = tuple[str, str, Sequence[ast.AST]]
"""The kind of a mutant at a node, its description, and the nodes that replace it."""

_OTHER: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Gt: ast.GtE,
    ast.Lt: ast.LtE,
}


def conditions(node: ast.AST, module: ModuleType) -> Iterator[Variant]:
    """Yield the mutants of a condition at this node."""
    yield from _tests(node)
    yield from _parts(node)
    yield from _cases(node)
    yield from _states(node, module)


def named_class(node: ast.Attribute, module: ModuleType) -> object:
    """Return the value of ``part.Name`` in a module; None if there is none."""
    return getattr(getattr(module, node.value.id, None), node.attr, None) if isinstance(node.value, ast.Name) else None


def _not(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node)


def _tests(node: ast.AST) -> Iterator[Variant]:
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            tests: dict[str, ast.expr] = {"always": ast.Constant(value=True), "never": ast.Constant(value=False)}
            if not isinstance(test, ast.Compare | ast.UnaryOp):  # these are turned round themselves
                tests["if not"] = _not(test)
            for what, new in tests.items():
                yield "condition", f"is done {what}", (ast.If(new, body, orelse),)
        case ast.IfExp(test=test, body=then, orelse=otherwise):
            yield "condition", "is the other way round", (ast.IfExp(_not(test), then, otherwise),)
        case ast.comprehension(target=target, iter=over, ifs=[_, *_]):
            for place, each in enumerate(node.ifs):
                left = [*node.ifs[:place], *node.ifs[place + 1 :]]
                for what, ifs in ("asks less", left), ("asks the contrary", [*left, _not(each)]):
                    yield "condition", what, (ast.comprehension(target, over, ifs, node.is_async),)
        case _:
            pass


def _parts(node: ast.AST) -> Iterator[Variant]:
    match node:
        case ast.BoolOp(op=op, values=values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "condition", "has the other junction", (ast.BoolOp(other, values),)
            for place, each in enumerate(values):
                left = [*values[:place], *values[place + 1 :]]
                less = left[0] if len(left) == 1 else ast.BoolOp(op, left)
                yield "condition", f"does not ask `{ast.unparse(each)}`", (less,)
        case ast.Compare(left=left, ops=[one], comparators=comparators) if type(one) in _OTHER:
            yield "condition", "is compared otherwise", (ast.Compare(left, [_OTHER[type(one)]()], comparators),)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "condition", "is turned round", (operand,)
        case _:
            pass


def _cases(node: ast.AST) -> Iterator[Variant]:
    match node:
        case ast.Match(subject=subject, cases=cases):
            for each in cases:
                if not isinstance(each.pattern, ast.MatchAs) or each.pattern.pattern is not None:
                    left = [other for other in cases if other is not each]
                    yield "case lost", f"has no case `{ast.unparse(each.pattern)}`", (ast.Match(subject, left),)
        case ast.match_case(pattern=pattern, guard=ast.expr() as guard, body=body):
            yield "condition", f"does not ask `{ast.unparse(guard)}`", (ast.match_case(pattern, None, body),)
            yield "condition", f"asks not `{ast.unparse(guard)}`", (ast.match_case(pattern, _not(guard), body),)
        case ast.MatchOr(patterns=patterns):
            for one in patterns:
                others = [other for other in patterns if other is not one]
                new = others[0] if len(others) == 1 else ast.MatchOr(others)
                yield "case lost", f"has no case `{ast.unparse(one)}`", (new,)
        case _:
            pass


def _states(node: ast.AST, module: ModuleType) -> Iterator[Variant]:
    match node:
        case ast.Set(elts=elements):
            for each in elements if len(elements) > 1 else ():
                left = [other for other in elements if other is not each]
                yield "state lost", f"lacks `{ast.unparse(each)}`", (ast.Set(left),)
            yield from (
                ("state more", f"has {other.attr} too", (ast.Set([*elements, other]),))
                for other in _others(elements, module)
            )
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield "state lost", f"lacks `{ast.unparse(right)}`", (left,)
            yield "state lost", f"lacks `{ast.unparse(left)}`", (right,)
        case ast.Attribute(value=ast.Attribute() | ast.Name() as of, attr=name, ctx=ast.Load()):
            kind = getattr(module, of.id, None) if isinstance(of, ast.Name) else named_class(of, module)
            if isinstance(kind, type) and issubclass(kind, State | Stage):
                names = [each.name for each in kind]
                other = names[(names.index(name) + 1) % len(names)]
                yield "another state", f"is {other}", (ast.Attribute(of, other, ast.Load()),)
        case _:
            pass


def _others(elements: Sequence[ast.expr], module: ModuleType) -> Iterator[ast.Attribute]:
    """Yield the states of the same lifecycle that are not among these."""
    there = {each.attr for each in elements if isinstance(each, ast.Attribute)}
    first = elements[0]
    if isinstance(first, ast.Attribute) and isinstance(first.value, ast.Attribute):
        kind = named_class(first.value, module)
        if isinstance(kind, type) and issubclass(kind, State):
            yield from (ast.Attribute(first.value, name, ast.Load()) for name in kind.__members__ if name not in there)
