"""The description of the desk for programs: OpenAPI 3.1, made of the pages' table and of the structs."""

from importlib.metadata import version
from typing import Any, Final

import msgspec

from lifefold.interpreters.web.commands import Command
from lifefold.interpreters.web.desk import Given
from lifefold.interpreters.web.guards import OWN_HEADER
from lifefold.interpreters.web.pages import AT, CHOICE, JSON_PATHS, MOST_NUMBER, Page, Parameter
from lifefold.interpreters.web.structs import Problem

KEY_HEADER: Final = "idempotency-key"
"""The header that makes a repeated command recognisable."""

KEY_CHARACTERS: Final = 100
"""The longest key of a command."""

KEY_PATTERN: Final = r"^[A-Za-z0-9._:-]+$"
"""What a key is made of."""

COMMANDS: Final = "/fleets/{key}/commands"
DOWNLOAD: Final = "/fleets/{key}/log.ndjson"
FORK: Final = "/fleets/{key}/fork"
EVENTS: Final = "/events"
DRAWING: Final = "/reports/{name}/picture"

SQLITE: Final = "application/vnd.sqlite3"
"""The type of a log."""

SVG: Final = "image/svg+xml"
"""The type of a picture."""

_OF_DRAWING: Final = (
    Parameter("machine", "the name of the machine"),
    Parameter("state", "the state that is lit; without it none"),
)

_REFUSALS: Final = {
    "400": "a parameter is not accepted",
    "401": "neither the cookie nor the token of this desk",
    "404": "an unknown fleet, agent, task or machine, or a position that the log does not have",
    "421": "a host that this desk does not have",
    "503": "the log is being read, or is locked by another program; try again",
}
_OF_WRITES: Final = {
    "400": "a body or a key that is not accepted",
    "403": "a forged request",
    "409": "the command is refused",
    "413": "a body that is too long",
    "415": "a body that is not JSON",
}


def description() -> dict[str, Any]:
    """Return the description."""
    kinds = (*(page.kind for page in JSON_PATHS.values()), Command, Given, Problem)
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    pages = {
        path: {"get": _page(page, schema)} for (path, page), schema in zip(JSON_PATHS.items(), schemas, strict=False)
    }
    command, given, problem = schemas[len(pages) :]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lifefold desk",
            "version": version("lifefold"),
            "description": "Pages of fleets as JSON, the stream of their entries, and the commands of operators.",
        },
        "security": [{"token": []}, {"cookie": []}],
        "paths": {
            **pages,
            COMMANDS: {"post": _commands(command, given, problem)},
            DOWNLOAD: {"get": _text("application/x-ndjson", "every transition as a line of JSON", (AT, *CHOICE), _KEY)},
            FORK: {"get": _text(SQLITE, "a log of its own with the entries up to a position", (AT,), _KEY)},
            DRAWING: {
                "get": _text(SVG, "the picture of a machine that a report has, with a state lit", _OF_DRAWING, _NAME)
            },
            EVENTS: {"get": _text("text/event-stream", _STREAM, (_FLEET, _AFTER))},
        },
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "lifefold_desk_PORT"},
            },
        },
    }


_STREAM: Final = (
    "new entries (event entries), changes of a runner (event runner), and fleets that are gone (event gone);"
    " an id is a position of the log"
)
_FLEET: Final = Parameter("fleet", "only this fleet; without it all")
_AFTER: Final = Parameter("after", "the position after which the stream begins, or the id of an event")


def _page(page: Page, schema: dict[str, Any]) -> dict[str, Any]:
    about = (page.kind.__doc__ or "").partition("\n")[0]
    inside = [each for each in (_KEY, _NAME) if "{" + each["name"] + "}" in page.path]
    return {
        "summary": about,
        "parameters": [*inside, *map(_parameter, page.parameters)],
        "responses": {"200": _answer(about, "application/json", schema), **_problems(_REFUSALS)},
    }


def _commands(command: dict[str, Any], given: dict[str, Any], problem: dict[str, Any]) -> dict[str, Any]:
    del problem
    headers = [
        _header(OWN_HEADER, "any value: no form of another site can send it", {"type": "string"}, required=True),
        _header(KEY_HEADER, "a command with a key that was used before is not given again",
                {"type": "string", "maxLength": KEY_CHARACTERS, "pattern": KEY_PATTERN}, required=False),
    ]  # fmt: skip
    return {
        "summary": "Give an operator's command, as the command line does.",
        "parameters": [_KEY, *headers],
        "requestBody": {"required": True, "content": {"application/json": {"schema": command}}},
        "responses": {
            "200": _answer("at least one part of the command was accepted", "application/json", given),
            **_problems({**_REFUSALS, **_OF_WRITES}),
            "409": _answer(_OF_WRITES["409"], "application/json", given),
        },
    }


def _text(kind: str, about: str, parameters: tuple[Parameter, ...], *inside: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": about,
        "parameters": [*inside, *map(_parameter, parameters)],
        "responses": {"200": _answer(about, kind, {"type": "string"}), **_problems(_REFUSALS)},
    }


_KEY: Final[dict[str, Any]] = {"name": "key", "in": "path", "required": True, "schema": {"type": "string"}}
_NAME: Final[dict[str, Any]] = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}


def _parameter(of: Parameter) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": 0, "maximum": MOST_NUMBER} if of.is_number else {"type": "string"}
    return {"name": of.name, "in": "query", "required": False, "description": of.about, "schema": schema}


def _header(name: str, about: str, schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": required, "description": about, "schema": schema}


def _answer(about: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {kind: {"schema": schema}}}


def _problems(abouts: dict[str, str]) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {status: _answer(about, "application/json", schema) for status, about in abouts.items()}
