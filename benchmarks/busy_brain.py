"""A simulated cluster whose brain takes time, so that one sees where a board is at its limit.

The cluster is the one of ``lifefold simulate --cluster``: its brain decides by the rules, its hosts run sessions. There
are no faults. Everything that needs no decision takes the shortest time. Three things take the time that was measured:

- **A commit.** The brain decides for one aggregate at a time. A commit takes up to ``BATCH_LIMIT`` inputs of one
  aggregate. The first one costs ``commit_ms``, each further one ``entry_ms``.
- **A turn of an aggregate.** Its workflow has one commit at a time, and needs ``turn_ms`` between two of them.
- **Messages.** The workflow of an aggregate sends one message after the other, each in ``send_ms``, before its next
  commit.

So a fleet has two limits. The brain is shared by all aggregates of the fleet. The board is one aggregate, and all
workers wait for its messages. Not simulated are the limits of the servers of Temporal and of PostgreSQL, and the
processor time of hosts.
"""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from lifefold.core import fleet
from lifefold.core.kernel import START_MS, Aggregate, Entity, Envelope, Reaction, Refusal
from lifefold.core.lifecycles import session, task
from lifefold.effects import Activity, RunSession, Tell
from lifefold.interpreters.simulate.choices import Choices
from lifefold.interpreters.simulate.cluster_activities import HostedActivities
from lifefold.interpreters.simulate.cluster_hosts import Child
from lifefold.interpreters.simulate.cluster_runner import ClusterRunner
from lifefold.interpreters.simulate.environment import Chance, Said
from lifefold.interpreters.simulate.faults import OF_CLUSTER
from lifefold.interpreters.simulate.inputs import Given
from lifefold.interpreters.simulate.scheduler import Agenda
from lifefold.interpreters.targets.fleet_plans import MINUTE_MS
from lifefold.interpreters.targets.simulation_targets import FLEET
from lifefold.interpreters.temporal.wire import BATCH_LIMIT

BOARD: Final = "board"

AGENTS_OF_A_HOST: Final = 8
"""The number of agents that a host has by default."""


class Costs(NamedTuple):
    """What the parts of a cluster take, in milliseconds. Without costs the brain answers at once."""

    commit_ms: float = 0.0
    entry_ms: float = 0.0
    turn_ms: float = 0.0
    send_ms: float = 0.0


