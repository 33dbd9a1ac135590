"""A fleet as its file describes it, with every default filled in: what the core plans with, and what a runner needs."""

from hashlib import blake2b
from pathlib import Path

import msgspec

from lifefold.core.fleet import AgentPlan, Budget, Caps, GatePlan, Plan, Preemption, ServicePlan, TaskPlan
from lifefold.core.fleet.worker import stall_detector
from lifefold.core.lifecycles import process, session
from lifefold.core.lifecycles.task import OnDeath
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.core.policy.retry import RetryPolicy
from lifefold.effects.service import Source
from lifefold.interpreters.fleet_file.budget import with_time

DEFAULT_LEASE_MS = 60_000
DEFAULT_VERIFY_TIMEOUT_MS = 600_000
DEFAULT_OUTPUT_LIMIT_BYTES = 10_000_000


class Agent(msgspec.Struct, frozen=True):
    """One agent, of those that a ``count`` makes several of.

    ``command`` is to be given to ``expand``, ``written_command`` is as the file has it; one of kind ``python`` has a
    ``target`` there instead, which ``target_place`` says where it stands. ``env_pass`` names what it gets of the
    runner's environment besides the usual, ``env`` is added to that; both have what the fleet's say.
    ``output_limit_bytes`` is for each session, on disk. Without ``stall`` nobody watches whether its sessions move.
    ``adaptive``: how long they may take depends on how long others took; its limits have the most.
    """

    name: str
    command: tuple[str, ...]
    written_command: tuple[str, ...]
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    limits: session.Limits = session.Limits()
    output_limit_bytes: int = DEFAULT_OUTPUT_LIMIT_BYTES
    target: str = ""
    target_place: str = ""
    roles: tuple[str, ...] = ()
    trust: AccessLevel = AccessLevel.UNTRUSTED
    caps: Caps = Caps()
    stall: stall_detector.Limits | None = None
    restart: Restart = Restart()
    adaptive: bool = False
    env_pass: tuple[str, ...] = ()


class Service(msgspec.Struct, frozen=True):
    """One service. ``command`` is to be given to ``expand``; without a ``directory`` it runs in the repository.

    ``limits`` are those of its life; of ``runs`` only the grace and the time-out count. The rest is as in ``Agent``.
    """

    name: str
    command: tuple[str, ...] = ()
    written_command: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    limits: process.Limits = process.Limits()
    runs: session.Limits = session.Limits()
    triggers: tuple[Source, ...] = ()
    takes_messages: bool = False
    directory: Path | None = None
    written_directory: str = ""
    output_limit_bytes: int = DEFAULT_OUTPUT_LIMIT_BYTES
    env_pass: tuple[str, ...] = ()


class InterpreterEntry(msgspec.Struct, frozen=True):
    """An interpreter that goes before the standard one: an entry point's name, or ``module:attribute``.

    ``kinds`` names the effects and activities that it is used for; empty, for all that it has handlers for. ``options``
    are what it is made with. ``places`` says where each key stands, for what is found out about its value only later.
    """

    use: str
    kinds: tuple[str, ...] = ()
    options: dict[str, object] = msgspec.field(default_factory=dict[str, object])
    places: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        """What tells it from others in the same file."""
        return f"{self.use} for {', '.join(self.kinds)}" if self.kinds else self.use


class Fleet(msgspec.Struct, frozen=True):
    """A fleet. ``source`` is the file, ``repository`` None for plain folders; both paths are absolute.

    One that is to ``watch`` waits for more tasks; the file does not say so, whoever runs it does. Without ``gates``
    trust does not count, without ``preemption`` no task makes room for another one, and without ``aborts`` there
    are none. ``orphaned`` is what becomes of a task whose session dies, unless the task says it itself.

    ``env`` and ``env_pass`` are for all its processes, verification commands among them. ``redact`` names variables
    that are secrets although they are not called so.

    ``meaning`` is all that the file says, as JSON, and the same for two files that mean the same; environment variables
    are not in it, and the options of interpreters only as digests. ``fingerprint`` is its digest.
    """

    name: str
    repository: Path | None
    lease_ms: int
    verify_timeout_ms: int
    source: Path
    approve_plan: bool
    approval_ms: int
    retry: RetryPolicy
    budget: Budget = Budget()
    restarts: Intensity | None = None
    preemption: Preemption | None = None
    agents: tuple[Agent, ...] = ()
    tasks: tuple[TaskPlan, ...] = ()
    interpreters: tuple[InterpreterEntry, ...] = ()
    watch: bool = False
    gates: GatePlan | None = None
    orphaned: OnDeath = OnDeath.FAIL
    warnings: tuple[str, ...] = ()
    meaning: str = ""
    services: tuple[Service, ...] = ()
    aborts: AbortPolicy | None = None
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    env_pass: tuple[str, ...] = ()
    redact: tuple[str, ...] = ()

    def place_of(self, service: Service) -> Path:
        """Return the folder that a service runs in."""
        return service.directory or self.repository or self.source.parent

    @property
    def fingerprint(self) -> str:
        """Return 32 hexadecimal digits that are the same for files that mean the same."""
        return blake2b(self.meaning.encode(), digest_size=16).hexdigest()

    def named(self, name: str) -> Agent | Service:
        """Return the agent or service of a name. Raises ``KeyError`` if there is none."""
        ours: tuple[Agent | Service, ...] = (*self.agents, *self.services)
        return {each.name: each for each in ours}[name]

    @property
    def plan(self) -> Plan:
        """Return what the core needs to open the fleet."""
        agents = tuple(
            AgentPlan(
                each.name,
                each.limits,
                self.verify_timeout_ms,
                each.roles,
                each.trust,
                each.caps,
                each.stall,
                each.restart,
                each.adaptive,
            )
            for each in self.agents
        )
        return Plan(
            self.name,
            agents,
            self.tasks,
            self.approve_plan,
            self.approval_ms,
            self.watch,
            self.retry,
            self.gates,
            with_time(self.budget, [each.limits for each in self.agents]),
            self.restarts,
            self.preemption,
            tuple(
                ServicePlan(each.name, each.limits, each.runs, each.triggers, each.takes_messages)
                for each in self.services
            ),
            self.orphaned,
            self.aborts,
            guarded=self.repository is not None,
        )

    def grace_ms(self, agent: Agent) -> int:
        """Return the longest that a session of an agent may take to end when it is asked to."""
        return max(agent.limits.grace_ms, self.preemption.within_ms if self.preemption is not None else 0)
