"""The former text of a changed part of a fleet file, in full: what an operator puts back to undo that part."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lifefold.core.fleet.system.plan_places import parts_of
from lifefold.interpreters.fleet_file.questions import ANSWERS, QUESTIONS
from lifefold.interpreters.fleet_file.values import as_array, as_table


def former_text(old: str, new: str, what: str) -> tuple[str, ...]:
    """Return the lines of TOML that put a part of a file back; empty for a part that was not there before.

    ``old`` and ``new`` are meanings. ``what`` is the place of the part: ``tasks.NAME``, ``agents.NAME.KEY`` or
    ``fleet.KEY``. A line without a value says which key to remove.
    """
    before, after = json.loads(old), json.loads(new)
    kind, name, key = parts_of(what)
    if kind == "fleet" and key == QUESTIONS:
        return tuple(_questions(before[kind].get(key), after[kind].get(key)))
    if kind == "fleet":
        return tuple(_keys("[fleet]", before[kind], after[kind], key))
    kind = "services" if name in before.get("services", {}) else kind
    if name not in before.get(kind, {}):
        return ()
    was, now = before[kind][name], after.get(kind, {}).get(name)
    header, named = ("[[tasks]]", f"id = {_toml(name)}") if kind == "tasks" else ("[[agents]]", f"name = {_toml(name)}")
    if now is None:
        return (header, named, *(f"{each} = {_toml(value)}" for each, value in was.items() if value not in (None, [])))
    return tuple(_keys(f"{header} {named}", was, now, key))


def _questions(was: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the tables of the questions. The standing answers have tables of their own, and their order counts."""
    header = f"[fleet.{QUESTIONS}]"
    if was is None:
        yield f"without {header} and [[{ANSWERS}]]"
        return
    terms, others = ({key: each for key, each in (of or {}).items() if key != ANSWERS} for of in (was, now))
    yield from _keys(header, terms, others, "")
    answers = was.get(ANSWERS, [])
    if not answers and now is None and not terms:
        yield header
    if answers != (now or {}).get(ANSWERS, []):
        yield from () if answers else (f"without [[{ANSWERS}]]",)
        for each in answers:
            yield from (f"[[{ANSWERS}]]", *(f"{key} = {_toml(value)}" for key, value in each.items()))


def _keys(header: str, was: Mapping[str, Any], now: Mapping[str, Any], only: str) -> Iterator[str]:
    """Yield the lines of the keys that differ; of one key if ``only`` names it."""
    for each in sorted(was.keys() | now.keys()):
        value = was.get(each)
        if value != now.get(each) and only in {"", each}:
            yield f"{header}:  without {each}" if value is None else f"{header}:  {each} = {_toml(value)}"


def _toml(value: object) -> str:
    """Return a value as TOML on one line. A text of JSON is a text of TOML, but for one character."""
    table, array = as_table(value), as_array(value)
    if table is not None:
        return f"{{ {', '.join(f'{key} = {_toml(each)}' for key, each in table.items())} }}"
    if array is not None:
        return f"[{', '.join(map(_toml, array))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
