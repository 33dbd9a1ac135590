"""A fleet file is changed while its fleet lives: shown, confirmed, in force as a whole; nothing is lost."""

import json
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
from fleet_sandbox import HANG_S, Sandbox
from lifefold.interpreters.cli.commands.planning import accept, look
from lifefold.interpreters.fleet_file import load

NEW_TASK: Final = """
[[tasks]]
id = "plain-9"
prompt = "Write plain-9.txt"
verify = [["test", "-s", "plain-9.txt"]]
"""


def _change(sandbox: Sandbox, old: str, new: str) -> None:
    """Change the fleet file in one place."""
    text = sandbox.fleet.read_text()
    assert text.count(old) == 1, (old, text)
    sandbox.fleet.write_text(text.replace(old, new))


def _wrong(sandbox: Sandbox, task: str) -> None:
    """Let a task be verified by what cannot be."""
    _change(sandbox, f'["test", "-s", "{task}.txt"]', '["test", "-s", "wrong"]')


def _right(sandbox: Sandbox, task: str) -> None:
    _change(sandbox, '["test", "-s", "wrong"]', f'["test", "-s", "{task}.txt"]')


def _named(said: str) -> list[list[str]]:
    """Return the commands that a refusal names, as a shell reads them, without the program's name."""
    return [shlex.split(found[1]) for line in said.splitlines() if (found := _COMMAND.search(line))]


_COMMAND: Final = re.compile(r"(?:lifefold|lifefold\.interpreters\.cli) (\w[^`]*)(?:`\.)?$")


def test_a_wrong_command_is_corrected_while_the_fleet_runs_and_nothing_is_lost(sandbox: Sandbox) -> None:
    """The session that is at the task goes on, and is verified by the new command: one session, one merge.

    A new agent begins at once and does the new task; what has happened is in the log, and in the task's story.
    """
    sandbox.prepare("plain-1", gates=("plain-1",))
    _wrong(sandbox, "plain-1")
    with sandbox.running() as run:
        with sandbox.at_gate("plain-1"):
            _right(sandbox, "plain-1")
            text = sandbox.fleet.read_text() + NEW_TASK
            command = text.partition("command = ")[2].partition("\n")[0]
            env = text.partition("env = ")[2].partition("\n")[0]
            other = f'\n[[agents]]\nname = "other"\ncommand = {command}\nenv = {env}\nsession_timeout = "60s"\n'
            sandbox.fleet.write_text(text + other)
            shown = sandbox.call("plan", str(sandbox.fleet)).stdout
            assert "agents.other: was added" in shown
            assert "tasks.plain-9: was added" in shown
            assert "(from its next verification on)" in shown
            said = sandbox.call("plan", str(sandbox.fleet), "--accept").stdout
            assert "change 1: accepted, and in force" in said
            run.until("task plain-9", "CLOSED")
        assert "2 of 2 tasks closed" in run.rest()
    assert (sandbox.sessions("plain-1"), sandbox.agents_of("plain-9")) == (1, ["other"])
    assert len(sandbox.merges()) == 2
    why = sandbox.call("why", "plain-1").stdout
    assert "its verify changed in the fleet file" in why
    assert "change 1" in sandbox.call("log").stdout
    assert "plan change 1 is in force since" in sandbox.call("status").stdout
    assert "nothing has changed" in sandbox.call("plan", str(sandbox.fleet)).stdout


def test_a_run_of_a_changed_file_is_refused_with_the_difference_and_the_command(sandbox: Sandbox) -> None:
    """It exits 2 and changes nothing; the command that it names works, with a runner at work and without."""
    sandbox.prepare("plain-1", "plain-2", gates=("plain-1",))
    with sandbox.running() as run, sandbox.at_gate("plain-1"):
        _change(sandbox, 'prompt = "Write plain-2.txt"', 'prompt = "Write it to plain-2.txt"')
        refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2)
        assert (
            'is "…Write it to' in refused.stdout.replace("is …", 'is "…')
            or "tasks.plain-2.prompt: was" in refused.stdout
        )
        (command,) = _named(refused.stderr)
        assert "follows the changed file" in sandbox.call(*command, "--transitions").stdout
        run.process.kill()
    sandbox.kill_all()
    _change(sandbox, 'prompt = "Write it to plain-2.txt"', 'prompt = "Write plain-2.txt"')
    (command,) = _named(sandbox.call("run", str(sandbox.fleet), "--transitions", code=2).stderr)
    assert "2 of 2 tasks closed" in sandbox.call(*command, "--transitions").stdout


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2)])
def test_on_a_terminal_a_change_is_asked_about(sandbox: Sandbox, answer: str, code: int) -> None:
    """Nothing of it is in force without a yes."""
    sandbox.prepare("plain-1")
    with sandbox.running() as run:
        run.until("task plain-1", "CLAIMED")
        run.process.kill()
    sandbox.kill_all()
    _change(sandbox, 'prompt = "Write plain-1.txt"', 'prompt = "Write it to plain-1.txt"')
    shown, _, _ = _on_a_terminal(sandbox, answer, code).partition(b"accept this change? [y/N]")
    assert b"tasks.plain-1.prompt: was" in shown
    changed = sandbox.call("plan", str(sandbox.fleet)).stdout
    assert ("nothing has changed" in changed) is (code == 0)


