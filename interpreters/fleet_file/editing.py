"""Edits of one task in the text of a fleet file; comments, order and layout of everything else stay as they are.

The new text is compared with the old one as data. A text that would differ in anything but the edit is not returned.
"""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from lifefold.interpreters.fleet_file.places import key_lines

LEAVES: Final = "this edit cannot be written without changing more of the file; edit the file by hand"


class EditError(Exception):
    """The text of a fleet file cannot be edited so; the message says why."""


def edited(text: str, name: str, values: Mapping[str, object], without: Sequence[str] = ()) -> str:
    """Return the text with other values of keys of a task, and ``without`` some keys. A key may be ``budget.usd``.

    Raises ``EditError`` for a text without the task, or with a layout that would be lost.
    """
    wanted = tomllib.loads(text)
    place = _place_of(wanted, name)
    _change(wanted["tasks"][place], values, without)
    try:
        document = tomlkit.parse(text)
        if tomlkit.dumps(document) != text:
            raise EditError(LEAVES)
        table: Any = document["tasks"][place]
        new = {key: value for key, value in values.items() if _has_no(table, key)}
        _change(table, {key: _written(value) for key, value in values.items() if key not in new}, without)
        text = _with_lines(tomlkit.dumps(document), place, new)
        if tomllib.loads(text) != wanted:
            raise EditError(LEAVES)
    except (TOMLKitError, tomllib.TOMLDecodeError) as error:
        raise EditError(LEAVES) from error
    return text


def _place_of(document: Mapping[str, Any], name: str) -> int:
    for place, each in enumerate(document.get("tasks", ())):
        if each.get("id") == name:
            return place
    message = f"the file has no task {name}"
    raise EditError(message)


def _has_no(table: Any, key: str) -> bool:
    first, _, rest = key.partition(".")
    return first not in table or (bool(rest) and rest not in table[first])


def _change(table: Any, values: Mapping[str, object], without: Sequence[str]) -> None:
    for key in without:
        table.pop(key, None)
    for key, value in values.items():
        first, _, rest = key.partition(".")
        if rest:
            table.setdefault(first, {})[rest] = value
        else:
            table[first] = value


def _with_lines(text: str, place: int, new: Mapping[str, object]) -> str:
    """Return a text with further keys of a task, each on a line of its own after the id.

    A library would put them at the end of the table, after the comment about the next one.
    """
    line = key_lines(text).get(("tasks", place, "id"))
    if not new:
        return text
    if line is None:
        raise EditError(LEAVES)
    lines = text.splitlines(keepends=True)
    end = "\r\n" if lines[line - 1].endswith("\r\n") else "\n"
    lines[line - 1] = f"{lines[line - 1].rstrip()}{end}"
    items: dict[str, Any] = {key: tomlkit.item(_written(value)) for key, value in new.items()}
    lines[line:line] = [f"{key} = {item.as_string()}{end}" for key, item in items.items()]
    return "".join(lines)


def _written(value: object) -> Any:
    """Return a value in the form in which it is written: a text of several lines over several lines."""
    if isinstance(value, str) and "\n" in value.strip("\n"):
        mark, text = '"""', tomlkit.string(value, multiline=True).as_string().strip()
        is_flush = text.startswith(f"{mark}\n")
        return tomlkit.value(text if is_flush else f"{mark}\n{text.removeprefix(mark)}")
    return value
