"""Commands about the present read a log by its snapshot, and say what a fold of all entries says."""

from pathlib import Path

import anyio
import pytest

from benchmarks import long_log
from lifefold.core.fleet import system
from lifefold.core.kernel import replace
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.account import Account, account_of
from lifefold.interpreters.engine import Ledger, snapshots
from lifefold.interpreters.engine.snapshots import load
from lifefold.interpreters.explain import task_status
from lifefold.interpreters.store import LogStore, SqliteStore
from lifefold.interpreters.store.past import log_at

ENTRIES, TASKS = 400, 12


@pytest.fixture(name="log", scope="module")
def _log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of a fleet that has done some tasks, with a snapshot and further entries."""
    path = tmp_path_factory.mktemp("logs") / "fleet.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_log, "AGENTS", 3)
        patch.setattr(long_log, "ALIVE", 4)
        patch.setattr(long_log, "BATCH", 40)
        patch.setattr(snapshots, "EVERY", 100)
        patch.setattr(snapshots, "LEAST", 10_000)
        anyio.run(long_log.make, path, ENTRIES, TASKS)
    return path


def whole(store: LogStore) -> tuple[Ledger, Account]:
    """Fold all entries."""
    ledger, account = Ledger(system), Account()
    for decision in logs.decisions(store, ledger):
        account.observe(decision.entry.stream, decision.reaction)
    return ledger, account


def test_a_command_about_the_present_folds_the_newest_entries_only(log: Path) -> None:
    """The state, the statuses of the tasks and the account are those of a fold of all entries."""
    with SqliteStore.peek(log) as store:
        ledger, account = logs.fold_with_account(store)
        folded, told = whole(store)
        further = len(list(anyio.run(load, Ledger(system), store).entries))
    assert 0 < further < ENTRIES / 2
    assert ledger.aggregates == folded.aggregates == logs_fold(log)
    assert (ledger.entries, ledger.last_ms, ledger.newest_rules) == (
        folded.entries,
        folded.last_ms,
        folded.newest_rules,
    )
    tasks = task_status.tasks(folded.aggregates)
    assert account.attempted(task_status.tasks(ledger.aggregates)) == told.attempted(tasks)
    assert account.attempted(tasks) == tuple(replace(each, attempts=told.attempts[each.id]) for each in tasks)
    assert (account.spending, account.paused_by) == (told.spending, told.paused_by)
    assert anyio.run(account_of, log).attempts == told.attempts


def logs_fold(log: Path) -> object:
    """Return the aggregates that a command without an account reads."""
    with SqliteStore.peek(log) as store:
        return logs.fold(store).aggregates


def test_the_past_is_folded_without_the_snapshot(log: Path) -> None:
    """A snapshot is of a later position."""
    with log_at(log, 90) as past:
        ledger = logs.fold(past)
        assert ledger.entries == sum(each.version for each in ledger.aggregates.values()) == 90
        assert ledger.aggregates == whole(past)[0].aggregates
