"""Operators read plain reasons: the form of document 000 around a message stays in the records."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fleet_log import FleetLog
from lifefold.core.fleet import AgentPlan, NotifierPlan, TaskPlan
from lifefold.core.fleet.board import notifier, worker_slot
from lifefold.core.fleet.worker import assignment
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.policy.ends import Diagnosis
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import NotificationKind
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from web_desk import served

SCREENS: Final = (
    ("status",),
    ("status", "--json"),
    ("tasks",),
    ("why", "T1"),
    ("why", "T2"),
    ("why", "T1", "--json"),
    ("show", "T1"),
    ("show", "ann"),
    ("show", "T1", "--json"),
    ("log",),
    ("log", "--all"),
)
"""The commands that show reasons to an operator."""

PAGES: Final = ("", "/board", "/tasks/T1", "/tasks/T2", "/agents/ann", "/log")
"""The pages of the desk that show them."""

MESSAGE: Final = "exit status 7 (no key)"

OUTCOMES: Final = (
    *(session.Error(MESSAGE, Diagnosis(abort_reason=each)) for each in AbortReason),
    session.Error(MESSAGE),
    session.Timeout("session_timeout of 30m is over"),
)
"""An error with each reason of document 004, one without a known reason, and a time-out."""

FORM: Final = re.compile(r"\b(Error|Timeout)\(")
"""The form of document 000; the name of another error has it too, and is none."""


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Error(exit status 1)", "exit status 1"),
        ("Error(Killed (signal 9))", "Killed (signal 9)"),
        ("Timeout(session_timeout of 30m is over)", "session_timeout of 30m is over"),
        ("Error(no key); what it has left is not enough: no a.txt", "no key; what it has left is not enough: no a.txt"),
        ("Error(Interrupt) (interrupted after 90 s of silence)", "Interrupt (interrupted after 90 s of silence)"),
        ("1 error in all; the last was Error(no key)", "1 error in all; the last was no key"),
        ("run 2 has failed: Error(no key)", "run 2 has failed: no key"),
        ("T1 has failed (Error(no key))", "T1 has failed (no key)"),
        ("T1: Error(a), T2: Error(b)", "T1: a, T2: b"),
        ("Error(it printed ( and no more)", "it printed ( and no more"),
        ("Error(a message that is cut he…", "a message that is cut he…"),
        ("Error(Error(twice))", "Error(twice)"),
        ("TypeError(no key)", "TypeError(no key)"),
        ("raise Error(no key)", "raise Error(no key)"),
        ("Timeout", "Timeout"),
        ("", ""),
    ],
)
def test_a_reason_loses_the_form_around_its_message_and_nothing_else(reason: str, words: str) -> None:
    """The words of an agent stay as they are, also if they look like the form."""
    assert in_plain_words(reason) == words


def fallen(path: Path, outcome: session.Error | session.Timeout) -> FleetLog:
    """Return a log in which the session of ann has ended so at T1, and has stopped her; T2 waits for T1."""
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    log = FleetLog(
        path,
        TaskPlan("T1", "do it", max_retries=0),
        TaskPlan("T2", "do it", depends_on=("T1",)),
        agents=(AgentPlan("ann", limits),),
        notify=(NotifierPlan("desk", tuple(NotificationKind), retries=0),),
    )
    log.reported("worker/ann", "session", session.WorktreeReady())
    log.claimed("T1").happens("worker/ann", "assignment", assignment.Assigned(task.Brief("T1", 1, "do it")))
    log.reported("worker/ann", "assignment", assignment.CheckedOut())
    log.reported("worker/ann", "session", session.SessionStarted(0))
    exited = session.SessionExited(outcome)
    log.reported("worker/ann", "session", exited)
    reason = session_profiles.failure_reason(exited)
    assert FORM.match(reason)
    log.happens("board", "task:T1", task.Failed(1, reason, exited.diagnosis))
    log.happens("board", "worker_slot:ann", worker_slot.WorkerGone(f"1 error in all; the last was {reason}"))
    log.happens("board", notifier.FIRST, notifier.DeliveryDue())
    log.reported("board", notifier.FIRST, notifier.DeliveryFailed("the desk is closed"))
    return log


def screens(log: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each screen."""
    for words in SCREENS:
        assert main([*words, "--db", str(log)]) == 0, words
        yield " ".join(words), capsys.readouterr().out
    with served([log]) as desk:
        for page in PAGES:
            yield f"{page}.json", json.dumps(desk.json(f"/fleets/fleet{page}.json"))
            yield page, desk.get(f"/fleets/fleet{page}").text


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(
            each,
            id=f"{type(each).__name__}-{place}",
            marks=() if each in {OUTCOMES[0], *OUTCOMES[-2:]} else pytest.mark.campaign,
        )
        for place, each in enumerate(OUTCOMES)
    ],
)
def test_no_screen_shows_the_form_of_the_document(
    outcome: session.Error | session.Timeout,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Commands, pages and JSON show the message of every end, and none shows it as a record has it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "500")
    log = fallen(tmp_path / "fleet.db", outcome)
    assert FORM.match(log.task("T1").reason)
    shown = dict(screens(log.path, capsys))
    assert {name for name, text in shown.items() if FORM.search(text)} == set()
    assert {
        name for name in ("tasks", "why T1", "show T1", "log", "/board") if outcome.message not in shown[name]
    } == set()


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("depends on T1, which is FAILED", "depends on T1, which has failed"),
        ("T2, a part of it, is CANCELLED", "T2, a part of it, is cancelled"),
        ("priority: the task is IN_PROGRESS with ann", "priority: the task is running with ann"),
        ("was removed, but it is CLOSED, and stays so", "was removed, but it is closed, and stays so"),
        ("the build is FAILED and CLOSED", "the build is FAILED and CLOSED"),
    ],
)
def test_the_state_of_a_task_in_a_sentence_of_the_rules_has_its_word(reason: str, said: str) -> None:
    """A sentence of an agent stays as it is."""
    assert in_plain_words(reason) == said
