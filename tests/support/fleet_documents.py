"""Draws what a fleet file may hold: nonsense, what is near to a good file, values of a wrong kind; and writes TOML."""

import datetime as dt
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lifefold.interpreters.fleet_file.config import FileKeys
from lifefold.interpreters.fleet_file.keys import keys_of, sections_of
from lifefold.interpreters.fleet_file.values import as_array, as_table

KEYS = [
    *sections_of(FileKeys),
    *dict.fromkeys(key for section in sections_of(FileKeys).values() for key in keys_of(section)),
    *("retry", "fatal_retries", "x"),
]
TEXTS = [*"a T1 .. . sh {prompt} { 5s 0s 1h30m 10MB start command merge docs/ é🙂".split(), "", "\0", "x" * 5_000]

texts = st.sampled_from(TEXTS) | st.text(max_size=5)
keys = st.sampled_from(KEYS) | st.text(max_size=3)
timestamps = st.dates() | st.times() | st.datetimes()
scalars = texts | st.booleans() | st.integers(-2, 3) | st.integers(-(2**70), 2**70) | st.floats() | timestamps
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)
tables = st.dictionaries(st.sampled_from(KEYS), values, max_size=6)
documents = st.fixed_dictionaries(
    {},
    optional={
        "fleet": tables | values,
        "agents": st.lists(tables, max_size=3) | values,
        "tasks": st.lists(tables, max_size=3) | values,
        "interpreters": st.lists(tables, max_size=3) | values,
        "x": values,
    },
)
rarely = st.sampled_from([False, False, True])


@st.composite
def near_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what is so near to a good file that some are one."""

    def changed(**table: Any) -> dict[str, Any]:
        of_it = st.dictionaries(st.sampled_from(KEYS[3:]), values, max_size=1)
        return table | (draw(of_it) if draw(rarely) else {})

    return {
        "fleet": changed(name="f"),
        "agents": [changed(name="a", command=["sh", "{prompt}"])],
        "tasks": [changed(id=name, prompt="p") for name in "tu"],
    }


_DRAFT: Any = Draft202012Validator


def misfits(schema: Any) -> st.SearchStrategy[Any]:
    """Draw values that are of another kind than a part of the JSON Schema says, or words that it does not know."""
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "boolean": st.booleans(),
        "integer": st.integers(-3, 3),
        "number": st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer()),
        "string": texts,
        "array": st.lists(st.integers(), max_size=2),
        "object": st.dictionaries(st.sampled_from("ab"), st.integers(), max_size=2),
    }
    right = schema.get("type")
    wrong = [timestamps, *(kinds[kind] for kind in kinds.keys() - _alike(schema))]
    if "enum" in schema:
        wrong.append(texts.filter(lambda text: text not in schema["enum"]))
    if right == "array":
        wrong.append(st.lists(misfits(schema["items"]), min_size=1, max_size=2))
    if right == "object" and schema["additionalProperties"]:
        wrong.append(st.dictionaries(st.sampled_from("ab"), misfits(schema["additionalProperties"]), min_size=1))
    elif right == "object":
        known = schema["properties"]
        wrong.append(st.dictionaries(st.sampled_from("ab"), st.sampled_from(["trusted"]), min_size=1))
        wrong.extend(st.fixed_dictionaries({name: misfits(known[name])}) for name in known)
    if "anyOf" in schema and all(each.get("type") == "object" for each in schema["anyOf"]):
        return misfits({"type": "object", "properties": {}, "additionalProperties": False})
    if "anyOf" in schema:
        one, several = schema["anyOf"]
        if several["type"] != "array":
            accepts: Callable[[Any], bool] = _DRAFT(schema).is_valid
            return misfits(one).filter(lambda value: not (isinstance(value, str) and accepts(value)))
        return misfits(one).filter(lambda value: not isinstance(value, list)) | misfits(several).filter(
            lambda value: not isinstance(value, str)
        )
    return st.one_of(wrong)


def _alike(schema: Any) -> set[str]:
    """Return the kinds whose values may be right."""
    right = schema.get("type")
    return {"string"} if "enum" in schema else {"integer", "number"} if right == "number" else {right}


def toml(value: Any) -> str:
    """Write a value as TOML, tables inline."""
    if (table := as_table(value)) is not None:
        return "{" + ", ".join(f"{quoted(key)} = {toml(inner)}" for key, inner in table.items()) + "}"
    if (array := as_array(value)) is not None:
        return "[" + ", ".join(map(toml, array)) + "]"
    match value:
        case str():
            return quoted(value)
        case bool():
            return str(value).lower()
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return str(value)


def quoted(text: str) -> str:
    """Write a text as TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def document_toml(document: dict[str, Any]) -> str:
    """Write a whole file, each key of it on a line."""
    return "".join(f"{quoted(key)} = {toml(value)}\n" for key, value in document.items())
