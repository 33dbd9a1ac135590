"""The guarantee: an editor that has the JSON Schema of a fleet file marks no good file, and what is of a wrong kind."""

import json
import re
import runpy
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from fleet_documents import KEYS, document_toml, documents, misfits, near_documents
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.demo import write_demo, write_init
from lifefold.interpreters.fleet_file import FleetFileError, load, programs, services
from lifefold.interpreters.fleet_file.agents import AgentKeys
from lifefold.interpreters.fleet_file.config import FileKeys
from lifefold.interpreters.fleet_file.keys import Key, Section, keys_of, sections_of
from lifefold.interpreters.fleet_file.schema import json_schema
from lifefold.interpreters.fleet_file.values import RefusedError, as_array

ROOT = Path(__file__).parents[3]
WRITER = runpy.run_path(str(ROOT / "docs" / "write_fleet_file.py"))
SCHEMA = json_schema()
DRAFT: Any = Draft202012Validator
VALIDATOR = DRAFT(SCHEMA)
OF_DRAFT_7: Any = Draft7Validator(SCHEMA)

GOOD = [
    *("0s 0ms 1h30m 007s 0B 5MiB 10kB 9KB a.b T.1 x:y x.y:z.a é:ü a/b ./a/..b docs/ ...a".split()),
    *("{{", "}}{task}x{prompt}", "a\nb"),
]
"""Texts that some key accepts, each in a manner of its own."""


def within(section: type[Section], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], type[Section]]]:
    """Yield all sections within one, each with the keys that lead to it."""
    for name, each in sections_of(section).items():
        yield (*path, name), each
        yield from within(each, (*path, name))


SECTIONS: dict[tuple[str, ...], type[Section]] = dict(within(FileKeys))
DECLARED = [
    pytest.param(path, key, id=".".join((*path, key.name)))
    for path in SECTIONS
    for key in keys_of(SECTIONS[path]).values()
]


SERVES: Final = frozenset(name for name, key in keys_of(AgentKeys).items() if key.when == services.IS_SERVICE)
"""The keys that only services have."""


PROGRAMS: Final = frozenset(name for name, key in keys_of(AgentKeys).items() if key.unless == programs.IS_NO_PROGRAM)
"""The keys that only agent programs have."""


