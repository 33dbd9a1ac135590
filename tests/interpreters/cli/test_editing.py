"""``edit``: one task of a living fleet is changed, in its fleet file and in the plan, or not at all."""

from pathlib import Path

import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.cli.commands import editing, planning
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.store import SqliteStore


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def test_an_edit_is_in_force_and_in_the_file_and_the_task_is_done_by_it(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next reading of the file finds nothing changed. A task of ``task add`` is written into the file.

    Without a yes, with another change of the file that is not accepted, or for a task that is over, nothing changes.
    """
    sandbox.prepare("plain-1", "plain-2", gates=("plain-1", "plain-2"))
    with sandbox.running() as run:
        with sandbox.at_gate("plain-1"):
            before = sandbox.fleet.read_text()
            asked = sandbox.call("edit", "plain-2", "--priority", "1", code=2)
            assert "tasks.plain-2.priority: was 2, is 1" in asked.stdout
            assert "needs --yes; nothing has changed" in asked.stderr
            at_work = sandbox.call("edit", "plain-1", "--priority", "1", "--yes", code=2)
            assert "plain-1: refused: tasks.plain-1.priority: the task is " in at_work.stdout
            assert sandbox.fleet.read_text() == before
            said = sandbox.call("edit", "plain-2", "--prompt", "Write\nanother", "--yes").stdout
            assert "plain-2: edited; change 1 is accepted, and in force\n" in said
            assert 'id = "plain-2"\nprompt = """\nWrite\nanother"""\n' in sandbox.fleet.read_text()
            assert "is so already" in sandbox.call("edit", "plain-2", "--prompt", "Write\nanother", code=2).stdout
            sandbox.call("task", "add", "--id", "more", "--prompt", "Write it", "--depends-on", "plain-2")
            answer = sandbox.json("edit", "more", "--priority", "7", "--yes")
            assert (answer["command"], answer["target"], answer["outcome"]) == ("edit", "more", "applied")
            assert 'id = "more"\ndepends_on = ["plain-2"]\nmax_retries = 3\npriority = 7\n' in sandbox.fleet.read_text()
            assert "nothing has changed" in sandbox.call("plan", str(sandbox.fleet)).stdout
            _edit_that_the_board_refuses(sandbox, monkeypatch)
            sandbox.settle('prompt = "Write plain-1.txt"', 'prompt = "Write it to plain-1.txt"')
            refused = sandbox.call("edit", "plain-2", "--max-retries", "1", "--yes", code=2)
            assert "has other changes, which are not in force" in refused.stderr
            sandbox.settle('prompt = "Write it to plain-1.txt"', 'prompt = "Write plain-1.txt"')
        with sandbox.at_gate("plain-2"):
            over = sandbox.call("edit", "plain-1", "--max-retries", "1", "--yes", code=2)
            assert "plain-1: refused: it is closed: its work is done" in over.stdout
        assert "3 of 3 tasks closed" in run.rest()
    assert "Write\nanother" in sandbox.git("show", "main:plain-2.txt")
    assert "the fleet is over" in sandbox.call("edit", "more", "--priority", "1", "--yes", code=2).stdout


def _edit_that_the_board_refuses(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has its former text again."""
    before = sandbox.fleet.read_text()

    def accept(*_arguments: object, edited: str) -> None:
        assert sandbox.fleet.read_text() != before
        message = f"{edited} is not in force"
        raise BadInput(message)

    with monkeypatch.context() as patched:
        patched.setattr(planning, "accept", accept)
        words = ["edit", "plain-2", "--max-retries", "7", "--yes", "--db", str(sandbox.log)]
        with pytest.raises(BadInput, match="not in force"):
            editing.edit(parser().parse_args(words))
    assert sandbox.fleet.read_text() == before


def test_an_edit_without_an_answer_stays_in_the_file(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command stays in the log, and its writer can accept it at any time. The file would contradict the plan."""
    sandbox.prepare("plain-1", gates=("plain-1",))
    with sandbox.running() as run, sandbox.at_gate("plain-1"):
        run.process.kill()
    sandbox.kill_all()
    monkeypatch.setattr("lifefold.interpreters.cli.operator_commands.ANSWER_TIMEOUT_S", 0.2)
    monkeypatch.chdir(sandbox.folder)
    with SqliteStore.open(sandbox.log):
        editing.edit(parser().parse_args(["edit", "plain-1", "--max-retries", "9", "--yes"]))
    assert "max_retries = 9" in sandbox.fleet.read_text()
    said = sandbox.call("run", str(sandbox.fleet), "--transitions", "--accept").stdout
    assert "change 1: the change waited in the log, and was decided first" in said
    assert "1 of 1 tasks closed" in said
    assert sandbox.json("tasks")[0]["max_retries"] == 9


@pytest.mark.parametrize(
    ("script", "typed"), [("printf 'two\\n' > $1", "two"), ("exit 3", ""), ("true", "one")], ids=str
)
def test_a_prompt_is_changed_in_an_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, typed: str
) -> None:
    """An editor that fails changes nothing; an editor's last line end is none of the prompt's."""
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    monkeypatch.setattr(editing, "has_terminal", lambda: True)
    if typed:
        assert editing.typed_in_editor("one") == typed
    else:
        with pytest.raises(BadInput, match="ended with 3; nothing has changed"):
            editing.typed_in_editor("one")


def test_an_editor_needs_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for keys that never come."""
    monkeypatch.setattr(editing, "has_terminal", lambda: False)
    with pytest.raises(BadInput, match="--editor needs a terminal"):
        editing.typed_in_editor("one")
