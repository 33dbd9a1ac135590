"""What is read about one task or agent is what a fold of the whole log has about it: of whole fleets under faults."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from lifefold.core.fleet import system
from lifefold.core.fleet.system import board, worker
from lifefold.core.kernel import Refusal, RunnerRecovered
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import excerpts, logs
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.desk.history import ClaimRecord, History, SessionRecord
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.engine.snapshots import SnapshotTaker
from lifefold.interpreters.explain import task_status, why
from lifefold.interpreters.simulate import Faults, simulate
from lifefold.interpreters.store import Batch, Entry, SqliteStore
from lifefold.interpreters.store.past import log_at
from lifefold.interpreters.targets.simulation_targets import named

FLEETS = (("fleet-mixed", 0), ("fleet-mixed", 1), ("fleet-governed", 2), ("fleet-2x3", 3))
MOST = 4_000
"""The most entries of a log that are used."""


@cache
def simulated(name: str, seed: int) -> list[Decision]:
    """Return the decisions of a simulated fleet, with the faults of a seed."""
    target = named(name)
    run = simulate(target.subject, opening=target.opening, seed=seed, faults=Faults(), environment=target.environment)
    ledger, found = Ledger(system), list[Decision]()
    for stream, envelope in run.entries[:MOST]:
        decision = ledger.decide(stream, envelope)
        assert not isinstance(decision, Refusal)
        found.append(decision)
    return found


async def write(path: Path, decisions: list[Decision]) -> None:
    """Write a log with a snapshot after two thirds of its entries."""
    with SqliteStore.create(path, {"fleet": "simulated"}) as store:
        ledger, account = Ledger(system), Account()
        taker = SnapshotTaker(ledger, store, every=1)
        taker.notes = account.notes
        for number, decision in enumerate(decisions):
            snapshot = taker.taken(lambda _: True, lambda _: ()) if number == len(decisions) * 2 // 3 else None
            await store.append(Batch((decision.entry,), snapshot=snapshot))
            list(ledger.fold([decision.entry]))
            taker.note(decision)
            account.observe(decision.entry.stream, decision.reaction)


class Told(NamedTuple):
    """What is told of a task, or of an agent."""

    story: why.Story
    claims: tuple[ClaimRecord, ...]
    sessions: tuple[SessionRecord, ...]


def told(decisions: Iterable[Decision], *, task: str = "", agent: str = "") -> Told:
    """Fold the story, the claims and the sessions."""
    story, history = why.Story(task), History()
    for decision in decisions:
        name, reaction = decision.entry.stream, decision.reaction
        history.observe(name, reaction)
        if name == board.NAME and isinstance(decision.envelope.event, RunnerRecovered):
            story = why.resumed(story, decision.envelope.at_ms)
        for transition in reaction.transitions:
            story = why.tell(story, name, transition)
    return Told(story if task else why.Story(""), history.claims(task), history.sessions(agent=agent, task=task))


@pytest.mark.parametrize(("name", "seed"), FLEETS)
def test_an_excerpt_tells_of_each_task_and_agent_what_the_whole_log_tells(name: str, seed: int, tmp_path: Path) -> None:
    """The story, the claims, the sessions, and the sums of a page are equal, by a snapshot and of the past."""
    decisions, log = simulated(name, seed), tmp_path / "fleet.db"
    anyio.run(write, log, decisions)
    with SqliteStore.peek(log) as now, log_at(log, len(decisions) // 2) as past:
        for store, until in ((now, len(decisions)), (past, len(decisions) // 2)):
            every = decisions[:until]
            ledger, account = logs.fold_with_account(store)
            assert ledger.entries == until
            tasks = {each.id: each.state for each in task_status.tasks(ledger.aggregates)}
            agents = [each.key for each in ledger.aggregates.values() if each.kind == worker.KIND]
            assert tasks
            assert agents
            for task, state in tasks.items():
                found = list(excerpts.of_task(store, ledger, task))
                assert told(found, task=task) == told(every, task=task)
                claims = told(every, task=task).claims
                assert told(excerpts.of_claims(store, ledger, task), task=task).claims == claims
                works = [each.agent for each in claims if not each.handed]
                assert account.attempts[task] == len(works)
                if state == State.CLOSED:
                    assert account.authors()[task] == works[-1]
            for agent in agents:
                assert told(excerpts.of_agent(store, ledger, agent), agent=agent) == told(every, agent=agent)


def test_an_excerpt_of_a_task_leaves_out_what_is_about_others(tmp_path: Path) -> None:
    """It has a part of the entries, in their order, and each transition of the task is that of the whole log."""
    decisions, log = simulated("fleet-2x3", 3), tmp_path / "fleet.db"
    anyio.run(write, log, decisions)
    with SqliteStore.peek(log) as store:
        ledger = logs.fold(store)
        task = task_status.tasks(ledger.aggregates)[0].id
        found = list(excerpts.of_claims(store, ledger, task))
    assert 0 < len(found) < len(decisions) / 2
    assert [each.entry.version for each in found] == sorted(each.entry.version for each in found)
    mine = [each for of in decisions for each in of.reaction.transitions if each.entity == f"task:{task}"]
    assert [each for of in found for each in of.reaction.transitions if each.entity == f"task:{task}"] == mine


def test_an_entry_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The message has the stream and the number of the entry."""
    ledger, log = Ledger(system), tmp_path / "fleet.db"
    ledger.entries = 1
    with SqliteStore.create(log, {"fleet": "damaged"}) as store:
        anyio.run(store.append, Batch([Entry("worker/ann", 1, 5, "", b"{", b"{")]))
        with pytest.raises(BadInput, match="worker/ann, entry 1: "):
            list(excerpts.of_agent(store, ledger, "ann"))
