"""What a value of a fleet file may be. Each parser takes what TOML had and returns what it means, or refuses it."""

import datetime as dt
import json
import re
from collections.abc import Callable
from typing import Literal, TypeVar, cast

from lifefold.interpreters.fleet.units import (
    DURATION_FORM,
    LARGEST_BYTES,
    LONGEST_MS,
    SIZE_FORM,
    format_duration,
    format_size,
    parse_duration_ms,
    parse_size_bytes,
)

T = TypeVar("T")
Parser = Callable[[object], T]

NAME_FORM = "1 to 64 letters (a to z, A to Z), digits, - and _, beginning with a letter or a digit"
TASK_ID_FORM = (
    "1 to 64 letters (a to z, A to Z), digits, - _ and ., beginning with a letter or a digit, without .., and"
    " not ending in . or .lock (it becomes part of branch and file names)"
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TASK_ID = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,63}(?<!\.)(?<!\.lock)")
_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_ENTRY_POINT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE = re.compile(r"[^=\0]+")
_LONGEST_SHOWN = 60
_KINDS: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    list: "an array",
    dict: "a table",
    dt.datetime: "a date and time",
    dt.date: "a date",
    dt.time: "a time of day",
}


class RefusedError(Exception):
    """A value is not what its key accepts. ``at`` leads from that value to the part of it that is wrong."""

    def __init__(self, found: object, accepted: str, *at: int | str) -> None:
        super().__init__(f"found {shown(found)}; accepted: {accepted}")
        self.at = at


def shown(value: object) -> str:
    """Return what is in the file, short enough for one line, with its kind unless it is a text."""
    if isinstance(value, str):
        return shortened(value)
    kind = _KINDS.get(type(value), type(value).__name__)
    if isinstance(value, list | dict):
        return kind if value else f"an empty {kind.split()[-1]}"
    return f"{_plain(value)}, {kind}"


