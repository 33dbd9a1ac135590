"""The guarantees of the one fold that all browsers share: the past is exact, and nothing is told twice."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from asking_log import LEAVE, WORDS, at_work
from benchmarks import long_log
from lifefold.core.fleet import system
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import desired_state
from lifefold.core.fleet.worker.question import REF
from lifefold.core.fleet.worker.question_model import Answer, QuestionAnswered, Verdict
from lifefold.core.kernel import Aggregate, Envelope, RunnerRecovered
from lifefold.effects import Tell
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.desk.history import History
from lifefold.interpreters.engine import Decision, Ledger, snapshots
from lifefold.interpreters.explain import why
from lifefold.interpreters.store import Entry, SqliteStore
from lifefold.interpreters.web import followed_log
from lifefold.interpreters.web.followed_log import FollowedLog, StillReading, UnknownPosition
from lifefold.interpreters.web.journal import Choice
from web_logs import go_on, run_of, written

ENTRIES = run_of(2, 4).entries


@pytest.fixture
def log(tmp_path: Path) -> Iterator[FollowedLog]:
    """A whole run, folded, with snapshots that lie close together."""
    with FollowedLog("fleet", written(tmp_path / "fleet.db", ENTRIES), spacing=16) as log:
        log.take()
        yield log


def folds() -> Iterator[tuple[int, Mapping[str, Aggregate], Account, Decision]]:
    """Yield what a plain fold has after each position."""
    ledger, account = Ledger(system), Account()
    for seq, decision in enumerate(ledger.fold(ENTRIES), 1):
        account.observe(decision.entry.stream, decision.reaction)
        yield seq, dict(ledger.aggregates), account, decision


def test_the_past_at_each_position_is_what_a_fold_up_to_it_gives(log: FollowedLog) -> None:
    for seq, aggregates, account, decision in folds():
        moment = log.at(seq)
        assert (moment.seq, moment.at_ms) == (seq, decision.entry.at_ms)
        assert moment.aggregates == aggregates
        assert (moment.account.attempts, moment.account.spending) == (account.attempts, account.spending)
    assert log.at(None) is log.now
    assert log.now.is_now
    assert not log.at(1).is_now


def test_the_claims_at_each_position_are_what_a_fold_up_to_it_gives(log: FollowedLog) -> None:
    """The command line folds them in the same way; a claim that goes on has no end yet."""
    history, names = History(), [f"T{number:04}" for number in range(4)]
    told: dict[tuple[tuple[str, bool], ...], None] = {}
    for seq, _, _, decision in folds():
        history.observe(decision.entry.stream, decision.reaction)
        for name in names:
            assert log.claims.of(name, seq) == history.claims(name)
            told[tuple((each.outcome, each.ended_ms > 0) for each in history.claims(name))] = None
    assert list(told) == [(), (("", False),), (("CLOSED", True),)]
    assert all(log.claims.of(name) == history.claims(name) for name in names)


def test_snapshots_are_bounded_and_the_past_stays_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_log, "MOST_SNAPSHOTS", 5)
    with FollowedLog("fleet", written(tmp_path / "fleet.db", ENTRIES), spacing=1) as log:
        log.take()
        assert 1 < len(log._past._snapshots) <= 5
        every = {seq: aggregates for seq, aggregates, _, _ in folds()}
        assert all(log.at(seq).aggregates == every[seq] for seq in (1, 2, 7, len(ENTRIES) // 2, len(ENTRIES) - 1))


@pytest.mark.parametrize("seq", [0, len(ENTRIES) + 1])
def test_a_position_that_the_log_does_not_have_is_refused(log: FollowedLog, seq: int) -> None:
    with pytest.raises(UnknownPosition, match=f"there is no position {seq}; .* the positions 1 to {len(ENTRIES)}"):
        log.at(seq)


def test_the_story_of_each_task_at_each_position_is_that_of_why(log: FollowedLog) -> None:
    names = [ref.removeprefix("task:") for ref in log.now.aggregates[board.NAME].entities if ref.startswith("task:")]
    assert names
    for name in names:
        story = why.Story(name)
        for seq, _, _, decision in folds():
            if decision.entry.stream == board.NAME and isinstance(decision.envelope.event, RunnerRecovered):
                story = why.resumed(story, decision.envelope.at_ms)
            for step in decision.reaction.transitions:
                story = why.tell(story, decision.entry.stream, step)
            assert log.trails.at(name, seq) == story


def test_the_cause_of_a_line_is_the_entry_that_has_sent_its_message(log: FollowedLog) -> None:
    decisions = {seq: decision for seq, _, _, decision in folds()}
    told = [line for line in log.journal.lines if line.caused_by]
    assert told
    for line in told:
        sent, taken = decisions[line.caused_by], decisions[line.seq].envelope
        assert sent.entry.stream == taken.sender
        tells = [each.effect for each in sent.reaction.effects if isinstance(each.effect, Tell)]
        assert (line.aggregate, taken.ordinal) in [(tell.aggregate, tell.ordinal) for tell in tells]


def test_a_journal_has_each_transition_once_and_finds_the_last_that_fit(log: FollowedLog) -> None:
    count = sum(len(decision.reaction.transitions) for _, _, _, decision in folds())
    assert len(log.journal.lines) == count
    assert list(log.journal.between(0, len(ENTRIES))) == log.journal.lines
    task = log.journal.lines[-1].tasks[0] if log.journal.lines[-1].tasks else "task-1"
    every = [line for line in log.journal.lines if Choice(task=task).accepts(line)]
    assert log.journal.chosen(Choice(task=task), before=len(ENTRIES) + 1, most=3) == every[-3:]
    assert all(line.seq < 20 for line in log.journal.chosen(Choice(), before=20, most=1_000))


def test_new_entries_are_taken_once_and_a_runner_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path / "fleet.db", ENTRIES[:40])
    with FollowedLog("fleet", path) as log:
        assert log.take()
        assert not log.take()
        go_on(path, ENTRIES[40:])
        assert log.take()
        assert (log.now.seq, log.runs) == (len(ENTRIES), False)
        before = len(log.journal.lines)
        assert not log.take()
        assert len(log.journal.lines) == before


def test_a_log_that_cannot_be_read_on_keeps_its_last_moment_and_says_why(tmp_path: Path) -> None:
    path = written(tmp_path / "fleet.db", ENTRIES[:40])
    with FollowedLog("fleet", path) as log:
        log.take()
        damaged: Entry = ENTRIES[41]
        with closing(sqlite3.connect(path)) as other:
            values = (damaged.stream, 99, damaged.at_ms, damaged.envelope, damaged.outcome, b"")
            other.execute(
                "INSERT INTO entries (stream, version, at_ms, key, envelope, outcome, link)"
                " VALUES (?, ?, ?, '', ?, ?, ?)",
                values,
            )
            other.commit()
        assert log.take()
        assert "entry 41" in log.trouble
        assert log.now.seq == 40


def test_a_question_that_was_answered_waits_in_the_past(tmp_path: Path) -> None:
    written_by = at_work(tmp_path / "fleet.db", LEAVE, WORDS)
    written_by.happens("worker/ann", REF, QuestionAnswered(1, Answer(Verdict.ALLOWED)))
    with FollowedLog("fleet", written_by.path) as log:
        log.take()
        before, now = log.at(log.now.seq - 1), log.now
        assert len(before.aggregates["worker/ann"].record(REF).waiting) == 2
        assert len(now.aggregates["worker/ann"].record(REF).waiting) == 1


@pytest.fixture(name="long")
def _long(tmp_path: Path) -> Path:
    """A log with a snapshot, and with entries after it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("AGENTS", 3), ("ALIVE", 4), ("BATCH", 40)):
            patch.setattr(long_log, name, value)
        patch.setattr(snapshots, "EVERY", 100)
        patch.setattr(snapshots, "LEAST", 10_000)
        anyio.run(long_log.make, tmp_path / "long.db", 400, 12)
    return tmp_path / "long.db"


