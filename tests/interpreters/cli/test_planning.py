"""A fleet file is changed while its fleet lives: shown, confirmed, in force as a whole; nothing is lost."""

import os
import pty
import re
import shlex
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from commands_run import LIFEFOLD
from fleet_ground import HANG_S, Ground
from lifefold.interpreters.cli.commands.planning import accept, look
from lifefold.interpreters.fleet_file import load

NEW_TASK: Final = """
[[tasks]]
id = "plain-9"
prompt = "Write plain-9.txt"
verify = [["test", "-s", "plain-9.txt"]]
"""


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def _change(ground: Ground, old: str, new: str) -> None:
    """Change the fleet file in one place."""
    text = ground.fleet.read_text()
    assert text.count(old) == 1, (old, text)
    ground.fleet.write_text(text.replace(old, new))


def _wrong(ground: Ground, task: str) -> None:
    """Let a task be verified by what cannot be."""
    _change(ground, f'["test", "-s", "{task}.txt"]', '["test", "-s", "wrong"]')


def _right(ground: Ground, task: str) -> None:
    _change(ground, '["test", "-s", "wrong"]', f'["test", "-s", "{task}.txt"]')


def _named(said: str) -> list[list[str]]:
    """Return the commands that a refusal names, as a shell reads them, without the program's name."""
    return [shlex.split(found[1]) for line in said.splitlines() if (found := _COMMAND.search(line))]


_COMMAND: Final = re.compile(r"(?:lifefold|lifefold\.interpreters\.cli) (\w[^`]*)(?:`\.)?$")


def test_a_wrong_command_is_corrected_while_the_fleet_runs_and_nothing_is_lost(ground: Ground) -> None:
    """The session that is at the task goes on, and is verified by the new command: one session, one merge.

    A new agent begins at once and does the new task; what has happened is in the log, and in the task's story.
    """
    ground.prepare("plain-1", gates=("plain-1",))
    _wrong(ground, "plain-1")
    with ground.running() as run:
        with ground.at_gate("plain-1"):
            _right(ground, "plain-1")
            text = ground.fleet.read_text() + NEW_TASK
            command = text.partition("command = ")[2].partition("\n")[0]
            env = text.partition("env = ")[2].partition("\n")[0]
            other = f'\n[[agents]]\nname = "other"\ncommand = {command}\nenv = {env}\nsession_timeout = "60s"\n'
            ground.fleet.write_text(text + other)
            shown = ground.call("plan", str(ground.fleet)).stdout
            assert "agents.other: was added" in shown
            assert "tasks.plain-9: was added" in shown
            assert "(from its next verification on)" in shown
            said = ground.call("plan", str(ground.fleet), "--accept").stdout
            assert "change 1: accepted, and in force" in said
            run.until("task plain-9", "CLOSED")
        assert "2 of 2 tasks closed" in run.rest()
    assert (ground.sessions("plain-1"), ground.agents_of("plain-9")) == (1, ["other"])
    assert len(ground.merges()) == 2
    why = ground.call("why", "plain-1").stdout
    assert "its verify changed in the fleet file" in why
    assert "change 1" in ground.call("log").stdout
    assert "plan change 1 is in force since" in ground.call("status").stdout
    assert "nothing has changed" in ground.call("plan", str(ground.fleet)).stdout


def test_a_run_of_a_changed_file_is_refused_with_the_difference_and_the_command(ground: Ground) -> None:
    """It exits 2 and changes nothing; the command that it names works, with a runner at work and without."""
    ground.prepare("plain-1", "plain-2", gates=("plain-1",))
    with ground.running() as run, ground.at_gate("plain-1"):
        _change(ground, 'prompt = "Write plain-2.txt"', 'prompt = "Write it to plain-2.txt"')
        refused = ground.call("run", str(ground.fleet), "--no-live", code=2)
        assert (
            'is "…Write it to' in refused.stdout.replace("is …", 'is "…')
            or "tasks.plain-2.prompt: was" in refused.stdout
        )
        (command,) = _named(refused.stderr)
        assert "follows the changed file" in ground.call(*command, "--no-live").stdout
        run.process.kill()
    ground.kill_all()
    _change(ground, 'prompt = "Write it to plain-2.txt"', 'prompt = "Write plain-2.txt"')
    (command,) = _named(ground.call("run", str(ground.fleet), "--no-live", code=2).stderr)
    assert "2 of 2 tasks closed" in ground.call(*command, "--no-live").stdout


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2)])
def test_on_a_terminal_a_change_is_asked_about(ground: Ground, answer: str, code: int) -> None:
    """Nothing of it is in force without a yes."""
    ground.prepare("plain-1")
    with ground.running() as run:
        run.until("task plain-1", "CLAIMED")
        run.process.kill()
    ground.kill_all()
    _change(ground, 'prompt = "Write plain-1.txt"', 'prompt = "Write it to plain-1.txt"')
    shown, _, _ = _on_a_terminal(ground, answer, code).partition(b"accept this change? [y/N]")
    assert b"tasks.plain-1.prompt: was" in shown
    changed = ground.call("plan", str(ground.fleet)).stdout
    assert ("nothing has changed" in changed) is (code == 0)