def shortened(text: str) -> str:
    """Return a text in quotes, cut off if it is long."""
    return json.dumps(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…", ensure_ascii=False)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # Python refuses to write out an integer of thousands of digits.
    return "a number of very many digits" if isinstance(value, int) and value.bit_length() > 200 else str(value)  # noqa: PLR2004


def as_array(value: object) -> list[object] | None:
    """Return an array as what it is for the type checkers; None if the value is none."""
    return cast("list[object]", value) if isinstance(value, list) else None


def as_table(value: object) -> dict[str, object] | None:
    """Return a table as what it is for the type checkers; None if the value is none."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def string(value: object) -> str:
    """Accept any text that can be handed to a program, be it empty."""
    if not isinstance(value, str):
        raise RefusedError(value, "a text in quotes")
    if "\0" in value:
        raise RefusedError(value, "a text without the character NUL")
    return value


def text(value: object) -> str:
    """Accept a text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise RefusedError(value, "a text in quotes that is not empty")
    return string(value)


def name(value: object) -> str:
    """Accept the name of a fleet or an agent."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise RefusedError(value, NAME_FORM)
    return value


def task_id(value: object) -> str:
    """Accept a task's id."""
    if not isinstance(value, str) or not _TASK_ID.fullmatch(value):
        raise RefusedError(value, TASK_ID_FORM)
    return value


def integer(least: int, most: int) -> Parser[int]:
    """Accept an integer from ``least`` to ``most``."""

    def parse(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise RefusedError(value, f"an integer from {least} to {most}")
        return value

    return parse


def fraction(value: object) -> float:
    """Accept a number from 0 to 1."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise RefusedError(value, "a number from 0 to 1")
    return float(value)


def duration(least_ms: int) -> Parser[int]:
    """Accept a duration of at least ``least_ms`` and at most a year, and return its milliseconds."""
    least = f' at least "{format_duration(least_ms)}" and' if least_ms else ""
    form = f'{DURATION_FORM},{least} at most "{format_duration(LONGEST_MS)}"'

    def parse(value: object) -> int:
        try:
            duration_ms = parse_duration_ms(value) if isinstance(value, str) else -1
        except ValueError:
            duration_ms = -1
        if duration_ms < least_ms:
            raise RefusedError(value, form)
        return duration_ms

    return parse


def size(least_bytes: int) -> Parser[int]:
    """Accept a size of at least ``least_bytes`` and at most a TiB, and return its bytes."""
    form = f'{SIZE_FORM}, at least "{format_size(least_bytes)}" and at most "{format_size(LARGEST_BYTES)}"'

    def parse(value: object) -> int:
        try:
            size_bytes = parse_size_bytes(value) if isinstance(value, str) else -1
        except ValueError:
            size_bytes = -1
        if size_bytes < least_bytes:
            raise RefusedError(value, form)
        return size_bytes

    return parse


def start_or_success(value: object) -> Literal["start", "success"]:
    """Accept what may forget an agent's errors in a row (D3)."""
    if value == "start":
        return "start"
    if value == "success":
        return "success"
    raise RefusedError(value, '"start" or "success"')


def kind(value: object) -> Literal["command", "python"]:
    """Accept the kinds of agents that there are."""
    if value == "command":
        return "command"
    if value == "python":
        return "python"
    raise RefusedError(value, '"command" or "python"')


def target(value: object) -> str:
    """Accept what names a class in a module: ``module:Class``, both with dots where they are nested."""
    if not isinstance(value, str) or not _TARGET.fullmatch(value):
        raise RefusedError(value, '"module:Class", a class in a module beside the fleet file or installed')
    return value


def interpreter(value: object) -> str:
    """Accept what names an interpreter: ``module:attribute``, or an entry point."""
    if not isinstance(value, str) or not (_TARGET if ":" in value else _ENTRY_POINT).fullmatch(value):
        beside = '"module:attribute", in a module beside the fleet file or installed'
        raise RefusedError(value, f"{beside}, or the name of an entry point of the group lifefold.interpreters")
    return value


def one_or_several(value: object) -> tuple[str, ...]:
    """Accept a text, or an array of texts that is not empty; each counts once."""
    if isinstance(value, str):
        return (text(value),)
    if not as_array(value):
        raise RefusedError(value, 'a text, or an array of texts, such as "a" or ["a", "b"]')
    return tuple(dict.fromkeys(strings(value)))


def strings(value: object) -> tuple[str, ...]:
    """Accept an array of texts, be it empty."""
    array = as_array(value)
    if array is None:
        raise RefusedError(value, 'an array of texts, such as ["a", "b"]')
    return tuple(_inside(string, element, index) for index, element in enumerate(array))


def words(value: object) -> tuple[str, ...]:
    """Accept a command: the program and its arguments, one text each, as no shell will take them apart."""
    array = as_array(value)
    if not array:
        raise RefusedError(value, 'the program and its arguments, such as ["make", "test"]')
    _inside(text, array[0], 0)
    return strings(array)


def commands(value: object) -> tuple[tuple[str, ...], ...]:
    """Accept an array of commands, be it empty."""
    array = as_array(value)
    if array is None or not all(isinstance(element, list) for element in array):
        raise RefusedError(value, 'an array of commands, such as [["make", "test"]]; mind the double brackets')
    return tuple(_inside(words, element, index) for index, element in enumerate(array))


def variables(value: object) -> dict[str, str]:
    """Accept environment variables: a table of texts."""
    table = as_table(value)
    if table is None:
        raise RefusedError(value, 'a table of texts, such as { NAME = "value" }')
    for variable in table:
        if not _VARIABLE.fullmatch(variable):
            raise RefusedError(variable, "a variable's name without = and NUL", variable)
    return {variable: _inside(string, element, variable) for variable, element in table.items()}


def _inside(parse: Parser[T], value: object, at: int | str) -> T:
    try:
        return parse(value)
    except RefusedError as refused:
        refused.at = (at, *refused.at)
        raise