def _on_a_terminal(sandbox: Sandbox, answer: str, code: int) -> bytes:
    """Run the fleet on a terminal, give an answer, and return what is seen until the end with this exit code."""
    mine, its = pty.openpty()
    command = [*LIFEFOLD, "run", str(sandbox.fleet), "--transitions"]
    with subprocess.Popen(
        command, cwd=sandbox.folder, stdin=its, stdout=its, stderr=its, start_new_session=True
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
def test_on_a_terminal_the_rest_of_a_change_is_asked_about(sandbox: Sandbox, answer: str, code: int) -> None:
    """A task of the change is closed. With a yes the rest is in force, and without one nothing is."""
    _left(sandbox)
    _change(sandbox, 'prompt = "Write plain-1.txt"', 'prompt = "Write it to plain-1.txt"')
    sandbox.fleet.write_text(sandbox.fleet.read_text() + NEW_TASK)
    seen = _on_a_terminal(sandbox, answer, code)
    shown, _, after = seen.partition(b"accept the rest of this change? [y/N]")
    assert b"(without effect: the task is closed)" in shown, seen
    assert (b"4 of 4 tasks closed" in after, b"--accept --rest" in after) == (code == 0, code == 2)


def test_a_task_that_closes_before_the_rest_is_accepted_is_named_afterwards(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    """The operator saw a change that would hold: the answer says that it has no effect by now."""
    sandbox.prepare("plain-1", "plain-2", "plain-3", gates=("plain-2", "plain-3"))
    with sandbox.running() as run:
        with sandbox.at_gate("plain-2"):
            run.until("task plain-1", "CLOSED")
            sandbox.fleet.write_text(sandbox.fleet.read_text().replace('"-s"', '"-f"'))
            changed = load(sandbox.fleet, watch=True)
            found = look(changed, sandbox.log, partial=True)
            assert found is not None
        with sandbox.at_gate("plain-3"):
            run.until("task plain-2", "CLOSED")
            accept(changed, sandbox.log, found)
            said = capsys.readouterr().out
            assert "accepted, and in force" in said
            assert "tasks.plain-2: without effect, because the task is closed by now" in said
            assert "plain-1" not in said
        assert "3 of 3 tasks closed" in run.rest()


def _more(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


def _left(sandbox: Sandbox, *gates: str) -> Sandbox:
    """Leave a fleet whose first task is closed and whose second one is at work, with no runner."""
    sandbox.prepare("plain-1", "plain-2", "plain-3", gates=("plain-2",))
    with sandbox.running() as run, sandbox.at_gate("plain-2"):
        run.until("task plain-2", "IN_PROGRESS")
        run.process.kill()
    sandbox.kill_all()
    del gates
    return sandbox


def _remove(sandbox: Sandbox, task: str) -> None:
    head, _, tail = sandbox.fleet.read_text().partition(f'\n[[tasks]]\nid = "{task}"')
    sandbox.fleet.write_text(head + "\n[[tasks]]".join(("", *tail.split("\n[[tasks]]")[1:])))


REFUSALS: Final = {
    "a closed task": ('["test", "-s", "plain-1.txt"]', '["test", "-f", "plain-1.txt"]', "tasks.plain-1: verify"),
    "files of a task at work": ('id = "plain-2"', 'id = "plain-2"\nfiles = ["a"]', "tasks.plain-2.files"),
    "a foundation": ('name = "sandbox"\n', 'name = "sandbox"\napprove_plan = true\n', "fleet.approve_plan"),
    "a budget": ('name = "sandbox"\n', 'name = "sandbox"\nbudget = { sessions = 9 }\n', "fleet.budget"),
    "the repository": ('repository = "repo"', 'repository = "."', "fleet.repository"),
    "what an agent began with": (
        'grace = "300ms"',
        'grace = "300ms"\nstall_timeout = "9m"',
        "agents.agent.stall_timeout",
    ),
}


def _restore(sandbox: Sandbox, said: str) -> None:
    """Put back what a refusal prints as the former text, exactly as it prints that."""
    shown = said.partition("exactly:\n")[2].partition("  and accept")[0]
    lines = [line.strip() for line in shown.splitlines()]
    if lines[0] == "[[tasks]]":
        sandbox.fleet.write_text(sandbox.fleet.read_text() + "\n" + "\n".join(lines) + "\n")
        return
    for line in lines:
        place, _, key = line.partition(":  ")
        header, _, named = place.partition(" ")
        tables = re.split(r"(?m)^(?=\[)", sandbox.fleet.read_text())
        there = ((n, each.splitlines()) for n, each in enumerate(tables))
        (at,) = (n for n, each in there if each[:1] == [header] and named in {"", *each[1:3]})
        name = key.removeprefix("without ").partition(" = ")[0]
        kept = [each for each in tables[at].splitlines() if not each.startswith(f"{name} = ")]
        kept[2:2] = [] if key.startswith("without ") else [key]
        tables[at] = "\n".join([*kept, "", ""])
        sandbox.fleet.write_text("".join(tables))


def _put_back(sandbox: Sandbox, said: str, command: list[str]) -> None:
    """Put the former text back, and type the command after it: then the file is the plan in force."""
    _restore(sandbox, said)
    assert command[0] == "plan"
    assert command[-1] == "--accept"
    assert "nothing has changed" in sandbox.call(*command).stdout


@pytest.mark.parametrize("name", REFUSALS)
def test_every_refusal_names_commands_that_work(sandbox: Sandbox, name: str) -> None:
    """The refusal names what cannot change, and applies nothing. What it names is typed here as it is.

    The former text is printed in full: put back, it leaves nothing to accept.
    """
    _left(sandbox)
    old, new, what = REFUSALS[name]
    before = sandbox.json("tasks")
    _change(sandbox, old, new)
    changed = sandbox.fleet.read_text()
    if name == "the repository":
        (sandbox.folder / ".gitignore").write_text("*\n")
    refused = sandbox.call("run", str(sandbox.fleet), "--accept", "--transitions", code=2)
    assert what in refused.stderr
    assert sandbox.json("tasks") == before
    command, last = _named(refused.stderr)
    _put_back(sandbox, refused.stderr, last)
    sandbox.fleet.write_text(changed)
    match command[0]:
        case "why":
            assert "plain-2 is running" in sandbox.call(*command).stdout
        case "run" if name == "a foundation":
            with sandbox.running("--db", command[-1]) as run:
                run.until("lifefold approve")
        case "run" if name != "the repository":
            if name == "what an agent began with":
                _restore(sandbox, refused.stderr)
                command.remove("--accept")
            assert "tasks closed" in sandbox.call(*command, "--transitions").stdout
        case _:
            assert name == "the repository"


LONG: Final = "Write plain-2.txt, and then, in the same file, a second line which says that this was the second line"


def test_a_task_that_has_closed_meanwhile_leaves_the_rest_of_an_edit_possible(sandbox: Sandbox) -> None:
    """The refusal names the command that accepts the rest; the file is the plan in force then, without a further edit.

    The former text of the closed task is printed in full, however long it is. Nothing is done again.
    """
    sandbox.prepare("plain-1", "plain-2", "plain-3", gates=("plain-3",))
    _change(sandbox, 'prompt = "Write plain-2.txt"', f'prompt = "{LONG}"')
    with sandbox.running() as run, sandbox.at_gate("plain-3"):
        run.until("task plain-2", "CLOSED")
        before = sandbox.fleet.read_text()
        _change(sandbox, f'prompt = "{LONG}"', f'prompt = "{LONG}!"')
        _remove(sandbox, "plain-1")
        sandbox.fleet.write_text(sandbox.fleet.read_text() + NEW_TASK)
        refused = sandbox.call("plan", str(sandbox.fleet), "--accept", code=2)
        assert "tasks.plain-2: prompt: the task is closed, so that has no effect" in refused.stderr
        assert "tasks.plain-1: was removed, but it is closed, and stays so" in refused.stderr
        assert f'prompt = "{LONG}"\n' in refused.stderr
        whole = ['id = "plain-1"', "max_retries = 3", "priority = 2", 'prompt = "Write plain-1.txt"', "verify = "]
        assert "\n    ".join(whole) in refused.stderr
        assert "tasks.plain-9: was added\n" in refused.stdout
        rest, _ = _named(refused.stderr)
        shown = sandbox.call(*rest).stdout
        assert "tasks.plain-1: was removed  (without effect: the task is closed)" in shown
        assert "(without effect: the task is closed)\n  tasks.plain-9: was added" in shown
        assert "change 1: accepted, and in force" in shown
        assert "nothing has changed" in sandbox.call("plan", str(sandbox.fleet)).stdout
        sandbox.fleet.write_text(before + NEW_TASK)
        assert "tasks.plain-1: was added" in sandbox.call("plan", str(sandbox.fleet), "--accept", "--rest").stdout
    with sandbox.running() as run:
        assert "4 of 4 tasks closed" in run.rest()
    assert [sandbox.sessions(f"plain-{n}") for n in (1, 2, 9)] == [1, 1, 1]


def test_a_removed_task_that_is_closed_is_put_back_as_its_text_is_printed(sandbox: Sandbox) -> None:
    """The text is that of the whole task."""
    _left(sandbox)
    _remove(sandbox, "plain-1")
    refused = sandbox.call("plan", str(sandbox.fleet), code=2).stderr
    _, last = _named(refused)
    _restore(sandbox, refused)
    assert "tasks: the order was" in sandbox.call(*last).stdout
    assert "nothing has changed" in sandbox.call("plan", str(sandbox.fleet)).stdout


def test_a_task_at_work_is_cancelled_before_it_is_removed(sandbox: Sandbox) -> None:
    """As the refusal says; then the change is in force, and what is left is done."""
    _left(sandbox)
    _remove(sandbox, "plain-2")
    refused = sandbox.call("run", str(sandbox.fleet), "--accept", "--transitions", code=2)
    assert "tasks.plain-2: was removed, but it is running with agent; cancel it first" in refused.stderr
    command, _ = _named(refused.stderr)
    assert "cancelled" in sandbox.call(*command).stdout
    assert "change 1: accepted" in (said := sandbox.call("run", str(sandbox.fleet), "--accept", "--transitions").stdout)
    assert "2 of 2 tasks closed" in said


def test_work_that_waits_for_its_approval_is_rejected_before_its_task_is_removed(sandbox: Sandbox) -> None:
    """As the refusal says; nothing of the work is merged then."""
    sandbox.prepare("plain-1", "plain-2", gates=("plain-2",))
    sandbox.demand("plain-1", 'approval = "merge"')
    with sandbox.running() as run:
        run.until("task plain-1", "PENDING_APPROVAL")
        with sandbox.at_gate("plain-2"):
            _remove(sandbox, "plain-1")
            refused = sandbox.call("plan", str(sandbox.fleet), "--accept", code=2)
            assert "was removed, but it is waiting for approval; reject or approve its work first" in refused.stderr
            command, _ = _named(refused.stderr)
            assert "rejected" in sandbox.call(*command).stdout
            assert "change 1: accepted" in sandbox.call("plan", str(sandbox.fleet), "--accept").stdout
        assert "1 of 1 tasks closed" in run.rest()
    assert len(sandbox.merges()) == 1


def test_a_fleet_that_is_over_does_a_changed_file_in_a_new_log(sandbox: Sandbox) -> None:
    """The refusal names --again, and that does what is new."""
    sandbox.prepare("plain-1").run()
    sandbox.fleet.write_text(sandbox.fleet.read_text() + NEW_TASK)
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2)
    (command,) = _named(refused.stderr)
    assert command[-1] == "--again"
    assert "1 of 1 tasks closed" in sandbox.call(*command, "--transitions").stdout


def test_a_fleet_of_another_name_has_a_log_of_its_own(sandbox: Sandbox) -> None:
    """The log of the other one is refused by name, with a log that is free."""
    sandbox.prepare("plain-1").run()
    _change(sandbox, 'name = "sandbox"', 'name = "other"')
    refused = sandbox.call("run", str(sandbox.fleet), "--db", str(sandbox.log), "--transitions", code=2)
    assert "is the log of the fleet 'sandbox', not of 'other'" in refused.stderr
    (command,) = _named(refused.stderr)
    assert "tasks closed" in sandbox.call(*command, "--transitions").stdout


def test_a_fleet_keeps_its_name_as_long_as_it_is_not_over(sandbox: Sandbox) -> None:
    """Neither plan nor run begins another log by itself; both commands that they name do what they say."""
    _left(sandbox)
    before = sandbox.json("tasks")
    text = sandbox.fleet.read_text()
    _change(sandbox, 'name = "sandbox"', 'name = "other"')
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2)
    assert "fleet.name: was sandbox, is other" in refused.stderr
    assert "fleet.name: was sandbox, is other" in sandbox.call("plan", str(sandbox.fleet), code=2).stderr
    assert not sandbox.log.with_name("other.db").exists()
    assert sandbox.json("tasks") == before
    back, another = _named(refused.stderr)
    assert "3 of 3 tasks closed" in sandbox.call(*another, "--transitions").stdout
    sandbox.fleet.write_text(text)
    assert "3 of 3 tasks closed" in sandbox.call(*back, "--transitions").stdout


def test_a_name_is_free_when_the_fleet_is_over(sandbox: Sandbox) -> None:
    """Nothing is left behind then, and the next fleet of the file begins in a log of its own."""
    sandbox.prepare("plain-1").run()
    _change(sandbox, 'name = "sandbox"', 'name = "other"')
    sandbox.log.with_name("junk.db").write_text("no log at all")
    assert "1 of 1 tasks closed" in sandbox.call("run", str(sandbox.fleet), "--transitions").stdout


def test_what_was_removed_is_counted_and_explained_alike_everywhere(sandbox: Sandbox) -> None:
    """The summary of run, status, its JSON, why, and what retry answers; the command that is named puts it back."""
    _left(sandbox)
    text = sandbox.fleet.read_text()
    _remove(sandbox, "plain-3")
    accepted = sandbox.call("plan", str(sandbox.fleet), "--accept").stdout
    assert "tasks.plain-3: was removed  (it is not done, and not counted)" in accepted
    assert "1 of 2 tasks closed, 1 running, 1 removed" in sandbox.call("status").stdout
    assert sandbox.json("status")["removed"] == ["plain-3"]
    assert sum(sandbox.json("status")["tasks"].values()) == 2
    why = sandbox.call("why", "plain-3").stdout
    assert "goes on when the fleet file has it again" in why
    assert "retry" not in why
    refused = sandbox.call("retry", "plain-3", code=2).stdout
    sandbox.fleet.write_text(text)
    assert _named(why)[0] == _named(refused)[0]
    (command, *_) = _named(refused)
    assert "tasks.plain-3: was added" in sandbox.call(*command).stdout
    _remove(sandbox, "plain-3")
    assert "2 of 2 tasks closed; 1 removed;" in sandbox.call("run", str(sandbox.fleet), "--transitions").stdout
    assert "2 of 2 tasks closed, 1 removed" in sandbox.call("status").stdout
    again = sandbox.call("retry", "plain-3", code=2).stdout
    sandbox.fleet.write_text(text)
    assert "1 of 1 tasks closed" in sandbox.call(*_named(again)[0], "--transitions").stdout


def test_a_refusal_beside_a_runner_names_commands_that_work_beside_a_runner(sandbox: Sandbox) -> None:
    """A new log is begun when the runner has left; what was put back is accepted while it is at work."""
    sandbox.prepare("plain-1", "plain-2", gates=("plain-2",))
    with sandbox.running() as run:
        with sandbox.at_gate("plain-2"):
            run.until("task plain-1", "CLOSED")
            text = sandbox.fleet.read_text()
            _change(sandbox, '"plain-1.txt"]', '"plain-1.txt", "-a", "x"]')
            rest, back = _named(sandbox.call("plan", str(sandbox.fleet), code=2).stderr)
            sandbox.fleet.write_text(text)
            assert "nothing has changed" in sandbox.call(*back).stdout
            assert "nothing has changed" in sandbox.call(*rest).stdout
            _change(sandbox, 'grace = "300ms"', 'grace = "300ms"\nstall_timeout = "9m"')
            command, _ = _named(sandbox.call("run", str(sandbox.fleet), code=2).stderr)
            sandbox.fleet.write_text(text)
            assert "nothing has changed" in sandbox.call(*command).stdout
            _change(sandbox, 'name = "sandbox"\n', 'name = "sandbox"\napprove_plan = true\n')
            refused = sandbox.call("run", str(sandbox.fleet), code=2).stderr
            assert "after the runner has left (Ctrl-C):" in refused
            fresh, _ = _named(refused)
            sandbox.fleet.write_text(text)
        assert "2 of 2 tasks closed" in run.rest()
    assert "2 of 2 tasks closed" in sandbox.call(*fresh, "--transitions").stdout


def test_a_program_gets_the_difference_and_the_answer_to_its_acceptance_in_json(sandbox: Sandbox) -> None:
    """A file like the plan in force is a change of the number 0. Sentences go to the standard error."""
    sandbox.prepare("plain-1", "plain-2").demand("plain-1", 'approval = "merge"')
    sandbox.demand("plain-2", 'depends_on = ["plain-1"]')
    sandbox.call("run", str(sandbox.fleet), "--no-live", "--no-wait", code=4)
    assert sandbox.json("plan", str(sandbox.fleet)) == {"change": 0, "lines": [], "obstacles": []}
    sandbox.settle('prompt = "Write plain-2.txt"', 'prompt = "Write it to plain-2.txt"')
    found = sandbox.json("plan", str(sandbox.fleet))
    assert (found["change"], found["obstacles"]) == (1, [])
    assert found["lines"][0].startswith("tasks.plain-2.prompt: was ")
    done = sandbox.call("plan", str(sandbox.fleet), "--accept", "--json")
    answer = json.loads(done.stdout)
    assert [answer[each] for each in ("command", "target", "outcome")] == ["plan", "change 1", "applied"]
    assert "the fleet file was changed (change 1)" in done.stderr
    assert sandbox.json("plan", str(sandbox.fleet))["change"] == 0


def test_a_plan_without_a_log_has_nothing_in_force(sandbox: Sandbox) -> None:
    """The command says so, and exits 0."""
    sandbox.prepare("plain-1")
    assert "there is no log" in sandbox.call("plan", str(sandbox.fleet)).stdout


def test_only_the_command_of_an_agent_changes_and_the_next_session_has_it(sandbox: Sandbox) -> None:
    """What core does not know of is a change all the same, and is in force with the same entry."""
    sandbox.prepare("crash-1", gates=("crash-1",))
    with sandbox.running() as run:
        with sandbox.at_gate("crash-1"):
            _change(sandbox, '"{prompt_file}"', '"{prompt_file}", "new"')
            agent = sandbox.folder / "agent.py"
            agent.write_text(agent.read_text() + 'pathlib.Path("mark").write_text(sys.argv[-1])\n')
            shown = sandbox.call("run", str(sandbox.fleet), "--accept").stdout
            assert "agents.agent.command" in shown
            assert "(from its next session on)" in shown
        assert "1 of 1 tasks closed" in run.rest()
    assert sandbox.git("show", "main:mark") == "new"


def _made_two(sandbox: Sandbox) -> None:
    """Let the one agent of the file be two: the plan removes it, and adds two others."""
    _change(sandbox, "count = 1", "count = 2")


def test_a_session_of_a_removed_agent_is_adopted_by_the_next_runner_and_its_work_is_merged(sandbox: Sandbox) -> None:
    """The runner is killed after the change: the next one reads no word of the agent, and its session counts."""
    sandbox.prepare("plain-1", gates=("plain-1",))
    with ExitStack() as gate:
        with sandbox.running() as run:
            gate.enter_context(sandbox.at_gate("plain-1"))
            run.until("task plain-1", "IN_PROGRESS")
            _made_two(sandbox)
            assert "agents.agent: was removed" in sandbox.call("plan", str(sandbox.fleet), "--accept").stdout
            run.process.kill()
        with sandbox.running() as run:
            run.until("1 session adopted")
            gate.close()
            assert "1 of 1 tasks closed" in run.rest()
    assert run.process.returncode == 0
    assert sandbox.agents_of("plain-1") == ["agent"]


def test_an_adopted_session_has_the_time_limit_that_it_began_with(sandbox: Sandbox) -> None:
    """The changed limit is for the next session, also if the runner has died in between: the end names the former."""
    sandbox.prepare("hang-1")
    sandbox.demand("hang-1", "max_retries = 0")
    _change(sandbox, 'session_timeout = "60s"', 'session_timeout = "20s"')
    with sandbox.running() as run:
        run.until("task hang-1", "IN_PROGRESS")
        _change(sandbox, 'session_timeout = "20s"', 'session_timeout = "5m"')
        assert "from its next session on" in sandbox.call("plan", str(sandbox.fleet), "--accept").stdout
        run.process.kill()
    said = sandbox.call("run", str(sandbox.fleet), "--transitions", code=1).stdout
    assert "hang-1: failed: session_timeout of 20s is over" in said


def test_a_removed_agent_that_is_held_gives_its_task_back_without_a_failure(sandbox: Sandbox) -> None:
    """No runner knows its command any more; the work that it began is kept, and its task costs no retry."""
    sandbox.prepare("plain-1", gates=("plain-1",))
    sandbox.demand("plain-1", "max_retries = 0")
    with sandbox.running() as run, sandbox.at_gate("plain-1"):
        run.until("task plain-1", "IN_PROGRESS")
        run.signal(signal.SIGINT)
        run.rest()
    _made_two(sandbox)
    said = sandbox.call("run", str(sandbox.fleet), "--accept", "--transitions").stdout
    assert "1 of 1 tasks closed" in said
    assert sandbox.agents_of("plain-1") == ["agent", "agent-1"]
    why = sandbox.call("why", "plain-1").stdout
    assert "failed" not in why
    assert "given back" in why


def test_a_changed_variable_is_in_the_next_session_and_in_no_file_of_the_log(sandbox: Sandbox) -> None:
    """Variables are no part of the plan: plan says from when they hold, and the runner names those that changed."""
    sandbox.prepare("crash-1", gates=("crash-1",))
    agent = sandbox.folder / "agent.py"
    agent.write_text(agent.read_text() + 'pathlib.Path("mark").write_text(os.environ["GREETING"])\n')
    _change(sandbox, "env = { COUNTS", 'env = { GREETING = "before", COUNTS')
    with sandbox.running() as run:
        with sandbox.at_gate("crash-1"):
            _change(sandbox, '"before"', '"afterwards"')
            shown = sandbox.call("plan", str(sandbox.fleet)).stdout
            assert "nothing has changed" in shown
            assert "env  (from each next session on)" in shown
        assert "GREETING" in run.until("changed in the fleet file: new sessions have the new values")
        assert "1 of 1 tasks closed" in run.rest()
    assert sandbox.git("show", "main:mark") == "afterwards"
    files = [each for each in sandbox.log.parent.glob("sandbox.db*") if each.is_file()]
    assert not [each for each in files if b"afterwards" in each.read_bytes()]


def test_a_variable_of_a_file_with_another_plan_waits_for_its_acceptance(sandbox: Sandbox) -> None:
    """Nothing of such a file holds before; then the next session has its variables as well."""
    sandbox.prepare("crash-1", "plain-2", gates=("crash-1", "plain-2"))
    agent = sandbox.folder / "agent.py"
    agent.write_text(agent.read_text() + 'pathlib.Path(f"mark-{task}").write_text(os.environ["GREETING"])\n')
    _change(sandbox, "env = { COUNTS", 'env = { GREETING = "before", COUNTS')
    with sandbox.running() as run:
        with sandbox.at_gate("crash-1"):
            _change(sandbox, '"before"', '"afterwards"')
            _change(sandbox, 'prompt = "Write plain-2.txt"', 'prompt = "Write it to plain-2.txt"')
        with sandbox.at_gate("plain-2"):
            pass
        assert "2 of 2 tasks closed" in run.rest()
    assert sandbox.git("show", "main:mark-crash-1") == "before"
    assert "env  (from each next session on)" in sandbox.call("plan", str(sandbox.fleet), code=2).stdout


def test_a_corrected_command_of_a_task_that_failed_for_good_names_its_retry(sandbox: Sandbox) -> None:
    """No verification comes by itself then; the command that is named lets the task be done."""
    sandbox.prepare("plain-1", "plain-2", gates=("plain-2",))
    sandbox.demand("plain-1", "max_retries = 0")
    _wrong(sandbox, "plain-1")
    with sandbox.running() as run:
        with sandbox.at_gate("plain-2"):
            _right(sandbox, "plain-1")
            shown = sandbox.call("plan", str(sandbox.fleet), "--accept").stdout
            (command,) = [each for each in _named(shown.replace(")\n", "\n")) if each[0] == "retry"]
            assert "from its next verification on; it has failed for good" in shown
            sandbox.call(*command)
            run.until("task plain-1", "OPEN")
        assert "2 of 2 tasks closed" in run.rest()


@pytest.mark.parametrize("repository", [True, False], ids=["repository", "folders"])
def test_work_that_waits_for_approval_is_verified_again_by_changed_commands(
    sandbox: Sandbox,
    repository: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The same work, without another session; it waits for its approval again, and is merged after that."""
    sandbox.prepare("plain-1", "plain-2", gates=("plain-2",), repository=repository)
    sandbox.demand("plain-1", 'approval = "merge"')
    with sandbox.running() as run:
        run.until("task plain-1", "PENDING_APPROVAL")
        with sandbox.at_gate("plain-2"):
            _change(sandbox, '["test", "-s", "plain-1.txt"]', '["test", "-f", "plain-1.txt"]')
            shown = sandbox.call("plan", str(sandbox.fleet), "--accept").stdout
            assert "(at once: its work, which waits for your approval, is verified again)" in shown
            run.until("task plain-1", "DONE")
            early = sandbox.call("approve", "plain-1", code=2)
            assert "its commands were changed, so it is verified by them first" in early.stdout
            why = sandbox.call("why", "plain-1").stdout
            assert "is done, not merged: its verification has changed" in why
        run.until("task plain-1", "PENDING_APPROVAL")
        sandbox.call("approve", "plain-1")
        assert "2 of 2 tasks closed" in run.rest()
    assert sandbox.sessions("plain-1") == 1


def test_work_that_no_command_has_verified_is_not_said_to_be_verified_again(sandbox: Sandbox) -> None:
    """A first verification is not a second one, and approved work without any is not called verified."""
    sandbox.prepare("plain-1", "plain-2", gates=("plain-2",))
    sandbox.demand("plain-1", 'approval = "merge"')
    verify = 'verify = [["test", "-s", "plain-1.txt"]]\n'
    _change(sandbox, verify, "")
    with sandbox.running() as run:
        run.until("task plain-1", "PENDING_APPROVAL")
        with sandbox.at_gate("plain-2"):
            _change(sandbox, 'approval = "merge"\n', f'approval = "merge"\n{verify}')
            shown = sandbox.call("plan", str(sandbox.fleet)).stdout
            assert "(at once: its work, which waits for your approval, is verified)" in shown
            sandbox.call("approve", "plain-1")
            shown = sandbox.call("plan", str(sandbox.fleet)).stdout
            assert "not for its work, which was approved before and is not verified" in shown
        assert "2 of 2 tasks closed" in run.rest()


def test_a_renamed_fleet_beside_its_runner_is_told_commands_that_work_then(sandbox: Sandbox) -> None:
    """The name is restored while the runner is at work; a new log is begun when it has left."""
    sandbox.prepare("plain-1", gates=("plain-1",))
    with sandbox.running() as run:
        with sandbox.at_gate("plain-1"):
            _change(sandbox, 'name = "sandbox"', 'name = "other"')
            back, another = _named(sandbox.call("plan", str(sandbox.fleet), code=2).stderr)
            _change(sandbox, 'name = "other"', 'name = "sandbox"')
            assert "nothing has changed" in sandbox.call(*back).stdout
        assert "1 of 1 tasks closed" in run.rest()
    _change(sandbox, 'name = "sandbox"', 'name = "other"')
    assert "1 of 1 tasks closed" in sandbox.call(*another, "--transitions").stdout


def test_after_a_new_log_each_message_names_a_command_that_works(sandbox: Sandbox) -> None:
    """The new log takes over the fleet's name. A command without a log names the log that was written last.

    A run of the former log names the commands for that run, and for another new log.
    """
    _left(sandbox)
    sandbox.demand("", "approve_plan = true")
    fresh, _ = _named(sandbox.call("run", str(sandbox.fleet), code=2).stderr)
    with sandbox.running("--db", fresh[-1]) as run:
        run.until("lifefold approve")
        (status,) = _named(sandbox.call("status", "--json", code=2).stderr)
        assert status == ["status", "--json", "--db", ".lifefold/sandbox-anew.db"]
        assert sandbox.call(*status).stdout.startswith("{")
        run.signal(signal.SIGINT)
        run.rest()
    sandbox.settle("approve_plan = true\n", "")
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2).stderr
    assert "Another run has taken over the name of the fleet 'sandbox'" in refused
    there, anew = _named(refused)
    assert there[-1] == fresh[-1]
    assert anew[-1].endswith("sandbox-anew-2.db")
    assert "3 of 3 tasks closed" in sandbox.call(*anew, "--transitions").stdout
    Path(anew[-1]).unlink()
    (again,) = _named(sandbox.call("run", str(sandbox.fleet), "--transitions", code=2).stderr)
    assert again == anew, "the other log is gone"


def _raised(sandbox: Sandbox) -> None:
    """Leave a fleet with a budget of 4 sessions in its file, to which a command has added one."""
    sandbox.prepare("plain-1", "plain-2", gates=("plain-2",)).demand("", "budget = { sessions = 4 }")
    with sandbox.running() as run, sandbox.at_gate("plain-2"):
        run.until("task plain-2", "IN_PROGRESS")
        assert "raised" in sandbox.call("budget", "--add-sessions", "1").stdout
        run.process.kill()
    sandbox.kill_all()


def test_the_amount_of_a_raised_budget_is_written_into_the_file_without_a_confirmation(sandbox: Sandbox) -> None:
    """It is in force already, so a run goes on."""
    _raised(sandbox)
    sandbox.settle("sessions = 4", "sessions = 5")
    said = sandbox.call("run", str(sandbox.fleet), "--transitions").stdout
    assert "was 4, is 5, which is in force already: lifefold budget has raised it  (nothing changes)" in said
    assert "2 of 2 tasks closed" in said


def test_a_task_that_is_added_to_a_finished_fleet_is_done_as_the_refusal_says(sandbox: Sandbox) -> None:
    """Nothing of the file is left to do before it is in the file."""
    sandbox.prepare("plain-1").run()
    refused = sandbox.call("task", "add", "--id", "plain-9", "--prompt", "x", code=2).stdout
    (command,) = _named(refused)
    sandbox.fleet.write_text(sandbox.fleet.read_text() + NEW_TASK)
    assert "1 of 1 tasks closed" in sandbox.call(*command, "--transitions").stdout


def test_a_task_that_was_cancelled_by_its_removal_is_named_as_final_by_retry(sandbox: Sandbox) -> None:
    """Neither its return to the file nor --again brings it back, so neither is named; another task is."""
    sandbox.prepare("plain-1", "plain-2")
    sandbox.demand("", "approve_plan = true")
    with sandbox.running() as run:
        run.until("lifefold approve")
        _remove(sandbox, "plain-2")
        sandbox.call("plan", str(sandbox.fleet), "--accept")
        (command,) = _named(sandbox.call("retry", "plain-2", code=2).stdout)
        assert command[:4] == ["task", "add", "--id", "plain-2-2"]
        sandbox.call("approve")
        assert "1 of 1 tasks closed" in run.rest()
    assert "that is final; add another task to the fleet file" in sandbox.call("retry", "plain-2", code=2).stdout
