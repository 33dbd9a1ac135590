"""The JSON Schema of a fleet file, for editors, from the declarations of the reader.

It is of draft 2020-12, and uses only keywords with the same meaning since draft 7, because editors may know older ones
only. The reader refuses everything that the schema refuses, and more: duplicates, contradictions, missing files, and
values beyond bounds. TOML distinguishes 5.0 from 5, which JSON does not.
"""

from typing import Any, Final

from lifefold.interpreters.fleet_file.config import FileKeys
from lifefold.interpreters.fleet_file.keys import Key, Narrow, Section, heading, keys_of, sections_of

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, object]:
    """Return the schema of a whole fleet file."""
    return {"$schema": DIALECT} | _table(FileKeys) | {"title": "A fleet file of lifefold"}


def _table(section: type[Section]) -> dict[str, object]:
    head, keys, inner = heading(section), keys_of(section), sections_of(section)
    required = [name for name, key in keys.items() if key.required and not key.when]
    conditions = [_only_when(key, keys[key.when[0]], key.when[1:]) for key in keys.values() if key.when]
    conditions += [_not_when(key, keys[key.unless[0]], key.unless[1:]) for key in keys.values() if key.unless]
    conditions += [_narrowed(key, key.narrow, keys[key.narrow.when[0]]) for key in keys.values() if key.narrow]
    properties = {name: _key(head.header, key) for name, key in keys.items()}
    schema: dict[str, object] = {
        "title": head.header,
        "description": section.__doc__,
        "type": "object",
        "properties": properties | {name: _section(within) for name, within in inner.items()},
        "additionalProperties": bool(head.others),
    }
    further = {
        "required": required + [name for name, within in inner.items() if _is_needed(within)],
        "oneOf": [{"required": [name]} for name in head.one_of],
        "allOf": conditions,
    }
    return schema | {word: parts for word, parts in further.items() if parts}


def _section(section: type[Section]) -> dict[str, object]:
    head, table = heading(section), _table(section)
    if not head.is_several:
        return table
    return {"description": section.__doc__, "type": "array", "minItems": head.least, "items": table}


def _is_needed(section: type[Section]) -> bool:
    if heading(section).is_several:
        return heading(section).least > 0
    return any(key.required and not key.when for key in keys_of(section).values())


def _key(header: str, key: Key[Any]) -> dict[str, object]:
    about = f"{key.about[0].upper()}{key.about[1:]}.\n\nAccepted: {key.form.accepted}."
    described = {"title": f"{header} {key.name}", "description": about}
    default = key.default_as_written()
    return described | dict(key.form.schema) | ({} if default is None else {"default": default})


def _only_when(key: Key[Any], decisive: Key[Any], accepted: tuple[str, ...]) -> dict[str, object]:
    """Return the schema of a key that is allowed only if another key has, also by default, one of some values.

    A required key is required then.
    """
    has_value = _has_value(decisive, accepted)
    needed = {"required": [key.name]} if key.required else {}
    return {"if": has_value, "then": needed, "else": {"properties": {key.name: False}}}


def _not_when(key: Key[Any], decisive: Key[Any], refused: tuple[str, ...]) -> dict[str, object]:
    """Return the schema of a key that is not allowed if another key has, also by default, one of some values."""
    return {"if": _has_value(decisive, refused), "then": {"properties": {key.name: False}}}


def _narrowed(key: Key[Any], narrow: Narrow[Any], decisive: Key[Any]) -> dict[str, object]:
    """Return the schema of a key that is stricter if another key has one of some values."""
    within = {"properties": {key.name: dict(narrow.form.schema)}}
    return {"if": _has_value(decisive, narrow.when[1:]), "then": within}


def _has_value(decisive: Key[Any], accepted: tuple[str, ...]) -> dict[str, object]:
    """Return the schema of a key that has, also by default, one of some values."""
    has_value: dict[str, object] = {"properties": {decisive.name: {"enum": list(accepted)}}}
    if decisive.default not in accepted:
        has_value["required"] = [decisive.name]
    return has_value
