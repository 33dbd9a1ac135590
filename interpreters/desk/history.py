"""The claims and the sessions of a fleet, folded over the transitions of its log."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.worker import turns
from lifefold.core.kernel import Reaction, Refusal, Transition, replace
from lifefold.core.lifecycles import approval, session, task
from lifefold.core.lifecycles.session import Usage
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.explain.spending import Spending, charged, spend

TASK: Final = "task:"
"""The prefix of a task's entity on the board."""

RUNNING: Final = "running"
"""The outcome of a session without a recorded end."""


REJECTED: Final = "rejected"
"""The outcome of a claim whose work an operator has rejected, or has not approved in time."""


class SessionRecord(msgspec.Struct, frozen=True):
    """A session of an agent: ``number`` counts the sessions of the agent, and names the folder of its files.

    ``claim`` is the number of the task's claim, and ``turn`` that of the agent's turn, 0 without turns. Times are Unix
    milliseconds; ``ended_ms`` is 0 until the end is known. ``outcome`` is one word, ``reason`` a sentence or empty.
    ``cost`` is what it has reported; a session reports at its end.
    """

    agent: str
    number: int
    task: str
    claim: int
    began_ms: int
    ended_ms: int = 0
    outcome: str = RUNNING
    reason: str = ""
    cost: Usage = Usage()
    turn: int = 0

    @property
    def name(self) -> str:
        """Its name in a sentence."""
        return f"session {self.number} of {self.agent} at {self.task}"


class ClaimRecord(msgspec.Struct, frozen=True):
    """A claim of a task. ``handed``: the agent was only to verify or to merge work that was done already.

    ``outcome`` is the state of the task at the claim's end, empty until then. It becomes ``rejected`` with the work.
    """

    number: int
    agent: str
    began_ms: int
    ended_ms: int = 0
    handed: bool = False
    outcome: str = ""
    reason: str = ""


class Claims:
    """The claims of all tasks, up to any position of the log. One thread adds; any thread reads."""

    def __init__(self) -> None:
        """Begin without claims."""
        self._found: Final[dict[str, list[tuple[int, ClaimRecord]]]] = {}
        """By task the claims as they became, each with the position of the entry that made it so."""

    def observe(self, aggregate: str, reaction: Reaction, seq: int = 0) -> None:
        """Add the transitions of the entry at a position."""
        for transition in reaction.transitions if aggregate == board.NAME else ():
            if transition.entity.startswith(TASK):
                self._note(self._found.setdefault(transition.entity.removeprefix(TASK), []), transition, seq)

    def of(self, name: str, until: int | None = None) -> tuple[ClaimRecord, ...]:
        """Return the claims of a task as they were at a position, or are now, the first one first."""
        found = tuple(self._found.get(name, ()))
        return tuple({each.number: each for seq, each in found if until is None or seq <= until}.values())

    def _note(self, claims: list[tuple[int, ClaimRecord]], transition: Transition, seq: int) -> None:
        record: fleet_task.FleetTask = transition.after.record
        event = transition.event
        if isinstance(event, task.Claimed):
            handed = isinstance(event, fleet_task.Handed)
            claims.append((seq, ClaimRecord(record.epoch, event.owner, transition.at_ms, handed=handed)))
        elif claims and isinstance(event, approval.ApprovalRefused | approval.ApprovalExpired):
            reason = event.reason if isinstance(event, approval.ApprovalRefused) else "it was not approved in time"
            claims.append((seq, replace(claims[-1][1], outcome=REJECTED, reason=reason)))
        elif claims and not (last := claims[-1][1]).ended_ms and (not record.owner or record.state in _ENDS):
            reason = record.reason or (record.failure if record.state is task.State.FAILED else "")
            outcome, reason = str(record.state), in_plain_words(reason)
            claims.append((seq, replace(last, ended_ms=transition.at_ms, outcome=outcome, reason=reason)))


def _turn(reaction: Reaction) -> int:
    """Return the number of the turn of a worker; 0 for one without turns."""
    entity = reaction.aggregate.entities.get(turns.REF)
    return 0 if entity is None else entity.record.number


def attempt_of(claims: Sequence[ClaimRecord], claim: int) -> int:
    """Return which attempt a claim is; a claim that only verifies or merges belongs to the one before."""
    return sum(not each.handed for each in claims if each.number <= claim)


def open_claims(claims: Iterable[ClaimRecord]) -> frozenset[int]:
    """Return the numbers of the claims that go on."""
    return frozenset(each.number for each in claims if not each.ended_ms)


def claims_of_attempt(claims: Sequence[ClaimRecord], attempt: int) -> tuple[int, ...]:
    """Return the claims of an attempt, the last one first; empty if there was no such attempt."""
    return tuple(each.number for each in claims if attempt_of(claims, each.number) == attempt)[::-1]


