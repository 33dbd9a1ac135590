"""Runs of agents that know secrets: they get them, and no record, prompt or screen has them."""

import json
import signal
import sqlite3
from contextlib import closing

import anyio
import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner.log_owner import must_belong
from lifefold.interpreters.store import SqliteStore

AGENT = r"""
import os, pathlib, sys

counts, task = pathlib.Path(os.environ["COUNTS"]), os.environ["LIFEFOLD_TASK"]
(counts / "environment").write_text("\n".join(f"{name}={value}" for name, value in os.environ.items()))
prompt = pathlib.Path(sys.argv[1]).read_text()
if "failed" not in prompt:
    print("the service refused the key", os.environ.get("MY_API_KEY", "no api key"), os.environ.get("HARMLESS"))
    sys.exit(1)
pathlib.Path(task + ".txt").write_text("done")
"""

KEY = "sk-live-0123456789"
PASSWORD = "opensesame"  # noqa: S105 - there is no such service


@pytest.fixture
def guarded(sandbox: Sandbox) -> Sandbox:
    """A fleet of one agent with one task, which fails once."""
    sandbox.prepare("plain-1")
    (sandbox.folder / "agent.py").write_text(AGENT)
    return sandbox


def texts(sandbox: Sandbox) -> str:
    """All that the log says."""
    with closing(sqlite3.connect(sandbox.log)) as log:
        rows = log.execute("SELECT envelope, outcome FROM entries UNION ALL SELECT name, value FROM meta").fetchall()
    return "\n".join(str(cell) for row in rows for cell in row)


def test_a_secret_that_an_agent_prints_is_in_no_record_and_on_no_screen(guarded: Sandbox) -> None:
    """Its last line goes into the log, the next prompt and every listing: with the name in place of the value."""
    guarded.settle("[[agents]]", '[[agents]]\nenv_pass = ["MY_*", "HARMLESS"]')
    screen = guarded.run(MY_API_KEY=KEY, HARMLESS="plain words")
    assert f"MY_API_KEY={KEY}" in (guarded.folder / "counts" / "environment").read_text()
    log, prompts = texts(guarded), "".join(path.read_text() for path in guarded.folder.rglob("prompt.txt"))
    for words in (log, prompts, screen + guarded.call("log").stdout + guarded.call("log", "--json").stdout):
        assert KEY not in words
        assert "the service refused the key [redacted MY_API_KEY] plain words" in words
    kept = [path for path in guarded.folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert {path.name for path in kept} == {"environment", "output.log"}, "the agent's own file, and its raw output"


def test_what_the_fleet_file_calls_a_secret_is_one(guarded: Sandbox) -> None:
    """Also a value that stands in the file."""
    table = 'env = { HARMLESS = "plain-words", '
    guarded.settle("env = { ", table).settle("[fleet]\n", '[fleet]\nredact = ["HARM*"]\n')
    guarded.run()
    assert "[redacted HARMLESS]" in texts(guarded)
    assert "plain-words" not in texts(guarded)


def test_an_agent_gets_no_key_that_its_file_does_not_name_and_its_failure_says_which(guarded: Sandbox) -> None:
    """What it printed looks like a missing login, and the variable is there: the error names it, and where it goes."""
    guarded.demand("plain-1", "max_retries = 0")
    guarded.run(code=1, MY_API_KEY=KEY)
    environment = (guarded.folder / "counts" / "environment").read_text()
    assert "MY_API_KEY" not in environment
    assert "LIFEFOLD_TASK=plain-1" in environment
    (failed,) = guarded.json("tasks")["tasks"] if isinstance(guarded.json("tasks"), dict) else guarded.json("tasks")
    assert (
        "MY_API_KEY is set where lifefold runs, and not passed on; name those that it needs in env_pass"
        in failed["reason"]
    )


def test_verification_gets_what_the_fleet_names_and_nothing_of_the_agents(guarded: Sandbox) -> None:
    """It runs what the agent has written; what it prints is quoted without secrets."""
    guarded.settle("[fleet]\n", '[fleet]\nenv_pass = ["DB_*"]\nenv = { MODE = "test" }\n')
    guarded.settle("[[agents]]", '[[agents]]\nenv_pass = ["MY_*"]')
    check = 'echo "$DB_PASSWORD $MODE [$MY_API_KEY]"; exit 1'
    guarded.settle('verify = [["test", "-s", "plain-1.txt"]]', f"max_retries = 1\nverify = [['sh', '-c', '{check}']]")
    guarded.run(code=1, MY_API_KEY=KEY, DB_PASSWORD=PASSWORD)
    assert "[redacted DB_PASSWORD] test []" in texts(guarded)
    assert PASSWORD not in texts(guarded)


def test_a_fleet_goes_on_with_its_log_when_a_key_was_changed(sandbox: Sandbox) -> None:
    """Variables are no part of what a log belongs to: neither their values nor what is passed."""
    sandbox.prepare("hang-1", timeout="60s")
    with sandbox.running() as run:
        run.until("SessionStarted")
        run.signal(signal.SIGINT)
        run.rest()
    sandbox.settle("env = { ", 'env_pass = ["A_*"]\nenv = { B_KEY = "other", ')
    assert "1 of 1 tasks closed" in sandbox.run()
    assert "B_KEY" not in texts(sandbox)


def test_a_log_that_has_digests_of_variables_is_no_other_fleets(sandbox: Sandbox) -> None:
    """An earlier version kept them: what is said of such a log is not that its fleet file was changed."""
    sandbox.prepare("plain-1", repository=False)
    fleet = load(sandbox.fleet)
    meaning = json.loads(fleet.meaning)
    meaning["agents"]["agent"]["env"] = {"COUNTS": "digest 00000000"}
    with SqliteStore.create(sandbox.folder / "old.db", {"fleet": "sandbox", "meaning": json.dumps(meaning)}) as store:
        anyio.run(must_belong, fleet, store)
