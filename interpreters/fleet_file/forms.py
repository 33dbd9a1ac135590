"""The forms of values in a fleet file: how each is read, refused, written, and described to an editor.

A form declares the accepted values once, in words and as a JSON Schema. The schema is never stricter than the reader.
It is laxer only where a schema cannot express a limit, such as the bounds of durations and sizes.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Generic, Literal, TypeVar

import msgspec

from lifefold.interpreters.fleet_file.values import RefusedError, as_array, as_table
from lifefold.interpreters.units import (
    DURATION_FORM,
    DURATION_PATTERN,
    LARGEST_BYTES,
    LONGEST_MS,
    SIZE_FORM,
    SIZE_PATTERN,
    format_duration,
    format_size,
    parse_duration_ms,
    parse_size_bytes,
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
W = TypeVar("W", bound=str)
Schema = Mapping[str, object]


class Form(msgspec.Struct, Generic[T_co], frozen=True):
    """The values that a key accepts.

    ``accepted`` describes them in an error, ``brief`` in a table. ``convert`` returns the meaning of a TOML value, or
    None if the value does not have this form. It raises ``RefusedError`` if a part is wrong. ``write`` is its inverse.
    """

    accepted: str
    brief: str
    schema: Schema
    convert: Callable[[object], T_co | None]
    write: Callable[[Any], object] = lambda value: value

    def parse(self, value: object) -> T_co:
        """Return the meaning of a value. Raises ``RefusedError``."""
        meaning = self.convert(value)
        if meaning is None:
            raise RefusedError(value, self.accepted)
        return meaning


def inside(form: Form[T], value: object, at: int | str) -> T:
    """Return the meaning of a part of a value. Raises ``RefusedError`` with the path to that part."""
    try:
        return form.parse(value)
    except RefusedError as refused:
        refused.at = (at, *refused.at)
        raise


def matching(pattern: str, accepted: str, brief: str, *, roughly: str = "") -> Form[str]:
    """Accept the texts that a regular expression matches as a whole.

    ``roughly`` is a laxer one for editors, with the same meaning in Python and JavaScript.
    """
    whole = re.compile(pattern)

    def convert(value: object) -> str | None:
        return value if isinstance(value, str) and whole.fullmatch(value) else None

    return Form(accepted, brief, {"type": "string", "pattern": f"^(?:{roughly or pattern})$"}, convert)


def _string(value: object) -> str | None:
    if isinstance(value, str) and "\0" in value:
        raise RefusedError(value, "a text without the character NUL")
    return value if isinstance(value, str) else None


STRING = Form("a text in quotes", "a text", {"type": "string"}, _string)
"""Any text that can be an argument of a program, even an empty one."""

TEXT = Form(
    "a text in quotes, not empty",
    "a text",
    {"type": "string", "pattern": r"\S"},
    lambda value: _string(value) if isinstance(value, str) and value.strip() else None,
)

NAME = matching(
    "[A-Za-z0-9][A-Za-z0-9_-]{0,63}",
    "1 to 64 of the characters a to z, A to Z, 0 to 9, - and _; the first is not - or _",
    "a name",
)
"""The names of fleets, agents and roles."""

TASK_ID = matching(
    r"(?!.*\.\.)(?!.*\.(?:lock)?$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
    "1 to 64 of the characters a to z, A to Z, 0 to 9, - _ and .; the first is not - _ or .; without .., and"
    " not ending in . or .lock (it becomes part of branch and file names)",
    "an id",
)

BOOLEAN = Form(
    "true or false", "`true` or `false`", {"type": "boolean"}, lambda value: value if isinstance(value, bool) else None
)


def _fraction(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None


FRACTION = Form("a number from 0 to 1", "0 to 1", {"type": "number", "minimum": 0, "maximum": 1}, _fraction)


def integer(least: int, most: int) -> Form[int]:
    """Accept an integer from ``least`` to ``most``."""
    schema = {"type": "integer", "minimum": least, "maximum": most}

    def convert(value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return value if least <= value <= most else None

    return Form(f"an integer from {least} to {most}", f"{least} to {most}", schema, convert)


def _money(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value * _MICROUSD) if _LEAST_USD <= value <= _MOST_USD else None


_MICROUSD = 1_000_000
_LEAST_USD = 0.01
_MOST_USD = 1_000_000

MONEY = Form(
    "an amount in US dollars from 0.01 to 1,000,000",
    "dollars, from `0.01`",
    {"type": "number", "minimum": _LEAST_USD, "maximum": _MOST_USD},
    _money,
    lambda microusd: microusd / _MICROUSD,
)
"""Money, as a whole number of millionths of a dollar."""


def _price(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value * _MICROUSD) if 0 <= value <= _MOST_PRICE_USD else None


_MOST_PRICE_USD = 100_000

PRICE = Form(
    "a price in US dollars from 0 to 100,000",
    "dollars",
    {"type": "number", "minimum": 0, "maximum": _MOST_PRICE_USD},
    _price,
    lambda microusd: microusd / _MICROUSD,
)
"""A price, as a whole number of millionths of a dollar."""


def duration(least_ms: int) -> Form[int]:
    """Accept a duration of at least ``least_ms`` and at most a year, and return its milliseconds."""
    least = f' at least "{format_duration(least_ms)}" and' if least_ms else ""
    accepted = f'{DURATION_FORM},{least} at most "{format_duration(LONGEST_MS)}"'
    brief = f'a duration from `"{format_duration(least_ms)}"`' if least_ms > 1 else "a duration"

    def convert(value: object) -> int | None:
        duration_ms = _parsed(parse_duration_ms, value)
        return None if duration_ms is None or duration_ms < least_ms else duration_ms

    return Form(accepted, brief, {"type": "string", "pattern": DURATION_PATTERN}, convert, format_duration)


def duration_or(word: str, meaning: int) -> Form[int]:
    """Accept a duration of at least a millisecond, or a word for this number."""
    of = duration(1)

    def convert(value: object) -> int | None:
        return meaning if value == word else of.convert(value)

    def write(value: int) -> object:
        return word if value == meaning else of.write(value)

    schema = {"anyOf": [{"const": word}, of.schema]}
    return Form(f'{of.accepted}, or "{word}"', f'{of.brief}, or `"{word}"`', schema, convert, write)


def size(least_bytes: int) -> Form[int]:
    """Accept a size of at least ``least_bytes`` and at most a TiB, and return its bytes."""
    least = format_size(least_bytes)
    accepted = f'{SIZE_FORM}, at least "{least}" and at most "{format_size(LARGEST_BYTES)}"'

    def convert(value: object) -> int | None:
        size_bytes = _parsed(parse_size_bytes, value)
        return None if size_bytes is None or size_bytes < least_bytes else size_bytes

    return Form(accepted, f'a size from `"{least}"`', {"type": "string", "pattern": SIZE_PATTERN}, convert, format_size)


def _parsed(parse: Callable[[str], int], value: object) -> int | None:
    try:
        return parse(value) if isinstance(value, str) else None
    except ValueError:
        return None


def choice(*words: W) -> Form[W]:
    """Accept one of several words."""

    def convert(value: object) -> W | None:
        return next((word for word in words if word == value), None)

    accepted = [f'"{word}"' for word in words]
    brief = [f"`{word}`" for word in accepted]
    return Form(" or ".join(accepted), " or ".join(brief), {"enum": list(words)}, convert)


NONE_OR_MERGE: Form[Literal["none", "merge"]] = choice("none", "merge")
"""The approvals that a task can require."""

MERGE: Form[Literal["target", "branch"]] = choice("target", "branch")
"""What becomes of verified work: it is merged into the target branch, or stays on a branch of its task."""

ON_RETRY: Form[Literal["resume", "anew"]] = choice("resume", "anew")
"""What a retry does about the conversation of the last attempt."""

RESET_ERRORS_ON: Form[Literal["start", "success"]] = choice("start", "success")
"""The events that can reset an agent's count of errors in a row (D3)."""

