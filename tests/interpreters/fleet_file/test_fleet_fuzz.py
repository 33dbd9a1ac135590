"""The guarantee: whatever a file holds, reading it gives a fleet or a FleetFileError, with the right lines."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet_documents import document_toml, documents, near_documents
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_file.places import key_lines


def outcome(path: Path) -> Fleet | FleetFileError:
    try:
        return load(path)
    except FleetFileError as error:
        return error


@pytest.fixture(name="path", scope="module")
def _path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "fleet.toml"


@given(documents | near_documents())
@settings(max_examples=2 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow])
def test_any_document_is_a_fleet_or_a_fleet_file_error(path: Path, document: dict[str, Any]) -> None:
    content = document_toml(document)
    tomllib.loads(content)
    path.write_text(content, encoding="utf-8")
    match outcome(path):
        case FleetFileError() as error:
            assert error.problems
            assert all(problem.line is None or problem.line <= len(document) for problem in error.problems)
            assert str(error)
        case Fleet() as fleet:
            assert fleet.plan.agents
            assert fleet.meaning


@given(st.binary(max_size=40) | st.text(st.sampled_from("[]{}=.\"'\n #ab1\\"), max_size=40).map(str.encode))
def test_any_bytes_are_a_fleet_file_error(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(FleetFileError) as raised:
        load(path)
    assert str(raised.value).startswith(str(path))


@given(st.text(st.sampled_from("[]{}=.,\"'\n #ab1\\"), max_size=60))
def test_lines_of_any_text_come_to_an_end(content: str) -> None:
    lines = content.count("\n") + 1
    assert all(0 < line <= lines for line in key_lines(content).values())


def test_each_key_has_its_line() -> None:
    content = '''\
    # [comment]
    top = """
    [not] = "a table"
    """
    [fleet]
    "name" = 'x' # = y
    list = [ # [
      "a]", [ "b" ],
    ]
    [[agents]]
    a.b = 1
    [agents.env]
    'K Y' = "\\""
    [[agents]]
    a = {x = 1,
    }
    [[agents.deep]]
    z = 2'''.replace("{x = 1,\n    }", "{x = 1}")
    tomllib.loads(content)
    assert key_lines(content) == {
        ("top",): 2,
        ("fleet",): 5,
        ("fleet", "name"): 6,
        ("fleet", "list"): 7,
        ("agents",): 10,
        ("agents", 0): 10,
        ("agents", 0, "a"): 11,
        ("agents", 0, "a", "b"): 11,
        ("agents", 0, "env"): 12,
        ("agents", 0, "env", "K Y"): 13,
        ("agents", 1): 14,
        ("agents", 1, "a"): 15,
        ("agents", 1, "deep"): 16,
        ("agents", 1, "deep", 0): 16,
        ("agents", 1, "deep", 0, "z"): 17,
    }
