"""A fleet's log that no runner has written: a plan, and then what a test says has happened, decided by the rules."""

import os
import pwd
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.board import worker_slot
from lifefold.core.kernel import Envelope, Event, Phase
from lifefold.core.lifecycles import session, task
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import Batch, Entry, SqliteStore

ME = f"operator:{pwd.getpwuid(os.geteuid()).pw_name}"
"""Who a command says it was."""


class FleetLog:
    """A log in a file, and how it goes on."""

    def __init__(
        self,
        path: Path,
        *tasks: TaskPlan,
        agents: tuple[AgentPlan, ...] = (),
        meaning: str = "{}",
        rules: str = "",
        **plan: Any,
    ) -> None:
        """Begin a log with a plan; without agents there is one, ann. ``meaning`` is what its fleet file has said.

        The rules are of the version ``rules``, by default of the present one.
        """
        self.path = path
        self._ledger = Ledger(system, rules=rules or rules_version(system))
        whole = Plan("fleet", agents or (AgentPlan("ann"),), tasks, **plan)
        entries = [self._decided(name, envelope) for name, envelope in opening(whole, 0)]
        with SqliteStore.create(path, {"fleet": "fleet", "meaning": meaning}) as store:
            anyio.run(partial(store.append, Batch(entries)))

    def happens(self, to: str, entity: str, *events: Event, actor: str = "test") -> "FleetLog":
        """Write what happens to an entity of an aggregate."""
        return self._written(
            [self._decided(to, Envelope(entity, event, self._ledger.last_ms, actor)) for event in events]
        )

    def _written(self, entries: list[Entry]) -> "FleetLog":
        with SqliteStore.open(self.path) as store:
            anyio.run(partial(store.append, Batch(entries)))
        return self

    def claimed(self, name: str, agent: str = "ann") -> "FleetLog":
        """Let an agent want work, which must get it this task, and begin."""
        self.happens("board", f"worker_slot:{agent}", worker_slot.WorkWanted())
        return self.happens("board", f"task:{name}", task.Started(self.task(name).epoch))

    def failed(self, name: str, reason: str = "tests fail") -> "FleetLog":
        """Let the next task be claimed, which must be this one, and fail."""
        return self.claimed(name).happens("board", f"task:{name}", task.Failed(self.task(name).epoch, reason))

    def fallen(self, agent: str, error: str = "no api key") -> "FleetLog":
        """Let the first session of an agent end with an error, which must be one more than it may have."""
        for event in (
            session.WorktreeReady(), session.PromptReady("do it"), session.SessionExited(session.Error(error))
        ):  # fmt: skip
            self.reported(f"worker/{agent}", "session", event)
        return self

    def reported(self, to: str, entity: str, event: Event) -> "FleetLog":
        """Write what the activity reports that goes on for an entity."""
        of = self._ledger.aggregates[to].entities[entity]
        (part,) = (each for each in of.running if each.activity is not None and each.phase is Phase.LIVE)
        at_ms = self._ledger.last_ms
        envelope = Envelope(entity, event, at_ms, "test", slot=part.slot, generation=part.generation)
        return self._written([self._decided(to, envelope)])

    def later(self, at_ms: int) -> "FleetLog":
        """Let time pass until ``at_ms``, in Unix milliseconds."""
        self._ledger.last_ms = at_ms
        return self

    def task(self, name: str) -> Any:
        """Return a task's record, as this log has it."""
        return self._ledger.record("board", f"task:{name}")

    def _decided(self, name: str, envelope: Envelope) -> Entry:
        decision = self._ledger.decide(name, envelope)
        assert isinstance(decision, Decision), decision
        return decision.entry


def folded(path: Path) -> Ledger:
    """Return a fleet as its log has it now."""
    ledger = Ledger(system)
    with SqliteStore.peek(path) as store:
        for _ in ledger.fold(anyio.run(store.read)):
            pass
    return ledger


def said(path: Path) -> list[Envelope]:
    """Return what operators and sessions have said by commands, in the order in which it was taken."""
    with SqliteStore.peek(path) as store:
        entries = anyio.run(store.read)
    codec = Ledger(system).codec
    envelopes = [codec.decode(each.stream, each.envelope) for each in entries]
    return [each for each in envelopes if each.actor.startswith(("operator:", "session:"))]
