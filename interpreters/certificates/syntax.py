"""The meaning of a module's text, as a text of its own: its syntax tree without prose and positions.

Two texts that differ only in docstrings, comments and layout have the same meaning. It is the same for different
versions of Python: empty fields, such as those that a version has added, are left out.
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


@lru_cache(maxsize=_TEXTS)
def digest_of(text: str) -> str:
    """Return a digest of the meaning of a module's text. Raises ``SyntaxError``."""
    return sha256("".join(_written(ast.parse(text))).encode()).hexdigest()[:DIGITS]


def _written(component: Any) -> Iterator[str]:
    match component:
        case ast.AST():
            yield f"{type(component).__name__}("
            for name, value in ast.iter_fields(component):
                if value is not None and value != []:
                    yield f"{name}="
                    yield from _written(value)
            yield ")"
        case list():
            yield "["
            for each in cast("list[object]", component):
                if not _is_prose(each):
                    yield from _written(each)
                    yield ","
            yield "]"
        case _:
            yield repr(component)


def _is_prose(node: Any) -> bool:
    """Tell whether a statement is a string by itself: a docstring, of a module, class, function or attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