class Sessions:
    """The sessions of all agents, up to any position of the log. One thread adds; any thread reads."""

    def __init__(self) -> None:
        """Begin without sessions."""
        self._found: Final[dict[str, list[tuple[int, SessionRecord]]]] = {}
        """By agent the sessions as they became, each with the position of the entry that made it so."""
        self._begun: Final[list[tuple[str, int]]] = []
        """The agent of each session, and its number, in the order of their beginnings."""
        self._spending = Spending()

    def observe(self, aggregate: str, reaction: Reaction, seq: int = 0) -> None:
        """Add the transitions of the entry at a position."""
        kind, _, agent = aggregate.partition("/")
        for transition in reaction.transitions if kind == worker.KIND else ():
            self._charge(agent, aggregate, transition, seq)
            if transition.machine == session.machine.name:
                self._note(agent, transition, reaction, seq)

    def of(self, agent: str, until: int | None = None) -> tuple[SessionRecord, ...]:
        """Return the sessions of an agent as they were at a position, or are now, the first one first."""
        found = tuple(self._found.get(agent, ()))
        return tuple({each.number: each for seq, each in found if until is None or seq <= until}.values())

    def every(self) -> tuple[SessionRecord, ...]:
        """Return the sessions of all agents in the order of their beginnings."""
        found = {(each.agent, each.number): each for agent in self._found for each in self.of(agent)}
        return tuple(found[begun] for begun in self._begun)

    def _note(self, agent: str, transition: Transition, reaction: Reaction, seq: int) -> None:
        record: session.Session = transition.after.record
        found = self._found.setdefault(agent, [])
        if transition.entered is session.State.SPAWNING:
            brief: task.Brief = reaction.aggregate.record("assignment").brief
            began = SessionRecord(agent, record.attempt, brief.task, brief.epoch, transition.at_ms)
            found.append((seq, replace(began, turn=_turn(reaction))))
            self._begun.append((agent, record.attempt))
        elif found and transition.before is not None and transition.was.state in session.SESSION_LIVES:
            last = found[-1][1]
            if last.number == transition.was.attempt and record.state not in session.SESSION_LIVES:
                word, reason = _end(transition)
                found.append((seq, replace(last, ended_ms=transition.at_ms, outcome=word, reason=reason)))

    def _charge(self, agent: str, aggregate: str, transition: Transition, seq: int) -> None:
        """Add what a transition costs to the last session of the agent."""
        cost = charged(self._spending, aggregate, transition)
        self._spending = spend(self._spending, aggregate, transition)
        if cost != Usage() and (found := self._found.get(agent)):
            found.append((seq, replace(found[-1][1], cost=found[-1][1].cost.plus(cost))))


class History:
    """The sessions of all agents, and the claims of all tasks; an observer of reactions."""

    def __init__(self) -> None:
        """Begin an empty history."""
        self._sessions: Final = Sessions()
        self._claims: Final = Claims()

    def observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        """Add the transitions of one input."""
        if isinstance(outcome, Reaction):
            self._claims.observe(aggregate, outcome)
            self._sessions.observe(aggregate, outcome)

    def sessions(self, *, agent: str = "", task: str = "") -> tuple[SessionRecord, ...]:
        """Return the sessions of an agent, of a task, or of both, in the order of their beginnings."""
        every = self._sessions.of(agent) if agent else self._sessions.every()
        return tuple(each for each in every if not task or each.task == task)

    def claims(self, name: str) -> tuple[ClaimRecord, ...]:
        """Return the claims of a task, the first one first."""
        return self._claims.of(name)

    def claims_of_attempt(self, name: str, attempt: int) -> tuple[int, ...]:
        """Return the claims of an attempt at a task, the last one first; empty if there was no such attempt."""
        return claims_of_attempt(self.claims(name), attempt)

    def attempt(self, name: str, claim: int) -> int:
        """Return which attempt at a task a claim is; a claim that only verifies or merges belongs to the one before."""
        return attempt_of(self.claims(name), claim)


_ENDS: Final = frozenset({task.State.CLOSED, task.State.CANCELLED, task.State.FAILED})


def _end(transition: Transition) -> tuple[str, str]:
    """Return the end of a session as a word and a sentence; one that was told to end has been interrupted."""
    if transition.was.state is session.State.INTERRUPTING or not isinstance(transition.event, session.SessionExited):
        return "interrupted", ""
    match transition.event.outcome:
        case session.Success():
            return "success", ""
        case session.Suspended():
            return "suspended", ""
        case session.Timeout(message=message):
            return "timed out", message
        case session.Limited(message=message):
            return "limited", message
        case session.Error(message=message):
            return "failed", message