class Load(NamedTuple):
    """One fleet: its agents, the mean length of a session, and the end of the run, in virtual milliseconds.

    A session takes between half of its mean length and one and a half. There is always a task for an agent.
    """

    agents: int
    session_ms: int
    until_ms: int
    seed: int = 0

    @property
    def tasks(self) -> int:
        """The number of tasks: more than the agents can do."""
        return self.agents * (2 + 2 * self.until_ms // self.session_ms)


class Moment(NamedTuple):
    """The fleet at one time: inputs that wait for the brain, those of the board, sessions that run, closed tasks."""

    at_ms: int
    waiting: int
    waiting_for_board: int
    working: int
    closed: int
    inputs: int


class Outcome(msgspec.Struct):
    """What a run has shown: each moment, and counts of accepted inputs, by kind of aggregate, and of other things.

    What is ``late`` is of the last part of the run. ``late_waits_ms`` are the times from the arrival of an input until
    it is decided; ``late_busy_ms`` is the time for which the brain was busy. ``sent`` are the messages of the board.
    """

    moments: list[Moment] = []
    late_waits_ms: list[int] = []
    late_busy_ms: float = 0.0
    inputs_by_kind: dict[str, int] = {}
    commits: int = 0
    sent: int = 0
    closed: int = 0

    @property
    def inputs(self) -> int:
        """All accepted inputs."""
        return sum(self.inputs_by_kind.values())


class _Hosts(HostedActivities):
    """Hosts that take the aggregates in turn, up to the usual number each."""

    def _place(self, child: Child) -> None:
        name, hosts = child.part[0], self.weather.hosts
        if name not in self._host_by_name:
            self._host_by_name[name] = hosts[len(self._host_by_name) % len(hosts)]
        super()._place(child)


class BusyBrain(ClusterRunner):
    """A cluster whose brain and workflows take time."""

    def __init__(self, load: Load, costs: Costs) -> None:
        """Prepare the fleet."""
        agenda, choices = Agenda(START_MS), Choices(None)
        environment = msgspec.structs.replace(FLEET, scripts={RunSession: _sessions(load)})
        chance = Chance(environment, choices, dict.fromkeys((each.name for each in OF_CLUSTER), 0.0))
        hosts = type("Hosts", (_Hosts,), {"host_count": -(-load.agents // AGENTS_OF_A_HOST)})
        opening = tuple(fleet.opening(plan(load.agents, load.tasks), START_MS))
        super().__init__(fleet.system, opening, chance, agenda, self._note, hosts=hosts)
        self.outcome: Final = Outcome()
        self._late_ms = 0
        self._load: Final = load
        self._costs: Final = costs
        self._arrived: Final[dict[str, deque[tuple[int, Given]]]] = {}
        self._ready: Final[deque[str]] = deque()
        """The aggregates that have inputs and whose workflow waits for a commit."""
        self._occupied: Final[set[str]] = set()
        """The aggregates whose workflow is in a turn."""
        self._waiting = 0
        self._is_busy = False
        self._free_ms = 0.0
        self._working = 0
        self._receivers: Final[set[str]] = set()
        """The receivers of the messages of the present commit."""

    def run(self, late_ms: int = 0) -> Outcome:
        """Run to the end, and note the fleet at each minute. The last ``late_ms`` are the late part."""
        agenda, end_ms = self._agenda, START_MS + self._load.until_ms
        self._late_ms = end_ms - late_ms
        for at_ms in range(START_MS + MINUTE_MS, end_ms + 1, MINUTE_MS):
            agenda.at(at_ms, self._look)
        self.start()
        while (next_ms := agenda.next_ms()) is not None and next_ms <= end_ms:
            agenda.step()
        return self.outcome

    def give(self, given: Sequence[Given]) -> None:
        """Let inputs wait for the commit of their aggregate."""
        for each in given:
            name = each.aggregate
            self._arrived.setdefault(name, deque()).append((self._agenda.now_ms, each))
            self._waiting += 1
            self._offer(name)
        self._serve()

    def _offer(self, name: str) -> None:
        if self._arrived.get(name) and name not in self._occupied:
            self._occupied.add(name)
            self._ready.append(name)

    def _serve(self) -> None:
        """Let the brain take the next commit, if it is free."""
        if self._is_busy or not self._ready:
            return
        self._is_busy = True
        name = self._ready.popleft()
        arrived = self._arrived[name]
        batch = [arrived.popleft() for _ in range(min(len(arrived), BATCH_LIMIT))]
        took_ms = self._costs.commit_ms + self._costs.entry_ms * (len(batch) - 1)
        self._free_ms = max(self._free_ms, float(self._agenda.now_ms)) + took_ms
        self.outcome.commits += 1
        if self._is_late:
            self.outcome.late_busy_ms += took_ms
        self._agenda.at(int(self._free_ms), self._served, name, batch)

    @property
    def _is_late(self) -> bool:
        return self._agenda.now_ms >= self._late_ms

    def _served(self, name: str, batch: list[tuple[int, Given]]) -> None:
        """Let a commit be done, and its messages be sent."""
        self._waiting -= len(batch)
        if self._is_late:
            self.outcome.late_waits_ms.extend(self._agenda.now_ms - at_ms for at_ms, _ in batch)
        self._receivers.clear()
        self._commit([given for _, given in batch])
        if name == BOARD:
            self.outcome.sent += len(self._receivers)
        rest_ms = self._costs.turn_ms + self._costs.send_ms * len(self._receivers)
        self._agenda.at(self._agenda.now_ms + round(rest_ms), self._back, name)
        self._is_busy = False
        self._serve()

    def _back(self, name: str) -> None:
        """Let the workflow of an aggregate take its next turn."""
        self._occupied.discard(name)
        self._offer(name)
        self._serve()

    def _wait(self) -> None:
        """Do nothing: nothing dies here while it waits."""

    def _note(self, name: str, outcome: Reaction | Refusal, envelope: Envelope) -> None:
        if isinstance(outcome, Refusal):
            return
        kind, counts = name.partition("/")[0], self.outcome.inputs_by_kind
        counts[kind] = counts.get(kind, 0) + 1
        self._receivers.update(each.effect.aggregate for each in outcome.effects if isinstance(each.effect, Tell))
        self._working += isinstance(envelope.event, session.SessionStarted)
        self._working -= isinstance(envelope.event, session.SessionExited)
        self.outcome.closed += sum(step.entered is task.State.CLOSED for step in outcome.transitions)

    def _look(self) -> None:
        of_board = len(self._arrived.get(BOARD, ()))
        at_ms = self._agenda.now_ms - START_MS
        self.outcome.moments.append(
            Moment(at_ms, self._waiting, of_board, self._working, self.outcome.closed, self.outcome.inputs)
        )


def plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan without dependencies, so that each agent always has a task. Its work is verified."""
    return fleet.Plan(
        f"{agents}x{tasks}",
        tuple(fleet.AgentPlan(f"agent-{number}") for number in range(1, agents + 1)),
        tuple(
            fleet.TaskPlan(f"T{number}", f"do task {number}", (("make", "check"),)) for number in range(1, tasks + 1)
        ),
    )


def _sessions(load: Load) -> Any:
    """Return the script of sessions: each has a length of its own, by the seed, its agent and its number."""

    def script(aggregate: Aggregate, entity: Entity[Any], activity: Activity, _choices: Choices) -> Iterator[Said]:
        assert isinstance(activity, RunSession)
        running = entity.find(RunSession.__name__)
        assert running is not None
        drawn = random.Random(f"{load.seed} {aggregate.name} {running.generation}").random()  # noqa: S311 - no secret
        yield Said(0, session.SessionStarted(activity.session_seq))
        yield Said(int(load.session_ms * (0.5 + drawn)), session.SessionExited(session.Success()))

    return script