def _on_a_terminal(ground: Ground, answer: str, code: int) -> bytes:
    """Run the fleet on a terminal, give an answer, and return what is seen until the end with this exit code."""
    mine, its = pty.openpty()
    command = [*LIFEFOLD, "run", str(ground.fleet), "--no-live"]
    with subprocess.Popen(
        command, cwd=ground.folder, stdin=its, stdout=its, stderr=its, start_new_session=True
    ) as run_:
        os.close(its)
        os.write(mine, f"{answer}\n".encode())
        seen = b""
        while more := _more(mine):
            seen += more
        assert run_.wait(HANG_S) == code, seen
    os.close(mine)
    return seen


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2)])
def test_on_a_terminal_the_rest_of_a_change_is_asked_about(ground: Ground, answer: str, code: int) -> None:
    """A task of the change is closed. With a yes the rest is in force, and without one nothing is."""
    _left(ground)
    _change(ground, 'prompt = "Write plain-1.txt"', 'prompt = "Write it to plain-1.txt"')
    ground.fleet.write_text(ground.fleet.read_text() + NEW_TASK)
    seen = _on_a_terminal(ground, answer, code)
    shown, _, after = seen.partition(b"accept the rest of this change? [y/N]")
    assert b"(without effect: the task is CLOSED)" in shown, seen
    assert (b"4 of 4 tasks closed" in after, b"--accept --rest" in after) == (code == 0, code == 2)


