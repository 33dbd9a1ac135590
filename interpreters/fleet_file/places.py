"""The lines of the keys in a TOML text, for error messages; ``tomllib`` does not report them."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator

KeyPath = tuple[str | int, ...]
"""The path to a value: names of tables and keys, and indices of array elements, from 0."""

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'"
    r"|\#[^\n]*"
    r"|\n|[\[\]{}=.,]"
    r"|[^\s\[\]{}=.,\"'#]+",
    re.DOTALL,
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1, of every table header and of every key outside inline tables.

    A thing without a header of its own, such as an array of tables, has the line of its first part. The text must be
    valid TOML; for another text the answer is useless, but no error is raised.
    """
    lines: dict[KeyPath, int] = {}
    around: dict[KeyPath, int] = {}
    arrays: Counter[KeyPath] = Counter()
    table: KeyPath = ()
    for line, tokens in _statements(text):
        if tokens[0] == "[":
            is_array = tokens[1:2] == ["["]
            table = _indexed((), _keys(tokens), arrays, count=is_array)
            lines.setdefault(table, line)
            for depth in range(1, len(table)):
                around.setdefault(table[:depth], line)
        else:
            for depth in range(1, len(keys := _keys(tokens[: tokens.index("=")] if "=" in tokens else tokens)) + 1):
                lines.setdefault((*table, *keys[:depth]), line)
    return around | lines


def line_of(path: KeyPath, lines: dict[KeyPath, int]) -> int | None:
    """Return the line of a value, or of the nearest table around it with a line; None without one."""
    return next((lines[path[:depth]] for depth in range(len(path), 0, -1) if path[:depth] in lines), None)


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each header and each ``key = value`` as tokens, with its first line."""
    line, begin, depth = 1, 1, 0
    tokens: list[str] = []
    for token in _TOKEN.findall(text):
        match token[0]:
            case "\n" if depth <= 0:
                if tokens:
                    yield begin, tokens
                tokens, depth = [], 0
            case "\n" | "#":
                pass
            case first:
                begin = begin if tokens else line
                tokens.append(token)
                depth += (first in "[{") - (first in "]}")
        line += token.count("\n")
    if tokens:
        yield begin, tokens


def _keys(tokens: list[str]) -> list[str]:
    return [_unquoted(token) for token in tokens if token not in {*"[].="}]


def _unquoted(token: str) -> str:
    try:
        return str(tomllib.loads(f"key = {token}")["key"]) if token[0] in "\"'" else token
    except tomllib.TOMLDecodeError:
        return token


def _indexed(base: KeyPath, keys: list[str], arrays: Counter[KeyPath], *, count: bool) -> KeyPath:
    """Return the path of a header; after the name of each array of tables comes the index of its latest element."""
    path = base
    for depth, key in enumerate(keys, 1):
        path = (*path, key)
        if count and depth == len(keys):
            arrays[path] += 1
        if arrays[path]:
            path = (*path, arrays[path] - 1)
    return path
