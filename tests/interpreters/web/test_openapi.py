"""The description for programs: it is valid, names every address, and every answer fits it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema
import msgspec
import pytest

from asking_log import LEAVE, WORDS, at_work
from lifefold.interpreters.web.commands import COMMANDS
from lifefold.interpreters.web.openapi import description
from lifefold.interpreters.web.pages import JSON_PATHS
from web_desk import Served, served
from web_reports import lost

CHILD: Final = Path(__file__).parents[2] / "support" / "described_child.py"
FEW: Final = 8
MANY: Final = 100


@pytest.fixture(scope="module", name="desk")
def one_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The desk of one log for all requests."""
    folder: Path = tmp_path_factory.mktemp("described")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        with served([at_work(folder / "fleet.db", LEAVE, WORDS).path], reports=[lost(folder)]) as desk:
            yield desk


def test_the_description_names_every_page_and_every_command(desk: Served) -> None:
    served_description: Any = desk.get("/openapi.json").json()
    assert served_description == msgspec.json.decode(msgspec.json.encode(description()))
    assert set(JSON_PATHS) < set(served_description["paths"])
    schemas = served_description["components"]["schemas"]
    assert {kind.__name__ for kind in COMMANDS} <= set(schemas)


@pytest.mark.parametrize("path", JSON_PATHS)
def test_each_page_fits_its_schema(desk: Served, path: str) -> None:
    whole = description()
    schema = whole["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    name = "T1" if "tasks" in path else "session" if "machines" in path else "ann"
    page = desk.json(path.format(key="fleet", name="lost" if "reports" in path else name))
    jsonschema.validate(page, {**schema, "components": whole["components"]})


def test_any_request_that_fits_is_answered_as_described(desk: Served) -> None:
    """In one process for all paths: a campaign has one for each, and more requests."""
    must_answer_as_described(desk, ["/fleets/{key}/commands", *JSON_PATHS], FEW)


@pytest.mark.campaign
@pytest.mark.parametrize("path", ["/fleets/{key}/commands", *JSON_PATHS])
def test_many_requests_that_fit_are_answered_as_described(desk: Served, path: str) -> None:
    must_answer_as_described(desk, [path], MANY)


def must_answer_as_described(desk: Served, paths: list[str], examples: int) -> None:
    """Try requests that Schemathesis makes of the description, so many for each path."""
    whole = description()
    names = {"key": ["fleet"], "name": ["T1", "ann", "session", "x"]}
    for operations in whole["paths"].values():
        for operation in operations.values():
            for each in operation["parameters"]:
                if each["in"] == "path":  # most names are unknown: these are tried, and what they are not is 404
                    each["schema"] = {"type": "string", "enum": names[each["name"]]}
    child = subprocess.run(
        [sys.executable, CHILD, desk.base, desk.secret, str(examples), *paths],
        input=json.dumps(whole),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (child.returncode, child.stdout) == (0, "done"), child.stderr
