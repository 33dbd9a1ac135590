"""``edit``: one task of a living fleet is changed, in its fleet file and in the plan, or not at all."""

from pathlib import Path

import pytest

from fleet_ground import Ground
from lifefold.interpreters.cli.commands import editing, planning
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.grammar import parser


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_an_edit_is_in_force_and_in_the_file_and_the_task_is_done_by_it(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next reading of the file finds nothing changed. A task of ``task add`` is written into the file.

    Without a yes, with another change of the file that is not accepted, or for a task that is over, nothing changes.
    """
    ground.prepare("plain-1", "plain-2", gates=("plain-1", "plain-2"))
    with ground.running() as run:
        with ground.at_gate("plain-1"):
            before = ground.fleet.read_text()
            asked = ground.call("edit", "plain-2", "--priority", "1", code=2)
            assert "tasks.plain-2.priority: was 2, is 1" in asked.stdout
            assert "needs --yes; nothing has changed" in asked.stderr
            at_work = ground.call("edit", "plain-1", "--priority", "1", "--yes", code=2)
            assert "plain-1: refused: tasks.plain-1.priority: the task is " in at_work.stdout
            assert ground.fleet.read_text() == before
            said = ground.call("edit", "plain-2", "--prompt", "Write\nanother", "--yes").stdout
            assert "plain-2: edited; change 1 is accepted, and in force\n" in said
            assert 'id = "plain-2"\nprompt = """\nWrite\nanother"""\n' in ground.fleet.read_text()
            assert "is so already" in ground.call("edit", "plain-2", "--prompt", "Write\nanother", code=2).stdout
            ground.call("task", "add", "--id", "more", "--prompt", "Write it", "--depends-on", "plain-2")
            answer = ground.json("edit", "more", "--priority", "7", "--yes")
            assert (answer["command"], answer["target"], answer["outcome"]) == ("edit", "more", "applied")
            assert 'id = "more"\ndepends_on = ["plain-2"]\nmax_retries = 3\npriority = 7\n' in ground.fleet.read_text()
            assert "nothing has changed" in ground.call("plan", str(ground.fleet)).stdout
            _edit_that_the_board_refuses(ground, monkeypatch)
            ground.settle('prompt = "Write plain-1.txt"', 'prompt = "Write it to plain-1.txt"')
            refused = ground.call("edit", "plain-2", "--max-retries", "1", "--yes", code=2)
            assert "has other changes, which are not in force" in refused.stderr
            ground.settle('prompt = "Write it to plain-1.txt"', 'prompt = "Write plain-1.txt"')
        with ground.at_gate("plain-2"):
            over = ground.call("edit", "plain-1", "--max-retries", "1", "--yes", code=2)
            assert "plain-1: refused: it is CLOSED: its work is done" in over.stdout
        assert "3 of 3 tasks closed" in run.rest()
    assert "Write\nanother" in ground.git("show", "main:plain-2.txt")
    assert "the fleet is over" in ground.call("edit", "more", "--priority", "1", "--yes", code=2).stdout


def _edit_that_the_board_refuses(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has its former text again."""
    before = ground.fleet.read_text()

    def accept(*_arguments: object, edited: str) -> None:
        assert ground.fleet.read_text() != before
        message = f"{edited} is not in force"
        raise BadInput(message)

    with monkeypatch.context() as patched:
        patched.setattr(planning, "accept", accept)
        words = ["edit", "plain-2", "--max-retries", "7", "--yes", "--db", str(ground.log)]
        with pytest.raises(BadInput, match="not in force"):
            editing.edit(parser().parse_args(words))
    assert ground.fleet.read_text() == before


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