_NAMES = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_TARGET = rf"{_NAMES}:{_NAMES}"

TARGET = matching(
    _TARGET,
    '"module:Class", a class in a module beside the fleet file or installed',
    '`"module:Class"`',
    roughly=r"[^\s:]+:[^\s:]+",
)

INTERPRETER = matching(
    rf"{_TARGET}|[A-Za-z0-9][A-Za-z0-9._-]*",
    '"module:attribute", in a module beside the fleet file or installed, or the name of an entry point of the group'
    " lifefold.interpreters",
    '`"module:attribute"`, or a name',
    roughly=r"[^\s:]+(?::[^\s:]+)?",
)


def array_of(form: Form[T], accepted: str, brief: str) -> Form[tuple[T, ...]]:
    """Accept an array of values of a form, even an empty one."""

    def convert(value: object) -> tuple[T, ...] | None:
        array = as_array(value)
        return None if array is None else tuple(inside(form, element, index) for index, element in enumerate(array))

    return Form(accepted, brief, {"type": "array", "items": form.schema}, convert, list)


def _work_path(value: object) -> str | None:
    text = TEXT.convert(value) or "."
    leads_elsewhere = text.startswith(("/", "~/")) or ".." in text.split("/")
    path = posixpath.normpath(text)
    return None if leads_elsewhere or path == "." or "\\" in path or not path.isprintable() else path


