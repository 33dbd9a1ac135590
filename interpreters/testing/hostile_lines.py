"""Hostile output of an agent program: recorded lines that are changed, JSON of any shape, and any bytes.

A session has a fixed number of inputs, so that a campaign counts inputs. Each mutation is one way in which output goes
wrong: lines are torn, doubled, in another order, huge, deeply nested, of other types, or no UTF-8.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

import msgspec
from hypothesis import strategies as st

from lifefold.interpreters.adapters import MAX_LINE_BYTES

SESSION_LINES: Final = 10
"""The inputs of one hostile session."""

_LONG: Final = 20_000
_DEEPEST: Final = 5_000
_HUGE: Final = (b"x", b"[],", b'"\\u0000",', b'{"type":1},', b"9", b"\xff", b"\x1b[31m")
_NO_UTF_8: Final = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\x00", b"\xef\xbb\xbf")
_SURROGATES: Final = (b"\\ud800", b"\\udfff", b"\\ud83d\\ud83d", b"\\udc00\\ud800")

Lines = list[bytes]


def hostile_sessions(recorded: Sequence[Sequence[bytes]], garbage: Sequence[bytes]) -> st.SearchStrategy[Lines]:
    """Return sessions of ``SESSION_LINES`` inputs that resemble the recorded sessions."""
    sessions = [kept for lines in recorded if (kept := [each for each in lines if 0 < len(each) < _LONG])]
    known = sorted({line for lines in sessions for line in lines})
    lines = st.sampled_from(known) if known else st.binary(max_size=40)
    mutated = st.lists(hostile_lines(lines, garbage), min_size=SESSION_LINES, max_size=SESSION_LINES)
    if not sessions:
        return mutated
    windows = st.builds(_window, st.sampled_from(sessions), st.integers(0, 1_000))
    return st.one_of(mutated, windows.flatmap(st.permutations), windows.map(_doubled))


def hostile_lines(lines: st.SearchStrategy[bytes], garbage: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return lines by each mutation of recorded ones, garbage, and any bytes."""
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=6,
    )
    place = st.integers(0, 4_000)
    return st.one_of(
        lines,
        st.builds(retyped, lines, anything, place),
        st.builds(torn, lines, place),
        st.builds(overwritten, lines, place, st.binary(max_size=8)),
        st.builds(overwritten, lines, place, st.sampled_from((*_NO_UTF_8, *_SURROGATES))),
        st.builds(retyped, lines, st.sampled_from(_SURROGATES).map(lambda each: msgspec.Raw(b'"%s"' % each)), place),
        st.builds(nested, lines, place, st.sampled_from((10, 900, _DEEPEST))),
        st.builds(huge, lines, place, st.sampled_from(_HUGE)),
        st.binary(max_size=60),
        st.sampled_from([each for each in garbage if len(each) < _LONG]),
    )


def _window(lines: Lines, start: int) -> Lines:
    """Return ``SESSION_LINES`` lines of a session that follow each other; its beginning follows its end."""
    return [lines[(start + number) % len(lines)] for number in range(SESSION_LINES)]


def _doubled(lines: Lines) -> Lines:
    return [each for each in lines[: SESSION_LINES // 2] for _ in range(2)]


def torn(line: bytes, place: int) -> bytes:
    """Return the beginning of a line."""
    return line[: place % (len(line) + 1)]


def overwritten(line: bytes, place: int, inserted: bytes) -> bytes:
    """Return a line with other bytes in one place."""
    place %= len(line) + 1
    return line[:place] + inserted + line[place + len(inserted) :]


def retyped(line: bytes, value: object, place: int) -> bytes:
    """Return a line of JSON with another value in one place; a line of text with the value behind it."""
    return _with(line, place, lambda _before: value)


def nested(line: bytes, place: int, depth: int) -> bytes:
    """Return a line with one value inside many lists or tables."""
    opening, closing = ((b"[", b"]"), (b'{"error":', b"}"))[place % 2]
    return _with(line, place, lambda before: msgspec.Raw(opening * depth + _encoded(before) + closing * depth))


def huge(line: bytes, place: int, part: bytes) -> bytes:
    """Return a line with one value, or a text behind it, as long as a line may be."""
    room = MAX_LINE_BYTES - len(line) - 4
    filler = part * (room // len(part))
    if part.endswith(b","):
        filler = b"[%s]" % filler[:-1]
    elif part != b"9":
        filler = b'"%s"' % filler
    return _with(line, place, lambda _before: msgspec.Raw(filler))


def _with(line: bytes, place: int, changed: Callable[[object], object]) -> bytes:
    """Return a line of JSON with one value changed; a line of text with the new value behind it."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return line + b" " + _encoded(changed(line.decode(errors="replace")))
    holders = [each for each in _holders(found) if each]
    if not holders:
        return _encoded(changed(found))
    holder = holders[place % len(holders)]
    key = [*holder][place % len(holder)]
    holder[key] = changed(holder[key])
    return _encoded(found)


def _holders(value: object) -> Iterator[dict[str, object]]:
    """Yield the tables in a value, itself included."""
    if isinstance(value, dict):
        found = cast("dict[str, object]", value)
        yield found
        for each in found.values():
            yield from _holders(each)
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _holders(each)


def _encoded(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return repr(value).encode(errors="replace")
