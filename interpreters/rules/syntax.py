"""The meaning of a module's text, as a text of its own: its syntax tree without prose and positions.

Two texts have the same meaning if they differ only in docstrings, comments and layout. The meaning is the same for
different versions of Python: empty fields of the tree are left out, such as those that a version has added.
"""

import ast
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, cast

DIGITS: Final = 32
"""The number of hexadecimal digits of a digest."""

_TEXTS: Final = 512
"""The number of texts whose digest is remembered: several targets share modules."""

_DECLARE: Final = frozenset({"accepts", "always", "always_step", "eventually", "leads_to", "sometimes"})
"""The functions that declare a property; the first argument is its name."""


@lru_cache(maxsize=_TEXTS)
def digest_of(text: str) -> str:
    """Return a digest of the meaning of a module's text. Raises ``SyntaxError``."""
    return sha256("".join(_written(_Prose().visit(ast.parse(text)))).encode()).hexdigest()[:DIGITS]


class _Prose(ast.NodeTransformer):
    """Takes the prose out of a syntax tree."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Leave out a statement that is a string: a docstring of a module, class, function or attribute."""
        return None if _is_text(node.value) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave out the name of a property, and ``about=``."""
        declares = isinstance(node.func, ast.Name) and node.func.id in _DECLARE
        if declares and node.args and _is_text(node.args[0]):
            node.args = node.args[1:]
        node.keywords = [each for each in node.keywords if each.arg != "about"]
        return self.generic_visit(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _written(node: Any) -> Iterator[str]:
    match node:
        case ast.AST():
            yield f"{type(node).__name__}("
            for name, value in ast.iter_fields(node):
                if value is not None and value != []:
                    yield f"{name}="
                    yield from _written(value)
            yield ")"
        case list():
            yield "["
            for each in cast("list[object]", node):
                yield from _written(each)
                yield ","
            yield "]"
        case _:
            yield repr(node)
