"""The guarantee: whatever a file holds, reading it gives a fleet or a FleetFileError, with the right lines."""

import datetime as dt
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifefold.interpreters.fleet import Fleet, FleetFileError, load
from lifefold.interpreters.fleet.places import key_lines
from lifefold.interpreters.fleet.values import as_array, as_table

KEYS = (
    "fleet agents tasks name repository lease verify_timeout count kind command env session_timeout grace jitter"
    " max_consecutive_errors backoff_base backoff_cap reset_errors_on output_limit id prompt prompt_file verify"
    " depends_on priority max_retries x"
).split()
TEXTS = [*"a T1 .. . sh {prompt} { 5s 0s 1h30m 10MB start command é🙂".split(), "", "\0", "x" * 5_000]

keys = st.sampled_from(KEYS) | st.text(max_size=3)
scalars = (
    st.sampled_from(TEXTS)
    | st.text(max_size=5)
    | st.booleans()
    | st.integers(-2, 3)
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.dates()
    | st.times()
    | st.datetimes()
)
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
        "x": values,
    },
)


@st.composite
def near_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what is so near to a good file that some are one."""

    def changed(**table: Any) -> dict[str, Any]:
        return table | (draw(st.dictionaries(st.sampled_from(KEYS[3:]), values, max_size=1)) if draw(rarely) else {})

    return {
        "fleet": changed(name="f"),
        "agents": [changed(name="a", command=["sh", "{prompt}"])],
        "tasks": [changed(id=name, prompt="p") for name in "tu"],
    }


rarely = st.sampled_from([False, False, True])


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


def outcome(path: Path) -> Fleet | FleetFileError:
    try:
        return load(path)
    except FleetFileError as error:
        return error


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@pytest.fixture(name="path", scope="module")
def _path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "fleet.toml"


@given(documents | near_documents())
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_any_document_is_a_fleet_or_a_fleet_file_error(path: Path, document: dict[str, Any]) -> None:
    content = "".join(f"{quoted(key)} = {toml(value)}\n" for key, value in document.items())
    tomllib.loads(content)
    path.write_text(content, encoding="utf-8")
    match outcome(path):
        case FleetFileError() as error:
            assert error.problems
            assert all(problem.line is None or problem.line <= len(document) for problem in error.problems)
            assert str(error)
        case Fleet() as fleet:
            assert fleet.plan.agents
            assert fleet.fingerprint


@given(st.binary(max_size=40) | st.text(st.sampled_from("[]{}=.\"'\n #ab1\\"), max_size=40).map(str.encode))
def test_any_bytes_are_a_fleet_file_error(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(FleetFileError) as raised:
        load(path)
    assert str(raised.value).startswith(str(path))


@given(st.text(st.sampled_from("[]{}=.,\"'\n #ab1\\"), max_size=60))
def test_lines_of_any_text_come_to_an_end(content: str) -> None:
    key_lines(content)


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