def test_the_present_of_a_long_log_is_there_before_its_past(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what a fold of all entries gives, while the history is folded piece by piece and afterwards."""
    monkeypatch.setattr(followed_log, "PIECE_ENTRIES", 50)
    monkeypatch.setattr(followed_log, "TAIL_ENTRIES", 60)
    with FollowedLog("whole", long) as whole, SqliteStore.peek(long) as store:
        monkeypatch.setattr(followed_log, "PIECE_ENTRIES", 1_000_000)
        whole.take()
        monkeypatch.setattr(followed_log, "PIECE_ENTRIES", 50)
        assert (whole.is_read, whole.is_told) == (True, True)
        entries = anyio.run(store.read)
        with FollowedLog("long", long) as log:
            pieces = 0
            while not log.is_told:
                log.take()
                pieces += 1
                assert log.is_read
                assert (log.now.seq, log.now.at_ms) == (whole.now.seq, whole.now.at_ms)
                assert log.now.aggregates == whole.now.aggregates
                assert log.now.account.attempts == whole.now.account.attempts
                assert log.now.account.spending == whole.now.account.spending
                assert log.at(log.now.seq - 1).aggregates == whole.at(log.now.seq - 1).aggregates
                if pieces == 1:
                    with pytest.raises(StillReading, match="is being read"):
                        log.must_be_told(log.now.seq)
                elif not log.is_told:
                    log.must_be_told(log.now.seq)
                    assert log.told_from == log.now.seq - 60
                    assert log.journal.lines == [each for each in whole.journal.lines if each.seq > log.told_from]
                    assert log.journal.story == [each for each in whole.journal.story if each.seq > log.told_from]
                    with pytest.raises(StillReading, match="is being read"):
                        log.must_be_told(log.told_from)
            assert pieces > len(entries) / 50
            assert (log.told_from, log.journal.lines) == (0, whole.journal.lines)
            assert log.at(len(entries) // 2).aggregates == whole.at(len(entries) // 2).aggregates


def finish(log: FollowedLog) -> None:
    """Fold the rest of the history."""
    while not log.is_told:
        log.take()


def test_what_comes_while_the_past_is_folded_is_in_the_present_at_once(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_log, "PIECE_ENTRIES", 50)
    with SqliteStore.peek(long) as store:
        entries = list(anyio.run(store.read))
    with FollowedLog("long", long) as log:
        log.take()
        log.take()
        before, ledger = log.now.seq, Ledger(system)
        for _ in ledger.fold(entries):
            pass
        worker = next(name for name in ledger.aggregates if name.startswith("worker/"))
        wanted = Envelope(desired_state.machine.name, desired_state.PauseWanted(), ledger.last_ms, "operator:me")
        decision = ledger.decide(worker, wanted)
        assert isinstance(decision, Decision)
        go_on(long, [decision.entry])
        assert log.take()
        assert not log.is_told
        assert log.now.seq == before + 1
        assert log.now.account.paused_by[worker.partition("/")[2]] == "me"
        finish(log)
        assert log.now.seq == log.journal.lines[-1].seq == before + 1
        assert log.now.aggregates == ledger.aggregates


def test_the_sessions_at_each_position_are_what_a_fold_up_to_it_gives(log: FollowedLog) -> None:
    history = History()
    agents = [name.partition("/")[2] for name in log.now.aggregates if name.startswith("worker/")]
    seen = set[str]()
    for seq, _, account, decision in folds():
        history.observe(decision.entry.stream, decision.reaction)
        for name in agents:
            sessions = log.sessions.of(name, seq)
            assert sessions == history.sessions(agent=name)
            assert sum(each.cost.input_tokens for each in sessions) == account.spending.of_agent(name).input_tokens
            seen |= {each.outcome for each in sessions}
    assert seen == {"running", "success"}
    assert {each.agent for each in history.sessions()} == set(agents)
