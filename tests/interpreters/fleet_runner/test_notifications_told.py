"""People are told by real commands and a real web hook: once each, from the log, without harm to the fleet."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from fleet_sandbox import Sandbox
from lifefold.effects import NotificationKind
from lifefold.interpreters.fleet_runner.notifying import with_log
from webhook import SILENCE, receiving

TELLER = r"""
import json, os, pathlib, signal, sys

facts = json.load(sys.stdin)
names = {name.removeprefix("LIFEFOLD_").lower(): value for name, value in os.environ.items() if "LIFEFOLD_" in name}
said = {"facts": facts, "env": {name: names.get(name) for name in facts}, "words": sys.argv[1:], "at": os.getcwd()}
out = pathlib.Path(__file__).with_name("told.jsonl")
with out.open("a") as file:
    file.write(json.dumps(said) + "\n")
if "dies" in sys.argv and not out.with_name("died").exists():
    out.with_name("died").touch()
    os.kill(os.getppid(), signal.SIGKILL)
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    (tmp_path / "teller.py").write_text(TELLER)
    return Sandbox(tmp_path)


def notify(of: Sandbox, *lines: str) -> Sandbox:
    """Write a table ``[[notify]]`` at the end of the fleet file."""
    of.fleet.write_text(of.fleet.read_text() + "\n[[notify]]\n" + "\n".join(lines) + "\n")
    return of


def teller(*words: str) -> str:
    """Return the key of a command that keeps what it is told."""
    return "run = " + json.dumps([sys.executable, "{fleet_dir}/teller.py", *words])


def told(of: Sandbox) -> list[dict[str, Any]]:
    """Return what the command was told, in order."""
    file = of.folder / "told.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def ids(of: Sandbox) -> list[tuple[str, str]]:
    """Return the kind and the task of what the command was told, in order."""
    return [(each["facts"]["kind"], each["facts"]["task"]) for each in told(of)]


def test_a_command_has_the_facts_in_its_words_its_environment_and_on_its_input(sandbox: Sandbox) -> None:
    """It runs in the folder of the fleet file, and the end of the fleet comes last."""
    notify(sandbox.prepare("plain-1"), 'on = ["closed", "over"]', teller("{kind}", "{task}: {text}", "{{x}}")).run()
    first, last = told(sandbox)
    assert first["words"] == ["closed", "plain-1: plain-1 is closed", "{x}"]
    assert first["env"] == first["facts"]
    assert first["at"] == str(sandbox.folder)
    facts = first["facts"]
    run, name, number = facts.pop("id").split("/")
    assert (bool(run), name, number) == (True, "notify-1", "1")
    assert facts == {
        "kind": "closed",
        "fleet": "sandbox",
        "task": "plain-1",
        "agent": "agent",
        "text": "plain-1 is closed",
        "log": str(sandbox.log),
    }
    assert last["facts"]["text"] == "the fleet is over: 1 of 1 tasks are closed"


def test_a_notification_has_the_reason_in_plain_words(sandbox: Sandbox) -> None:
    """The log has the end of a session as document 000 writes it, and people read the message."""
    notify(sandbox.prepare("plain-1").demand("plain-1", "max_retries = 0"), 'on = "failed"', teller())
    (sandbox.folder / "agent.py").write_text("import sys\n\nsys.exit('no key')\n")
    sandbox.run(code=1)
    (only,) = told(sandbox)
    assert only["facts"]["text"] == "plain-1 has failed: exit status 1: no key"


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("approval", "T1 waits for an approval: lifefold approve T1", " --db '/a b/f.db'"),
        ("plan", "the plan waits for an approval: lifefold approve", " --db '/a b/f.db'"),
        ("budget", "task T1: no money: lifefold budget --task T1 --add-usd 0.50", " --db '/a b/f.db'"),
    ],
)
def test_the_command_of_a_notification_names_the_log(kind: str, text: str, expected: str) -> None:
    """People read it in another folder, perhaps on another machine."""
    assert with_log(NotificationKind(kind), text, "/a b/f.db") == text + expected


def test_only_the_rules_own_command_of_a_notification_names_the_log() -> None:
    """The words of an agent stay as they are, in a question and in a reason."""
    asked = "ann asks at T1, lifefold answer ann/Q1: shall I run lifefold approve T2?"
    failed = "T1 has failed: lifefold approve was refused"
    named = "ann asks at T1, lifefold answer ann/Q1 --db f.db: shall I run lifefold approve T2?"
    assert with_log(NotificationKind.QUESTION, asked, "f.db") == named
    assert with_log(NotificationKind.FAILED, failed, "f.db") == failed


def test_an_approval_is_told_with_a_command_that_decides_it(sandbox: Sandbox) -> None:
    notify(sandbox.prepare("plain-1").demand("plain-1", 'approval = "merge"'), 'on = "approval"', teller())
    sandbox.call("run", str(sandbox.fleet), "--no-live", "--no-wait", code=4)
    (only,) = told(sandbox)
    assert only["facts"]["text"] == f"plain-1 waits for an approval: lifefold approve plain-1 --db {sandbox.log}"