WORK_PATH = Form(
    'the path of a file or a folder in the repository, such as "src/app.py" or "docs/"; none that is absolute, and none'
    " with .. or \\ in it",
    "a path",
    {"type": "string", "pattern": r"^(?!/|~/)(?!(?:.*/)?\.\.(?:/|$))[^\\]*\S[^\\]*$"},
    _work_path,
)
"""A path of a task's work in the repository; ``docs/``, ``./docs`` and ``docs`` are the same."""

STRINGS = array_of(STRING, 'an array of texts, such as ["a", "b"]', "texts")
TASK_IDS = array_of(STRING, STRINGS.accepted, "ids")
NAMES = array_of(NAME, 'an array of names, such as ["a", "b"]', "names")
WORK_PATHS = array_of(
    WORK_PATH, 'an array of paths, such as ["src/app.py", "docs/"]', 'paths, as `["src/app.py", "docs/"]`'
)


def _words(value: object) -> tuple[str, ...] | None:
    array = as_array(value)
    if not array:
        return None
    inside(TEXT, array[0], 0)
    return STRINGS.parse(array)


WORDS = Form(
    'the program and its arguments, such as ["make", "test"]',
    "texts, the program first",
    {"type": "array", "minItems": 1, "items": STRING.schema},
    _words,
    list,
)
"""A command: the program and its arguments, one text each, because no shell splits them."""


def _commands(value: object) -> tuple[tuple[str, ...], ...] | None:
    array = as_array(value)
    if array is None or not all(isinstance(element, list) for element in array):
        return None
    return tuple(inside(WORDS, element, index) for index, element in enumerate(array))


COMMANDS = Form(
    'an array of commands, such as [["make", "test"]]; mind the double brackets',
    'commands, as `[["make", "test"]]`',
    {"type": "array", "items": WORDS.schema},
    _commands,
    lambda commands: [list(command) for command in commands],
)


def _variables(value: object) -> dict[str, str] | None:
    table = as_table(value)
    if table is None:
        return None
    for variable in table:
        if not variable or set(variable) & {"=", "\0"}:
            raise RefusedError(variable, "a variable's name without = and NUL", variable)
    return {variable: inside(STRING, element, variable) for variable, element in table.items()}


VARIABLES = Form(
    'a table of texts, such as { NAME = "value" }',
    'a table, as `{ NAME = "value" }`',
    {"type": "object", "propertyNames": {"pattern": "^[^=]+$"}, "additionalProperties": STRING.schema},
    _variables,
)
"""Environment variables."""

VARIABLE_NAMES = array_of(
    matching(r"[^=\s\0]+", "the name of a variable, or a glob of names such as AWS_*", "a name"),
    'an array of names of variables, or globs of them, such as ["AWS_*"]',
    'names or globs, as `["AWS_*"]`',
)
"""Environment variables, by names or globs."""


def one_or_several(words: Sequence[str]) -> Form[tuple[str, ...]]:
    """Accept one of several words, or a non-empty array of them; each counts once."""

    def known(value: object) -> str | None:
        word = TEXT.parse(value)
        if word not in words:
            raise RefusedError(word, f"{', '.join(words)}{meant(word, words)}")
        return word

    one = Form(TEXT.accepted, "a word", {"enum": list(words)}, known)
    several = array_of(one, STRINGS.accepted, STRINGS.brief)

    def convert(value: object) -> tuple[str, ...] | None:
        if isinstance(value, str):
            return (one.parse(value),)
        return tuple(dict.fromkeys(several.parse(value))) if as_array(value) else None

    schema = {"anyOf": [one.schema, {**several.schema, "minItems": 1}]}
    accepted = 'a text, or an array of texts, such as "a" or ["a", "b"]'
    return Form(accepted, "a text, or several in an array", schema, convert, list)


def meant(word: str, known: Iterable[str]) -> str:
    """Return the question whether a similar word was meant; empty without one."""
    close = get_close_matches(word, known, n=1)
    return f'; did you mean "{close[0]}"?' if close else ""
