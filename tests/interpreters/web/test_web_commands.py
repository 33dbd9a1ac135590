"""Commands of the browser: the same events, the same sentences and the same refusals as the command line."""

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asking_log import LEAVE, WORDS, at_work
from fleet_log import ME, FleetLog, folded, said
from lifefold.core.fleet import TaskPlan
from lifefold.core.fleet.worker.question import REF
from lifefold.core.kernel import Envelope
from lifefold.core.policy.abort import AbortPolicy
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.web import shelf
from lifefold.interpreters.web.commands import COMMANDS, Approve, Command, Raise, Send, Stop
from web_desk import Served, served

PLAN = (TaskPlan("one", "do it"), TaskPlan("two", "do more", depends_on=("one",)))


def without_times(envelopes: list[Envelope]) -> list[tuple[str, Any, str]]:
    """Return commands without their times and keys."""
    return [(each.entity, each.event, each.actor) for each in envelopes]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({"command": "approve", "names": ["ann/Q1"], "reason": "once"}, ["approve", "ann/Q1", "--reason", "once"]),
        ({"command": "reject", "names": ["Q2"], "reason": "no"}, ["reject", "Q2", "--reason", "no"]),
        ({"command": "answer", "name": "Q2", "text": "--blue"}, ["answer", "Q2", "--", "--blue"]),
        ({"command": "send", "name": "ann", "text": "hello"}, ["send", "ann", "hello"]),
        ({"command": "send", "name": "T1", "text": "a", "waits": True}, ["send", "T1", "a", "--no-interrupt"]),
        ({"command": "pause", "names": ["ann"], "reason": "lunch"}, ["pause", "ann", "--reason", "lunch"]),
        ({"command": "stop", "names": ["ann"], "how": "drain"}, ["stop", "ann", "--drain"]),
        ({"command": "cancel", "names": ["T1"], "reason": "no"}, ["cancel", "T1", "--reason", "no"]),
        ({"command": "add-task", "id": "T2", "prompt": "--now", "depends_on": ["T1"], "verify": ["test -d ."],
          "priority": 1, "approval": "merge"},
         ["task", "add", "--id", "T2", "--prompt=--now", "--depends-on", "T1", "--verify", "test -d .",
          "--priority", "1", "--approval", "merge"]),
    ],
)  # fmt: skip
def test_a_command_is_the_same_in_the_log_and_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: dict[str, Any], words: list[str]
) -> None:
    there, here = (at_work(tmp_path / name / "fleet.db", LEAVE, WORDS).path for name in made(tmp_path))
    with served([there]) as desk:
        given = desk.give("fleet", command)
    assert main(with_log(words, here)) == 0
    printed = capsys.readouterr().out.replace(str(here), str(there))
    assert [line["words"] for line in given["lines"]] == printed.splitlines()
    assert without_times(said(there)) == without_times(said(here))
    assert said(there)[-1].actor == ME


def with_log(words: list[str], log: Path) -> list[str]:
    """Return the words of a command that names its log."""
    verb = words[:2] if words[0] == "task" else words[:1]
    return [*verb, "--db", str(log), *words[len(verb) :]]


def made(folder: Path) -> tuple[str, str]:
    """Make two folders."""
    for name in ("there", "here"):
        (folder / name).mkdir()
    return "there", "here"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({"command": "approve"}, ["approve"]),
        ({"command": "retry", "names": ["one"]}, ["retry", "one"]),
        ({"command": "cancel", "names": ["oen"]}, ["cancel", "oen"]),
        ({"command": "answer", "name": "ann/Q1", "text": "x"}, ["answer", "ann/Q1", "x"]),
        ({"command": "resume", "names": ["ann"]}, ["resume", "ann"]),
        ({"command": "release", "name": "ann"}, ["release", "ann"]),
        ({"command": "trust", "name": "ann", "move": "promote", "reason": "x"},
         ["trust", "ann", "--promote", "--reason", "x"]),
        ({"command": "budget", "usd": "5"}, ["budget", "--add-usd", "5"]),
        ({"command": "budget", "tokens": "many"}, ["budget", "--add-tokens", "many"]),
        ({"command": "branch"}, ["branch", "--accept"]),
        ({"command": "finish"}, ["finish"]),
        ({"command": "abort", "name": "oen"}, ["abort", "oen", "--scope", "session"]),
        ({"command": "abort", "name": "one", "scope": "sibling"}, ["abort", "one", "--scope", "sibling"]),
        ({"command": "add-task", "id": "one", "prompt": "x"}, ["task", "add", "--id", "one", "--prompt", "x"]),
        ({"command": "try-account", "name": "x"}, ["resume", "--account", "x"]),
    ],
)  # fmt: skip
def test_a_command_is_refused_with_the_sentence_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: dict[str, Any], words: list[str]
) -> None:
    log = FleetLog(tmp_path / "fleet.db", *PLAN).path
    with served([log]) as desk:
        given = desk.give("fleet", command, status=409)
    assert main(with_log(words, log)) == 2
    printed = capsys.readouterr()
    assert [line["words"] for line in given["lines"]] == printed.out.splitlines()
    assert printed.err == f"lifefold: {given['refusal']}\n"
    assert said(log) == []