def test_a_web_hook_gets_the_facts_until_it_accepts_them(sandbox: Sandbox) -> None:
    """A try that was not accepted is repeated under the same key."""
    with receiving() as receiver:
        receiver.answers += [503, 302]
        notify(
            sandbox.prepare("plain-1"),
            'on = "closed"',
            f'url = "{receiver.url}"',
            'headers = { X-Kind = "of ${LIFEFOLD_TEST_KIND}" }',
        ).run(LIFEFOLD_TEST_KIND="tests")
    keys = {key for key, _ in receiver.got}
    assert [message["task"] for _, message in receiver.got] == ["plain-1"] * 3
    assert keys == {receiver.got[0][1]["id"]}
    assert receiver.asked_otherwise == 0
    (found,) = sandbox.json("status")["notifiers"]
    assert (found["delivered"], found["failed"], found["waiting"]) == (1, 0, 0)


def test_a_runner_that_dies_between_a_delivery_and_its_record_delivers_again(sandbox: Sandbox) -> None:
    """The identity is the same, nothing is lost, and what was recorded is not told again."""
    notify(sandbox.prepare("plain-1", "plain-2"), 'on = ["closed", "over"]', teller("dies"))
    with sandbox.running() as run:
        run.rest()
    assert ids(sandbox) == [("closed", "plain-1")]
    sandbox.run()
    assert ids(sandbox) == [("closed", "plain-1"), ("closed", "plain-1"), ("closed", "plain-2"), ("over", "")]
    numbers = [each["facts"]["id"].rpartition("/")[2] for each in told(sandbox)]
    assert numbers == ["1", "1", "2", "3"]
    sandbox.run()
    assert len(told(sandbox)) == len(numbers)


def test_a_notifier_that_hangs_does_not_keep_a_fleet_from_its_work(sandbox: Sandbox) -> None:
    """Its process group is ended at the time limit, and the failure is shown."""
    hangs = "run = " + json.dumps([sys.executable, "-c", "import time; time.sleep(600)"])
    notify(sandbox.prepare("plain-1", "plain-2"), 'on = "closed"', hangs, 'timeout = "100ms"', "retries = 0").run()
    assert sandbox.processes() == []
    (found,) = sandbox.json("status")["notifiers"]
    assert (found["delivered"], found["failed"], found["waiting"]) == (0, 2, 0)
    assert found["failures"][0]["reason"].endswith("took too long")


def test_a_web_hook_without_an_answer_does_not_keep_a_fleet_from_its_work(sandbox: Sandbox) -> None:
    """The try has failed at its time limit."""
    with receiving() as receiver:
        receiver.answers += [SILENCE]
        table = ('on = "closed"', f'url = "{receiver.url}"', 'timeout = "200ms"', "retries = 1")
        notify(sandbox.prepare("plain-1"), *table).run()
    assert len(receiver.got) == 2
    assert sandbox.json("status")["notifiers"][0]["delivered"] == 1


def test_a_notifier_that_fails_is_shown_in_status_why_and_log(sandbox: Sandbox) -> None:
    """Each says which notification, and why; the tasks of the fleet are closed."""
    fails = "run = " + json.dumps([sys.executable, "-c", "import sys; sys.exit('no screen')"])
    notify(sandbox.prepare("plain-1", "plain-2"), 'name = "desk"', 'on = "closed"', fails, "retries = 0").run()
    said = '"plain-2 is closed": ' + f"{sys.executable} ended with status 1: no screen"
    assert (
        f"! notifier desk has not delivered 2 of its notifications; the last one, {said}"
        in sandbox.call("status").stdout
    )
    why = sandbox.call("why", "plain-1").stdout
    assert "Notifier desk has not delivered 1 of its notifications" in why
    assert sandbox.json("why", "plain-1")["untold"] != []
    assert "DeliveryFailed" in sandbox.call("log", "--all").stdout


def test_a_variable_that_is_not_set_is_the_reason_of_a_failure(sandbox: Sandbox) -> None:
    """No request is made; the address itself is not shown, because it may be a secret."""
    with receiving() as receiver:
        table = ('on = "closed"', f'url = "{receiver.url}/${{LIFEFOLD_NOT_SET}}"', "retries = 0")
        notify(sandbox.prepare("plain-1"), *table).run()
    assert receiver.got == []
    (failure,) = sandbox.json("status")["notifiers"][0]["failures"]
    assert failure["reason"] == "the variable LIFEFOLD_NOT_SET is not set"


def test_a_hook_of_the_fleet_is_a_notifier(sandbox: Sandbox) -> None:
    """The two keys of ``[fleet]`` are short for a table."""
    sandbox.prepare("plain-1", "plain-2").demand(
        "", "on_closed" + teller("closed")[3:], "on_failed" + teller("failed")[3:]
    )
    sandbox.demand("plain-2", "max_retries = 0").settle('["test", "-s", "plain-2.txt"]', '["false"]')
    sandbox.run(1)
    assert [(each["words"], each["facts"]["task"]) for each in told(sandbox)] == [
        (["closed"], "plain-1"),
        (["failed"], "plain-2"),
    ]


def test_a_blocked_merge_is_told_once_also_after_a_restart(sandbox: Sandbox) -> None:
    """The merge is tried again and again, by two runners."""
    notify(sandbox.prepare("plain-1"), 'on = "blocked merge"', teller())
    mine = sandbox.folder / "repo" / "plain-1.txt"
    mine.write_text("the user's own\n")
    with sandbox.running() as run:
        run.until("waits to merge plain-1")
        run.signal(signal.SIGINT)
        run.rest()
    with sandbox.running() as run:
        run.until("waits to merge plain-1")
        run.signal(signal.SIGINT)
        run.rest()
    mine.unlink()
    sandbox.run()
    assert ids(sandbox) == [("blocked merge", "plain-1")]
    assert "plain-1.txt" in told(sandbox)[0]["facts"]["text"]
