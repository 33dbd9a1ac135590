"""``task add --from``: a list of tasks comes onto a board as a whole, or not at all."""

import io
import json
from pathlib import Path

import pytest

from fleet_log import FleetLog, folded, said
from lifefold.core.fleet import AgentPlan, TaskPlan
from lifefold.interpreters.cli.app import main

T1 = TaskPlan("T1", "do it")

LIST = """
[[tasks]]
id = "B"
prompt_file = "b.md"
depends_on = ["A", "T1"]

[[tasks]]
id = "A"
prompt = "do a"
priority = 1
verify = [["true"]]
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    FleetLog(tmp_path / "fleet.db", T1)
    (tmp_path / "b.md").write_text("do b")
    return tmp_path / "fleet.db"


def add(log: Path, capsys: pytest.CaptureFixture[str], source: str, *words: str, code: int = 0) -> str:
    """Add a list; return what is printed."""
    assert main(["task", "add", "--from", source, *words, "--db", str(log)]) == code
    printed = capsys.readouterr()
    return printed.out + printed.err


def added(log: Path) -> dict[str, tuple[str, tuple[str, ...], int]]:
    """Return prompt, dependencies and priority of the tasks that a list has added."""
    board = folded(log).aggregates["board"]
    names = [ref for ref in board.entities if ref.startswith("task:") and ref != "task:T1"]
    records = [board.record(ref) for ref in names]
    return {each.id: (each.prompt, each.depends_on, each.priority) for each in records}


A_AND_B = {"A": ("do a", (), 1), "B": ("do b", ("A", "T1"), 2)}


def test_a_list_of_toml_is_put_on_the_board(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A task before its dependency is fine, and so is a dependency on a task of the board."""
    (log.parent / "more.toml").write_text(LIST)
    assert add(log, capsys, str(log.parent / "more.toml")).count("added; the next run acts on it") == 2
    assert added(log) == A_AND_B


def test_a_list_of_json_is_the_same(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file or the standard input, with one answer in JSON for each task."""
    b = {"id": "B", "prompt_file": "b.md", "depends_on": ["A", "T1"]}
    text = json.dumps([b, {"id": "A", "prompt": "do a", "priority": 1, "verify": [["true"]]}])
    monkeypatch.chdir(log.parent)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    answers = [json.loads(line) for line in add(log, capsys, "-", "--json").splitlines()]
    assert {(each["target"], each["outcome"]) for each in answers} == {("A", "applied"), ("B", "applied")}
    assert added(log) == A_AND_B


MISTAKES = """
[[tasks]]
id = "t1"
prompt = "x"

[[tasks]]
id = "A"
prompt = "x"
depends_on = ["nothing"]
role = "review"
priority = 0

[[tasks]]
id = "a"
prompt = "x"
trust = "trusted"
budget = { sessions = 1 }

[[agents]]
name = "bob"
"""


def test_all_mistakes_of_a_list_are_named_with_their_lines_and_nothing_is_added(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of the list itself, and those that only the board knows."""
    file = log.parent / "more.toml"
    file.write_text(MISTAKES)
    told = add(log, capsys, str(file), code=2)
    for line, key, why in (
        (3, "tasks.t1.id", "there is a task T1 already"),
        (9, "tasks.A.depends_on", "nothing"),
        (10, "tasks.A.role", "review"),
        (11, "tasks.A.priority", "0"),
        (14, "tasks.a.id", "given twice"),
        (16, "tasks.a.trust", "this fleet gates nothing"),
        (17, "tasks.a.budget", "this fleet does not meter usage"),
        (19, "agents", "unknown key"),
    ):
        assert any(
            each.startswith((f"{file}:{line}: {key}", f"lifefold: {file}:{line}: {key}")) and why in each
            for each in told.splitlines()
        ), (line, key, told)
    assert told.endswith("no task was added\n")
    assert said(log) == []


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("more.json", '[\n{"id": "A", "prompt": "x"},\n{"id": "B"}]', "more.json:3: tasks.B: prompt or prompt_file is"),
        (
            "more.json",
            '[{"id": "A", "prompt": "x"}, 7]',
            "more.json:1: tasks[2]: found 7, an integer; accepted: a table",
        ),
        ("more.json", "{}", "more.json: tasks: found an empty table; accepted: an array of tables"),
        ("more.json", "[", "more.json: this is not JSON"),
        ("more", "[[tasks]", "more: this is not TOML"),
        ("more.toml", "", "more.toml: tasks: there are none; write at least one [[tasks]]"),
    ],
)
def test_an_unusable_list_is_refused_with_its_place(
    log: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, why: str
) -> None:
    """In JSON the line is that of the task."""
    (log.parent / name).write_text(text)
    assert why in add(log, capsys, str(log.parent / name), code=2)
    assert said(log) == []


def test_a_role_of_the_board_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list is judged by the living fleet, not by a fleet file."""
    log = FleetLog(tmp_path / "fleet.db", T1, agents=(AgentPlan("ann", roles=("review",)),)).path
    (tmp_path / "more.toml").write_text('[[tasks]]\nid = "A"\nprompt = "x"\nrole = "review"\n')
    assert add(log, capsys, str(tmp_path / "more.toml")).startswith("A: added")


def test_a_list_has_all_keys_of_its_tasks(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another option beside it would mean no task in particular; without a list, a task has an id and a prompt."""
    assert "write priority into the list" in add(log, capsys, "more.toml", "--priority", "1", code=2)
    assert "write approval into the list" in add(log, capsys, "more.toml", "--approval", "merge", code=2)
    assert "more.toml: cannot be read: No such file" in add(log, capsys, "more.toml", code=2)
    assert main(["task", "add", "--id", "A", "--db", str(log)]) == 2
    assert "give --id and --prompt of a task, or --from FILE" in capsys.readouterr().err