def test_a_repeated_key_gives_nothing_and_returns_the_first_answer(log: Path) -> None:
    """Also after a restart of the desk, which then reads the answer from the log."""
    command = {"command": "pause", "names": ["ann"]}
    with served([log]) as desk:
        first = desk.give("fleet", command, "k-1")
        second = desk.give("fleet", command, "k-1")
        assert first == second | {"is_repeated": False}
        assert second["is_repeated"]
        desk.give("fleet", {"command": "resume", "names": ["ann"]}, "k-2")
    with served([log]) as desk:
        third = desk.give("fleet", command, "k-1")
        assert third["is_repeated"]
        assert third["lines"] == [{"words": "ann: accepted; the next run acts on it", "is_accepted": True}]
    assert len(said(log)) == 2
    assert folded(log).record("worker/ann", "desired_state").state == "Run"


def test_two_operators_at_once_are_decided_one_after_the_other(log: Path) -> None:
    """The first answer counts, and the other one is refused with it."""
    with served([log]) as desk:
        answers: list[Any] = []

        def answer(text: str) -> None:
            headers = {"origin": desk.base, "x-lifefold": "desk"}
            body = {"command": "answer", "name": "ann/Q2", "text": text}
            answers.append(desk.client.post("/fleets/fleet/commands", json=body, headers=headers))

        threads = [threading.Thread(target=answer, args=(text,)) for text in ("red", "blue")]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert sorted(each.status_code for each in answers) == [200, 409]
    (kept,) = [each for each in folded(log).record("worker/ann", REF).questions if each.number == 2]
    refused = next(each for each in answers if each.status_code == 409).json()
    assert f"answered already: {kept.answer.text}" in refused["lines"][0]["words"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{}",
        '{"command": "run"}',
        '{"command": "stop"}',
        '{"command": "stop", "names": []}',
        '{"command": "stop", "names": [""]}',
        '{"command": "stop", "names": ["a\\u0000"]}',
        '{"command": "stop", "names": ["a"], "how": "now"}',
        '{"command": "send", "name": "ann", "text": ""}',
        '{"command": "budget"}',
        '{"command": "approve", "names": "ann"}',
        '{"command": "answer", "name": "a", "text": "\\ud800"}',
        "\xff",
    ],
)
def test_a_body_that_is_no_command_is_refused(desk: Served, log: Path, body: str) -> None:
    headers = {"origin": desk.base, "x-lifefold": "desk", "content-type": "application/json"}
    answer = desk.client.post("/fleets/fleet/commands", content=body.encode("latin-1"), headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert said(log) == []


@pytest.mark.parametrize("key", ["a b", "x" * 101, "ä", "a/b"])
def test_a_key_that_is_none_is_refused(desk: Served, key: str) -> None:
    headers = {"origin": desk.base, "x-lifefold": "desk", "idempotency-key": key}
    body = {"command": "pause", "names": ["ann"]}
    sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    answer = desk.client.post("/fleets/fleet/commands", json=body, headers=sent)
    assert answer.status_code == 400
    assert "idempotency-key" in answer.json()["error"]


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__struct_config__.tag)
def test_the_command_line_reads_the_words_of_each_command(kind: type[Command]) -> None:
    """Names and texts that look like options stay names and texts."""
    fields: dict[str, Any] = {"id": "--id", "prompt": "-p", "verify": ("make -k",), "depends_on": ("-a",)}
    fields |= {
        "names": ("--kill",),
        "name": "--db=/x",
        "text": "-y",
        "reason": "--plan",
        "move": "promote",
        "usd": "1",
        "seen": "x",
    }
    command = kind(**{name: fields[name] for name in kind.__struct_fields__ if name in fields})
    verb, *rest = command.words()
    arguments = parser().parse_args([*verb.split(), "--db=/log", *rest])
    assert arguments.db == "/log"
    assert arguments.command.partition(":")[0] in {
        "aborting", "adding", "answering", "approving", "branching", "budgeting", "deciding", "editing", "planning",
        "releasing", "telling", "trusting",
    }  # fmt: skip


def test_words_keep_what_an_operator_has_written() -> None:
    assert Send("ann", "--no-interrupt").words() == ["send", "--", "ann", "--no-interrupt"]
    assert Stop(("a", "b"), "kill").words() == ["stop", "--kill", "--", "a", "b"]
    assert Approve(reason="x").words() == ["approve", "--reason=x", "--"]
    with pytest.raises(msgspec.ValidationError, match="must have an amount"):
        msgspec.json.decode(b'{"command": "budget", "whose": "agent", "name": "ann"}', type=Raise)


def test_an_abort_ends_a_task_as_on_the_command_line(tmp_path: Path) -> None:
    log = FleetLog(tmp_path / "fleet.db", *PLAN, aborts=AbortPolicy()).path
    with served([log]) as desk:
        given = desk.give("fleet", {"command": "abort", "name": "one", "reason": "no need"})
        assert given["lines"][0]["words"].startswith("one: aborted: one")
    assert folded(log).record("board", "task:one").state == "CANCELLED"


def test_the_page_after_a_command_shows_its_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the desk does not look at the log for hours: no operator gives a command twice for an old page."""
    for name in ("LOOK_S", "REST_S"):
        monkeypatch.setattr(shelf, name, 3_600)
    with served([FleetLog(tmp_path / "fleet.db", *PLAN).path]) as desk:
        desk.give("fleet", {"command": "pause", "names": ["ann"]})
        (agent, *_) = desk.json("/fleets/fleet.json")["agents"]
        assert agent["asked"] == "Pause"