def test_a_task_that_closes_before_the_rest_is_accepted_is_named_afterwards(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    """The operator saw a change that would hold: the answer says that it has no effect by now."""
    ground.prepare("plain-1", "plain-2", "plain-3", gates=("plain-2", "plain-3"))
    with ground.running() as run:
        with ground.at_gate("plain-2"):
            run.until("task plain-1", "CLOSED")
            ground.fleet.write_text(ground.fleet.read_text().replace('"-s"', '"-f"'))
            changed = load(ground.fleet, watch=True)
            found = look(changed, ground.log, partial=True)
            assert found is not None
        with ground.at_gate("plain-3"):
            run.until("task plain-2", "CLOSED")
            accept(changed, ground.log, found)
            said = capsys.readouterr().out
            assert "accepted, and in force" in said
            assert "tasks.plain-2: without effect, because the task is CLOSED by now" in said
            assert "plain-1" not in said
        assert "3 of 3 tasks closed" in run.rest()


def _more(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody has the other end
        return b""


def _left(ground: Ground, *gates: str) -> Ground:
    """Leave a fleet whose first task is closed and whose second one is at work, with no runner."""
    ground.prepare("plain-1", "plain-2", "plain-3", gates=("plain-2",))
    with ground.running() as run, ground.at_gate("plain-2"):
        run.until("task plain-2", "IN_PROGRESS")
        run.process.kill()
    ground.kill_all()
    del gates
    return ground


def _remove(ground: Ground, task: str) -> None:
    head, _, tail = ground.fleet.read_text().partition(f'\n[[tasks]]\nid = "{task}"')
    ground.fleet.write_text(head + "\n[[tasks]]".join(("", *tail.split("\n[[tasks]]")[1:])))


REFUSALS: Final = {
    "a closed task": ('["test", "-s", "plain-1.txt"]', '["test", "-f", "plain-1.txt"]', "tasks.plain-1: verify"),
    "files of a task at work": ('id = "plain-2"', 'id = "plain-2"\nfiles = ["a"]', "tasks.plain-2.files"),
    "a foundation": ('name = "ground"\n', 'name = "ground"\napprove_plan = true\n', "fleet.approve_plan"),
    "a budget": ('name = "ground"\n', 'name = "ground"\nbudget = { sessions = 9 }\n', "fleet.budget"),
    "the repository": ('repository = "repo"', 'repository = "."', "fleet.repository"),
    "what an agent began with": (
        'grace = "300ms"',
        'grace = "300ms"\nstall_timeout = "9m"',
        "agents.agent.stall_timeout",
    ),
}


def _restore(ground: Ground, said: str) -> None:
    """Put back what a refusal prints as the former text, exactly as it prints that."""
    shown = said.partition("exactly:\n")[2].partition("  and accept")[0]
    lines = [line.strip() for line in shown.splitlines()]
    if lines[0] == "[[tasks]]":
        ground.fleet.write_text(ground.fleet.read_text() + "\n" + "\n".join(lines) + "\n")
        return
    for line in lines:
        place, _, key = line.partition(":  ")
        header, _, named = place.partition(" ")
        tables = re.split(r"(?m)^(?=\[)", ground.fleet.read_text())
        there = ((n, each.splitlines()) for n, each in enumerate(tables))
        (at,) = (n for n, each in there if each[:1] == [header] and named in {"", *each[1:3]})
        name = key.removeprefix("without ").partition(" = ")[0]
        kept = [each for each in tables[at].splitlines() if not each.startswith(f"{name} = ")]
        kept[2:2] = [] if key.startswith("without ") else [key]
        tables[at] = "\n".join([*kept, "", ""])
        ground.fleet.write_text("".join(tables))


def _put_back(ground: Ground, said: str, command: list[str]) -> None:
    """Put the former text back, and type the command after it: then the file is the plan in force."""
    _restore(ground, said)
    assert command[0] == "plan"
    assert command[-1] == "--accept"
    assert "nothing has changed" in ground.call(*command).stdout


@pytest.mark.parametrize("name", REFUSALS)
def test_every_refusal_names_commands_that_work(ground: Ground, name: str) -> None:
    """The refusal names what cannot change, and applies nothing. What it names is typed here as it is.

    The former text is printed in full: put back, it leaves nothing to accept.
    """
    _left(ground)
    old, new, what = REFUSALS[name]
    before = ground.json("tasks")
    _change(ground, old, new)
    changed = ground.fleet.read_text()
    if name == "the repository":
        (ground.folder / ".gitignore").write_text("*\n")
    refused = ground.call("run", str(ground.fleet), "--accept", "--no-live", code=2)
    assert what in refused.stderr
    assert ground.json("tasks") == before
    command, last = _named(refused.stderr)
    _put_back(ground, refused.stderr, last)
    ground.fleet.write_text(changed)
    match command[0]:
        case "why":
            assert "plain-2 is IN_PROGRESS" in ground.call(*command).stdout
        case "run" if name == "a foundation":
            with ground.running("--db", command[-1]) as run:
                run.until("lifefold approve")
        case "run" if name != "the repository":
            if name == "what an agent began with":
                _restore(ground, refused.stderr)
                command.remove("--accept")
            assert "tasks closed" in ground.call(*command, "--no-live").stdout
        case _:
            assert name == "the repository"


LONG: Final = "Write plain-2.txt, and then, in the same file, a second line which says that this was the second line"


def test_a_task_that_has_closed_meanwhile_leaves_the_rest_of_an_edit_possible(ground: Ground) -> None:
    """The refusal names the command that accepts the rest; the file is the plan in force then, without a further edit.

    The former text of the closed task is printed in full, however long it is. Nothing is done again.
    """
    ground.prepare("plain-1", "plain-2", "plain-3", gates=("plain-3",))
    _change(ground, 'prompt = "Write plain-2.txt"', f'prompt = "{LONG}"')
    with ground.running() as run, ground.at_gate("plain-3"):
        run.until("task plain-2", "CLOSED")
        before = ground.fleet.read_text()
        _change(ground, f'prompt = "{LONG}"', f'prompt = "{LONG}!"')
        _remove(ground, "plain-1")
        ground.fleet.write_text(ground.fleet.read_text() + NEW_TASK)
        refused = ground.call("plan", str(ground.fleet), "--accept", code=2)
        assert "tasks.plain-2: prompt: the task is CLOSED, so that has no effect" in refused.stderr
        assert "tasks.plain-1: was removed, but it is CLOSED, and stays so" in refused.stderr
        assert f'prompt = "{LONG}"\n' in refused.stderr
        whole = ['id = "plain-1"', "max_retries = 3", "priority = 2", 'prompt = "Write plain-1.txt"', "verify = "]
        assert "\n    ".join(whole) in refused.stderr
        assert "tasks.plain-9: was added\n" in refused.stdout
        rest, _ = _named(refused.stderr)
        shown = ground.call(*rest).stdout
        assert "tasks.plain-1: was removed  (without effect: the task is CLOSED)" in shown
        assert "(without effect: the task is CLOSED)\n  tasks.plain-9: was added" in shown
        assert "change 1: accepted, and in force" in shown
        assert "nothing has changed" in ground.call("plan", str(ground.fleet)).stdout
        ground.fleet.write_text(before + NEW_TASK)
        assert "tasks.plain-1: was added" in ground.call("plan", str(ground.fleet), "--accept", "--rest").stdout
    with ground.running() as run:
        assert "4 of 4 tasks closed" in run.rest()
    assert [ground.sessions(f"plain-{n}") for n in (1, 2, 9)] == [1, 1, 1]


def test_a_removed_task_that_is_closed_is_put_back_as_its_text_is_printed(ground: Ground) -> None:
    """The text is that of the whole task."""
    _left(ground)
    _remove(ground, "plain-1")
    refused = ground.call("plan", str(ground.fleet), code=2).stderr
    _, last = _named(refused)
    _restore(ground, refused)
    assert "tasks: the order was" in ground.call(*last).stdout
    assert "nothing has changed" in ground.call("plan", str(ground.fleet)).stdout


def test_a_task_at_work_is_cancelled_before_it_is_removed(ground: Ground) -> None:
    """As the refusal says; then the change is in force, and what is left is done."""
    _left(ground)
    _remove(ground, "plain-2")
    refused = ground.call("run", str(ground.fleet), "--accept", "--no-live", code=2)
    assert "tasks.plain-2: was removed, but it is IN_PROGRESS with agent; cancel it first" in refused.stderr
    command, _ = _named(refused.stderr)
    assert "cancelled" in ground.call(*command).stdout
    assert "change 1: accepted" in (said := ground.call("run", str(ground.fleet), "--accept", "--no-live").stdout)
    assert "2 of 2 tasks closed" in said


def test_work_that_waits_for_its_approval_is_rejected_before_its_task_is_removed(ground: Ground) -> None:
    """As the refusal says; nothing of the work is merged then."""
    ground.prepare("plain-1", "plain-2", gates=("plain-2",))
    ground.demand("plain-1", 'approval = "merge"')
    with ground.running() as run:
        run.until("task plain-1", "PENDING_APPROVAL")
        with ground.at_gate("plain-2"):
            _remove(ground, "plain-1")
            refused = ground.call("plan", str(ground.fleet), "--accept", code=2)
            assert "was removed, but it is PENDING_APPROVAL; reject or approve its work first" in refused.stderr
            command, _ = _named(refused.stderr)
            assert "rejected" in ground.call(*command).stdout
            assert "change 1: accepted" in ground.call("plan", str(ground.fleet), "--accept").stdout
        assert "1 of 1 tasks closed" in run.rest()
    assert len(ground.merges()) == 1


def test_a_fleet_that_is_over_does_a_changed_file_in_a_new_log(ground: Ground) -> None:
    """The refusal names --again, and that does what is new."""
    ground.prepare("plain-1").run()
    ground.fleet.write_text(ground.fleet.read_text() + NEW_TASK)
    refused = ground.call("run", str(ground.fleet), "--no-live", code=2)
    (command,) = _named(refused.stderr)
    assert command[-1] == "--again"
    assert "1 of 1 tasks closed" in ground.call(*command, "--no-live").stdout


def test_a_fleet_of_another_name_has_a_log_of_its_own(ground: Ground) -> None:
    """The log of the other one is refused by name, with a log that is free."""
    ground.prepare("plain-1").run()
    _change(ground, 'name = "ground"', 'name = "other"')
    refused = ground.call("run", str(ground.fleet), "--db", str(ground.log), "--no-live", code=2)
    assert "is the log of the fleet 'ground', not of 'other'" in refused.stderr
    (command,) = _named(refused.stderr)
    assert "tasks closed" in ground.call(*command, "--no-live").stdout


def test_a_fleet_keeps_its_name_as_long_as_it_is_not_over(ground: Ground) -> None:
    """Neither plan nor run begins another log by itself; both commands that they name do what they say."""
    _left(ground)
    before = ground.json("tasks")
    text = ground.fleet.read_text()
    _change(ground, 'name = "ground"', 'name = "other"')
    refused = ground.call("run", str(ground.fleet), "--no-live", code=2)
    assert "fleet.name: was ground, is other" in refused.stderr
    assert "fleet.name: was ground, is other" in ground.call("plan", str(ground.fleet), code=2).stderr
    assert not ground.log.with_name("other.db").exists()
    assert ground.json("tasks") == before
    back, another = _named(refused.stderr)
    assert "3 of 3 tasks closed" in ground.call(*another, "--no-live").stdout
    ground.fleet.write_text(text)
    assert "3 of 3 tasks closed" in ground.call(*back, "--no-live").stdout


def test_a_name_is_free_when_the_fleet_is_over(ground: Ground) -> None:
    """Nothing is left behind then, and the next fleet of the file begins in a log of its own."""
    ground.prepare("plain-1").run()
    _change(ground, 'name = "ground"', 'name = "other"')
    ground.log.with_name("junk.db").write_text("no log at all")
    assert "1 of 1 tasks closed" in ground.call("run", str(ground.fleet), "--no-live").stdout


def test_what_was_removed_is_counted_and_explained_alike_everywhere(ground: Ground) -> None:
    """The summary of run, status, its JSON, why, and what retry answers; the command that is named puts it back."""
    _left(ground)
    text = ground.fleet.read_text()
    _remove(ground, "plain-3")
    accepted = ground.call("plan", str(ground.fleet), "--accept").stdout
    assert "tasks.plain-3: was removed  (it is not done, and not counted)" in accepted
    assert "1 of 2 tasks closed, 1 running, 1 removed" in ground.call("status").stdout
    assert ground.json("status")["removed"] == ["plain-3"]
    assert sum(ground.json("status")["tasks"].values()) == 2
    why = ground.call("why", "plain-3").stdout
    assert "goes on when the fleet file has it again" in why
    assert "retry" not in why
    refused = ground.call("retry", "plain-3", code=2).stdout
    ground.fleet.write_text(text)
    assert _named(why)[0] == _named(refused)[0]
    (command, *_) = _named(refused)
    assert "tasks.plain-3: was added" in ground.call(*command).stdout
    _remove(ground, "plain-3")
    assert "2 of 2 tasks closed; 1 removed;" in ground.call("run", str(ground.fleet), "--no-live").stdout
    assert "2 of 2 tasks closed, 1 removed" in ground.call("status").stdout
    again = ground.call("retry", "plain-3", code=2).stdout
    ground.fleet.write_text(text)
    assert "1 of 1 tasks closed" in ground.call(*_named(again)[0], "--no-live").stdout


def test_a_refusal_beside_a_runner_names_commands_that_work_beside_a_runner(ground: Ground) -> None:
    """A new log is begun when the runner has left; what was put back is accepted while it is at work."""
    ground.prepare("plain-1", "plain-2", gates=("plain-2",))
    with ground.running() as run:
        with ground.at_gate("plain-2"):
            run.until("task plain-1", "CLOSED")
            text = ground.fleet.read_text()
            _change(ground, '"plain-1.txt"]', '"plain-1.txt", "-a", "x"]')
            rest, back = _named(ground.call("plan", str(ground.fleet), code=2).stderr)
            ground.fleet.write_text(text)
            assert "nothing has changed" in ground.call(*back).stdout
            assert "nothing has changed" in ground.call(*rest).stdout
            _change(ground, 'grace = "300ms"', 'grace = "300ms"\nstall_timeout = "9m"')
            command, _ = _named(ground.call("run", str(ground.fleet), code=2).stderr)
            ground.fleet.write_text(text)
            assert "nothing has changed" in ground.call(*command).stdout
            _change(ground, 'name = "ground"\n', 'name = "ground"\napprove_plan = true\n')
            refused = ground.call("run", str(ground.fleet), code=2).stderr
            assert "after the runner has left (Ctrl-C):" in refused
            fresh, _ = _named(refused)
            ground.fleet.write_text(text)
        assert "2 of 2 tasks closed" in run.rest()
    assert "2 of 2 tasks closed" in ground.call(*fresh, "--no-live").stdout


def test_a_plan_without_a_log_has_nothing_in_force(ground: Ground) -> None:
    """The command says so, and exits 0."""
    ground.prepare("plain-1")
    assert "there is no log" in ground.call("plan", str(ground.fleet)).stdout


def test_only_the_command_of_an_agent_changes_and_the_next_session_has_it(ground: Ground) -> None:
    """What core does not know of is a change all the same, and is in force with the same entry."""
    ground.prepare("crash-1", gates=("crash-1",))
    with ground.running() as run:
        with ground.at_gate("crash-1"):
            _change(ground, '"{prompt_file}"', '"{prompt_file}", "new"')
            agent = ground.folder / "agent.py"
            agent.write_text(agent.read_text() + 'pathlib.Path("mark").write_text(sys.argv[-1])\n')
            shown = ground.call("run", str(ground.fleet), "--accept").stdout
            assert "agents.agent.command" in shown
            assert "(from its next session on)" in shown
        assert "1 of 1 tasks closed" in run.rest()
    assert ground.git("show", "main:mark") == "new"


def _made_two(ground: Ground) -> None:
    """Let the one agent of the file be two: the plan removes it, and adds two others."""
    _change(ground, "count = 1", "count = 2")


def test_a_session_of_a_removed_agent_is_adopted_by_the_next_runner_and_its_work_is_merged(ground: Ground) -> None:
    """The runner is killed after the change: the next one reads no word of the agent, and its session counts."""
    ground.prepare("plain-1", gates=("plain-1",))
    with ExitStack() as gate:
        with ground.running() as run:
            gate.enter_context(ground.at_gate("plain-1"))
            run.until("task plain-1", "IN_PROGRESS")
            _made_two(ground)
            assert "agents.agent: was removed" in ground.call("plan", str(ground.fleet), "--accept").stdout
            run.process.kill()
        with ground.running() as run:
            run.until("1 session adopted")
            gate.close()
            assert "1 of 1 tasks closed" in run.rest()
    assert run.process.returncode == 0
    assert ground.agents_of("plain-1") == ["agent"]


def test_an_adopted_session_has_the_time_limit_that_it_began_with(ground: Ground) -> None:
    """The changed limit is for the next session, also if the runner has died in between: the end names the former."""
    ground.prepare("hang-1")
    ground.demand("hang-1", "max_retries = 0")
    _change(ground, 'session_timeout = "60s"', 'session_timeout = "20s"')
    with ground.running() as run:
        run.until("task hang-1", "IN_PROGRESS")
        _change(ground, 'session_timeout = "20s"', 'session_timeout = "5m"')
        assert "from its next session on" in ground.call("plan", str(ground.fleet), "--accept").stdout
        run.process.kill()
    said = ground.call("run", str(ground.fleet), "--no-live", code=1).stdout
    assert "hang-1: FAILED: Timeout(session_timeout of 20s is over)" in said


def test_a_removed_agent_that_is_held_gives_its_task_back_without_a_failure(ground: Ground) -> None:
    """No runner knows its command any more; the work that it began is kept, and its task costs no retry."""
    ground.prepare("plain-1", gates=("plain-1",))
    ground.demand("plain-1", "max_retries = 0")
    with ground.running() as run, ground.at_gate("plain-1"):
        run.until("task plain-1", "IN_PROGRESS")
        run.signal(signal.SIGINT)
        run.rest()
    _made_two(ground)
    said = ground.call("run", str(ground.fleet), "--accept", "--no-live").stdout
    assert "1 of 1 tasks closed" in said
    assert ground.agents_of("plain-1") == ["agent", "agent-1"]
    why = ground.call("why", "plain-1").stdout
    assert "failed" not in why
    assert "given back" in why


def test_a_changed_variable_is_in_the_next_session_and_in_no_file_of_the_log(ground: Ground) -> None:
    """Variables are no part of the plan: plan says from when they hold, and the runner names those that changed."""
    ground.prepare("crash-1", gates=("crash-1",))
    agent = ground.folder / "agent.py"
    agent.write_text(agent.read_text() + 'pathlib.Path("mark").write_text(os.environ["GREETING"])\n')
    _change(ground, "env = { COUNTS", 'env = { GREETING = "before", COUNTS')
    with ground.running() as run:
        with ground.at_gate("crash-1"):
            _change(ground, '"before"', '"afterwards"')
            shown = ground.call("plan", str(ground.fleet)).stdout
            assert "nothing has changed" in shown
            assert "env  (from each next session on)" in shown
        assert "GREETING" in run.until("changed in the fleet file: new sessions have the new values")
        assert "1 of 1 tasks closed" in run.rest()
    assert ground.git("show", "main:mark") == "afterwards"
    files = [each for each in ground.log.parent.glob("ground.db*") if each.is_file()]
    assert not [each for each in files if b"afterwards" in each.read_bytes()]


def test_a_variable_of_a_file_with_another_plan_waits_for_its_acceptance(ground: Ground) -> None:
    """Nothing of such a file holds before; then the next session has its variables as well."""
    ground.prepare("crash-1", "plain-2", gates=("crash-1", "plain-2"))
    agent = ground.folder / "agent.py"
    agent.write_text(agent.read_text() + 'pathlib.Path(f"mark-{task}").write_text(os.environ["GREETING"])\n')
    _change(ground, "env = { COUNTS", 'env = { GREETING = "before", COUNTS')
    with ground.running() as run:
        with ground.at_gate("crash-1"):
            _change(ground, '"before"', '"afterwards"')
            _change(ground, 'prompt = "Write plain-2.txt"', 'prompt = "Write it to plain-2.txt"')
        with ground.at_gate("plain-2"):
            pass
        assert "2 of 2 tasks closed" in run.rest()
    assert ground.git("show", "main:mark-crash-1") == "before"
    assert "env  (from each next session on)" in ground.call("plan", str(ground.fleet), code=2).stdout


def test_a_corrected_command_of_a_task_that_failed_for_good_names_its_retry(ground: Ground) -> None:
    """No verification comes by itself then; the command that is named lets the task be done."""
    ground.prepare("plain-1", "plain-2", gates=("plain-2",))
    ground.demand("plain-1", "max_retries = 0")
    _wrong(ground, "plain-1")
    with ground.running() as run:
        with ground.at_gate("plain-2"):
            _right(ground, "plain-1")
            shown = ground.call("plan", str(ground.fleet), "--accept").stdout
            (command,) = [each for each in _named(shown.replace(")\n", "\n")) if each[0] == "retry"]
            assert "from its next verification on; it has failed for good" in shown
            ground.call(*command)
            run.until("task plain-1", "OPEN")
        assert "2 of 2 tasks closed" in run.rest()


@pytest.mark.parametrize("repository", [True, False], ids=["repository", "folders"])
def test_work_that_waits_for_approval_is_verified_again_by_changed_commands(
    ground: Ground,
    repository: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The same work, without another session; it waits for its approval again, and is merged after that."""
    ground.prepare("plain-1", "plain-2", gates=("plain-2",), repository=repository)
    ground.demand("plain-1", 'approval = "merge"')
    with ground.running() as run:
        run.until("task plain-1", "PENDING_APPROVAL")
        with ground.at_gate("plain-2"):
            _change(ground, '["test", "-s", "plain-1.txt"]', '["test", "-f", "plain-1.txt"]')
            shown = ground.call("plan", str(ground.fleet), "--accept").stdout
            assert "(at once: its work, which waits for your approval, is verified again)" in shown
            run.until("task plain-1", "DONE")
            early = ground.call("approve", "plain-1", code=2)
            assert "its commands were changed, so it is verified by them first" in early.stdout
            why = ground.call("why", "plain-1").stdout
            assert "is DONE: its verification has changed" in why
        run.until("task plain-1", "PENDING_APPROVAL")
        ground.call("approve", "plain-1")
        assert "2 of 2 tasks closed" in run.rest()
    assert ground.sessions("plain-1") == 1


def test_work_that_no_command_has_verified_is_not_said_to_be_verified_again(ground: Ground) -> None:
    """A first verification is not a second one, and approved work without any is not called verified."""
    ground.prepare("plain-1", "plain-2", gates=("plain-2",))
    ground.demand("plain-1", 'approval = "merge"')
    verify = 'verify = [["test", "-s", "plain-1.txt"]]\n'
    _change(ground, verify, "")
    with ground.running() as run:
        run.until("task plain-1", "PENDING_APPROVAL")
        with ground.at_gate("plain-2"):
            _change(ground, 'approval = "merge"\n', f'approval = "merge"\n{verify}')
            shown = ground.call("plan", str(ground.fleet)).stdout
            assert "(at once: its work, which waits for your approval, is verified)" in shown
            ground.call("approve", "plain-1")
            shown = ground.call("plan", str(ground.fleet)).stdout
            assert "not for its work, which was approved before and is not verified" in shown
        assert "2 of 2 tasks closed" in run.rest()


def test_a_renamed_fleet_beside_its_runner_is_told_commands_that_work_then(ground: Ground) -> None:
    """The name is restored while the runner is at work; a new log is begun when it has left."""
    ground.prepare("plain-1", gates=("plain-1",))
    with ground.running() as run:
        with ground.at_gate("plain-1"):
            _change(ground, 'name = "ground"', 'name = "other"')
            back, another = _named(ground.call("plan", str(ground.fleet), code=2).stderr)
            _change(ground, 'name = "other"', 'name = "ground"')
            assert "nothing has changed" in ground.call(*back).stdout
        assert "1 of 1 tasks closed" in run.rest()
    _change(ground, 'name = "ground"', 'name = "other"')
    assert "1 of 1 tasks closed" in ground.call(*another, "--no-live").stdout


def test_after_a_new_log_each_message_names_a_command_that_works(ground: Ground) -> None:
    """The new log takes over the fleet's name. A command without a log names the log that was written last.

    A run of the former log names the commands for that run, and for another new log.
    """
    _left(ground)
    ground.demand("", "approve_plan = true")
    fresh, _ = _named(ground.call("run", str(ground.fleet), code=2).stderr)
    with ground.running("--db", fresh[-1]) as run:
        run.until("lifefold approve")
        (status,) = _named(ground.call("status", "--json", code=2).stderr)
        assert status == ["status", "--json", "--db", ".lifefold/ground-anew.db"]
        assert ground.call(*status).stdout.startswith("{")
        run.signal(signal.SIGINT)
        run.rest()
    ground.settle("approve_plan = true\n", "")
    refused = ground.call("run", str(ground.fleet), "--no-live", code=2).stderr
    assert "Another run has taken over the name of the fleet 'ground'" in refused
    there, anew = _named(refused)
    assert there[-1] == fresh[-1]
    assert anew[-1].endswith("ground-anew-2.db")
    assert "3 of 3 tasks closed" in ground.call(*anew, "--no-live").stdout
    Path(anew[-1]).unlink()
    (again,) = _named(ground.call("run", str(ground.fleet), "--no-live", code=2).stderr)
    assert again == anew, "the other log is gone"


def _raised(ground: Ground) -> None:
    """Leave a fleet with a budget of 4 sessions in its file, to which a command has added one."""
    ground.prepare("plain-1", "plain-2", gates=("plain-2",)).demand("", "budget = { sessions = 4 }")
    with ground.running() as run, ground.at_gate("plain-2"):
        run.until("task plain-2", "IN_PROGRESS")
        assert "raised" in ground.call("budget", "--add-sessions", "1").stdout
        run.process.kill()
    ground.kill_all()


def test_the_amount_of_a_raised_budget_is_written_into_the_file_without_a_confirmation(ground: Ground) -> None:
    """It is in force already, so a run goes on."""
    _raised(ground)
    ground.settle("sessions = 4", "sessions = 5")
    said = ground.call("run", str(ground.fleet), "--no-live").stdout
    assert "was 4, is 5, which is in force already: lifefold budget has raised it  (nothing changes)" in said
    assert "2 of 2 tasks closed" in said


def test_a_task_that_is_added_to_a_finished_fleet_is_done_as_the_refusal_says(ground: Ground) -> None:
    """Nothing of the file is left to do before it is in the file."""
    ground.prepare("plain-1").run()
    refused = ground.call("task", "add", "--id", "plain-9", "--prompt", "x", code=2).stdout
    (command,) = _named(refused)
    ground.fleet.write_text(ground.fleet.read_text() + NEW_TASK)
    assert "1 of 1 tasks closed" in ground.call(*command, "--no-live").stdout


def test_a_task_that_was_cancelled_by_its_removal_is_named_as_final_by_retry(ground: Ground) -> None:
    """Neither its return to the file nor --again brings it back, so neither is named; another task is."""
    ground.prepare("plain-1", "plain-2")
    ground.demand("", "approve_plan = true")
    with ground.running() as run:
        run.until("lifefold approve")
        _remove(ground, "plain-2")
        ground.call("plan", str(ground.fleet), "--accept")
        (command,) = _named(ground.call("retry", "plain-2", code=2).stdout)
        assert command[:4] == ["task", "add", "--id", "plain-2-2"]
        ground.call("approve")
        assert "1 of 1 tasks closed" in run.rest()
    assert "that is final; add another task to the fleet file" in ground.call("retry", "plain-2", code=2).stdout