def small(key: str = "", path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a good file, in which this key of this section may be written, too."""
    if key in SERVES and path == ("agents",):
        service = {"name": "web", "kind": "service", "command": ["sh", "{prompt}"], "triggers": [{"queue": True}]}
        return {"fleet": {"name": "demo"}, "agents": [service], "tasks": []}
    runs: dict[str, Any] = {"command": ["sh", "{prompt}"]}
    if key == "target":
        runs = {"kind": "python", "target": "a:B"}
    elif key in PROGRAMS:
        runs = {"kind": "claude", "program": "sh"}
    tells: dict[str, Any] = {"run": ["sh"]}
    if key in {"url", "headers"}:
        tells = {"url": "http://localhost/"}
    both = {name: "client.pem" for name in ("tls_cert", "tls_key") if key in {"tls_cert", "tls_key"}}
    prompt = {"prompt_file": "fleet.toml"} if key == "prompt_file" else {"prompt": "Write hello.txt"}
    return {
        "fleet": {
            "name": "demo",
            "retry": {},
            "restart": {},
            "preemption": {},
            "aborts": {},
            "budget": {},
            "questions": {},
        },
        "answers": [{"tool": "Bash", "answer": "allow"}],
        "prices": [{"model": "gpt", "input": 1, "output": 2}],
        "notify": [{"on": "closed", **tells}],
        "agents": [{"name": "coder", "roles": ["review"], "restart": {}, "budget": {}, **runs}],
        "tasks": [{"id": "T1", "budget": {}, **prompt}],
        "interpreters": [{"use": "pager"}],
        "cluster": {"pools": [{"name": "large"}], **both},
    }


def table_at(document: Any, path: tuple[str, ...]) -> Any:
    """Return a section of a file, the first one of several."""
    return table_at(first_of(document[path[0]]), path[1:]) if path else document


def first_of(value: Any) -> Any:
    """Return the first element of an array, and anything else as it is."""
    array = as_array(value)
    return value if array is None else array[0]


def problems(path: Path, document: dict[str, Any]) -> dict[str, str]:
    """Return what the reader says of a file, by key."""
    path.write_text(document_toml(document), encoding="utf-8")
    try:
        load(path)
    except FleetFileError as error:
        return {problem.key: problem.message for problem in error.problems}
    return {}


def places_refused(document: Any) -> set[tuple[str, ...]]:
    """Return where the schema finds something wrong: the names on the way, without the places in arrays."""
    return {tuple(each for each in error.path if isinstance(each, str)) for error in VALIDATOR.iter_errors(document)}


@pytest.fixture(name="path", scope="module")
def _path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schema") / "fleet.toml"


def test_it_is_a_schema_and_printed_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """``lifefold schema`` prints it, to be put beside a fleet file."""
    DRAFT.check_schema(SCHEMA)
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


def test_every_key_is_described_and_has_its_default() -> None:
    """What an editor shows of a key is what the documentation says; a default is itself accepted."""
    for path, section in SECTIONS.items():
        shown: Any = SCHEMA
        for part in path:
            shown = shown["properties"][part]
            shown = shown.get("items", shown)
        assert keys_of(section).keys() <= shown["properties"].keys()
        for name, key in keys_of(section).items():
            within = shown["properties"][name]
            assert key.about[1:] in within["description"]
            assert key.form.accepted in within["description"]
            assert within["title"].endswith(name)
            assert "default" not in within or DRAFT(within).is_valid(within["default"])


def shipped(folder: Path) -> Iterator[str]:
    """Yield every fleet file that is shipped, written by a command, or shown in the pages; parts are completed."""
    init = write_init(folder / "init").fleet_file.read_text()
    yield init
    yield re.sub(r"^# (?=\[\[|[a-z_]+ = )", "", init, flags=re.MULTILINE)
    yield write_demo(folder / "demo").read_text()
    for file in (ROOT / "examples").glob("*.toml"):
        yield file.read_text()
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            shown = tomllib.loads(block)
            if "project" not in shown:
                yield document_toml({name: table for name, table in small().items() if name not in shown}) + block


def test_every_fleet_file_that_is_shipped_or_shown_is_accepted(tmp_path: Path) -> None:
    """Examples, those of ``init`` and ``demo``, what ``init`` has as comments, and the blocks of the documentation."""
    files = list(shipped(tmp_path))
    assert len(files) >= 8
    for content in files:
        assert list(VALIDATOR.iter_errors(tomllib.loads(content))) == [], content


@given(documents | near_documents())
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_what_the_reader_accepts_the_schema_accepts(path: Path, document: dict[str, Any]) -> None:
    """So that an editor never marks what runs; one that knows only draft 7 says the same."""
    accepted = VALIDATOR.is_valid(document)
    assert accepted or problems(path, document)
    assert OF_DRAFT_7.is_valid(document) is accepted


@pytest.mark.parametrize("key", [pytest.param(each.values[1], id=each.id) for each in DECLARED])
@given(text=st.sampled_from(GOOD) | st.text("aB05.:-_/~\\ {}smhGi\n", max_size=7), depth=st.integers(0, 2))
@settings(max_examples=40)
def test_no_text_that_a_key_accepts_is_refused_by_the_schema(key: Key[Any], text: str, depth: int) -> None:
    """Two expressions that mean the same are the same: the reader's, and the one that an editor has."""
    value: Any = text
    for _ in range(depth):
        value = [value]
    with suppress(RefusedError):
        key.form.parse(value)
        assert DRAFT(key.form.schema).is_valid(value)


@pytest.mark.parametrize(("path_to_it", "key"), DECLARED)
@given(data=st.data())
@settings(max_examples=10)
def test_a_value_of_another_kind_is_refused_by_both(
    path: Path, path_to_it: tuple[str, ...], key: Key[Any], data: st.DataObject
) -> None:
    """Every declared key is read, and the schema accepts the same kinds and words as the reader."""
    document = small(key.name, path_to_it)
    table_at(document, path_to_it)[key.name] = data.draw(misfits(key.form.schema))
    told = [message for place, message in problems(path, document).items() if key.name in place]
    assert any("; accepted: " in message for message in told)
    assert not any("unknown key" in message for message in told)
    assert any((*path_to_it, key.name) == place[: len(path_to_it) + 1] for place in places_refused(document))


@pytest.mark.parametrize("path_to_it", [(), *(path for path in SECTIONS if path != ("interpreters",))], ids=".".join)
@given(name=st.sampled_from(KEYS) | st.text(min_size=1, max_size=4))
@settings(max_examples=10)
def test_an_unknown_key_is_refused_by_both(path: Path, path_to_it: tuple[str, ...], name: str) -> None:
    """In the file itself and in every table of it."""
    document = small()
    known = keys_of(SECTIONS[path_to_it]) if path_to_it else SECTIONS
    assume(name not in known and (name,) not in known and name not in table_at(document, path_to_it))
    table_at(document, path_to_it)[name] = 1
    assert any("unknown key" in message for message in problems(path, document).values())
    assert path_to_it in places_refused(document)


@pytest.mark.parametrize(
    ("path_to_it", "without", "with_it"),
    [
        (("fleet",), "name", {}),
        (("agents",), "name", {}),
        (("agents",), "command", {}),
        (("agents",), "command", {"kind": "python"}),
        (("agents",), "", {"kind": "python", "target": "a:B"}),
        (("agents",), "", {"target": "a:B"}),
        (("agents",), "", {"kind": "claude", "program": "sh"}),
        (("agents",), "", {"model": "opus"}),
        (("agents",), "command", {"kind": "python", "target": "a:B", "permissions": "edit"}),
        (("tasks",), "id", {}),
        (("tasks",), "prompt", {}),
        (("tasks",), "", {"prompt_file": "fleet.toml"}),
        (("agents",), "", {"command": []}),
        (("interpreters",), "use", {}),
        (("interpreters",), "", {"for": []}),
        ((), "fleet", {}),
        ((), "agents", {}),
        ((), "", {"tasks": []}),
    ],
)
def test_what_is_missing_or_does_not_go_together_is_refused_by_both(
    path: Path, path_to_it: tuple[str, ...], without: str, with_it: dict[str, Any]
) -> None:
    """A command or a class, by the kind; a prompt or its file; at least one agent and one task."""
    document = small()
    table_at(document, path_to_it).pop(without, None)
    table_at(document, path_to_it).update(with_it)
    assert problems(path, document)
    assert places_refused(document)
    assert not problems(path, small())
    assert not places_refused(small("target"))
    assert not places_refused(small("program"))
    assert not problems(path, small("program"))


def test_the_tables_of_the_page_are_what_is_declared() -> None:
    """Every section has its table of keys in ``docs/fleet-file.md``; ``make pages`` writes them anew."""
    text = WRITER["PAGE"].read_text()
    assert WRITER["page"](text) == text
    text_of_agents = WRITER["AGENTS"].read_text()
    assert WRITER["agents_page"](text_of_agents) == text_of_agents
    text_of_kinds = WRITER["NOTIFY"].read_text()
    assert WRITER["notify_page"](text_of_kinds) == text_of_kinds
    headers = {".".join(path) for path in SECTIONS}
    assert {part["header"].strip("[]") for part in WRITER["PART"].finditer(text)} == headers
    assert all(f"| `{key}` |" in text for section in SECTIONS.values() for key in keys_of(section))
