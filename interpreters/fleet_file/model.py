"""A fleet of a fleet file, with all defaults: the plan for the core, and the settings for the runner."""

from pathlib import Path

import msgspec

from lifefold.core.fleet import AgentPlan, Budget, Caps, GatePlan, Plan, Preemption, ServicePlan, Talks, TaskPlan
from lifefold.core.fleet.worker import question, stall_detector
from lifefold.core.lifecycles import process, session
from lifefold.core.lifecycles.task import OnDeath
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.core.policy.retry import RetryPolicy
from lifefold.effects.service import Source
from lifefold.interpreters.adapters import Permissions, adapter_of, steers
from lifefold.interpreters.adapters.prices import Price
from lifefold.interpreters.fleet_file.budget import with_time
from lifefold.interpreters.fleet_file.cluster import ClusterPlan
from lifefold.interpreters.fleet_file.notify import Notifier

DEFAULT_LEASE_MS = 60_000
DEFAULT_VERIFY_TIMEOUT_MS = 600_000
DEFAULT_OUTPUT_LIMIT_BYTES = 10_000_000


class AgentProgram(msgspec.Struct, frozen=True):
    """The program of an agent whose ``kind`` is an ``adapter``; ``path`` is the key ``program`` of the file."""

    adapter: str
    model: str = ""
    permissions: Permissions = Permissions.DEFAULT
    arguments: tuple[str, ...] = ()
    path: str = ""


class Agent(msgspec.Struct, frozen=True):
    """One agent; a ``count`` in the file makes several.

    ``command`` is for ``expand``, ``written_command`` is that of the file. An agent of kind ``python`` has a ``target``
    instead, with its place in the file in ``target_place``. That of an agent with a ``program`` has one word, the
    program; its adapter makes the arguments. ``env_pass`` names further variables of the runner that the
    agent gets, and ``env`` adds variables; both include those of the fleet. ``output_limit_bytes`` is for each session,
    on disk. Without ``stall`` its sessions have no stall detector. ``adaptive``: the time-out of a session depends on
    the times of others, and its limits have the longest. Agents of one ``account`` rest together at its limits.
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
    program: AgentProgram | None = None
    account: str = ""


class Service(msgspec.Struct, frozen=True):
    """One service. ``command`` is for ``expand``; without a ``directory`` it runs in the repository.

    ``limits`` are those of its life; of ``runs`` only grace and time-out count. Other fields are as in ``Agent``.
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
    """An interpreter before the standard one: the name of an entry point, or ``module:attribute``.

    ``kinds`` names the effects and activities that it is used for; empty for all with a handler. ``options`` are the
    arguments of its factory. ``places`` has the place of each key in the file, for errors found later.
    """

    use: str
    kinds: tuple[str, ...] = ()
    options: dict[str, object] = msgspec.field(default_factory=dict[str, object])
    places: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        """Its name among the interpreters of the file."""
        return f"{self.use} for {', '.join(self.kinds)}" if self.kinds else self.use


class Fleet(msgspec.Struct, frozen=True):
    """A fleet. ``source`` is its file, ``repository`` None for plain folders; both paths are absolute.

    ``watch``: the fleet waits for more tasks; this is an option of the run, not of the file. Without ``gates`` trust
    does not count, without ``preemption`` no task is preempted, and without ``aborts`` none is aborted. ``orphaned`` is
    the outcome after the death of a session, unless the task has its own. ``anew``: a retry begins a new conversation.
    Without ``questions`` no agent can ask. ``to_branch``: verified work stays on a branch of its task.

    ``env`` and ``env_pass`` are for all processes, verification commands included. ``redact`` names further secrets.

    ``cluster`` says where the fleet runs, if not on this machine; it is no part of the plan.

    ``prices`` turn the tokens of agent programs into money. ``notify`` are the notifiers that tell people.

    ``meaning`` is the content of the file as JSON, the same for files with the same meaning. It has no environment
    variables and no prices, and the options of interpreters only as digests.
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
    questions: question.Terms | None = None
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    env_pass: tuple[str, ...] = ()
    redact: tuple[str, ...] = ()
    anew: bool = False
    prices: dict[str, Price] = msgspec.field(default_factory=dict[str, Price])
    notify: tuple[Notifier, ...] = ()
    to_branch: bool = False
    cluster: ClusterPlan = ClusterPlan()

    def place_of(self, service: Service) -> Path:
        """Return the folder in which a service runs."""
        return service.directory or self.repository or self.source.parent

    def named(self, name: str) -> Agent | Service | None:
        """Return the agent or service of a name; None for one that the file does not have, or no longer has."""
        ours: tuple[Agent | Service, ...] = (*self.agents, *self.services)
        return next((each for each in ours if each.name == name), None)

    @property
    def plan(self) -> Plan:
        """Return the plan with which the core opens the fleet."""
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
                talks=_talks(each.program),
                account=each.account,
                follows=True,
                steers=each.program is not None and steers(adapter_of(each.program.adapter)),
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
            anew=self.anew,
            questions=self.questions,
            notify=tuple(each.plan for each in self.notify),
            to_branch=self.to_branch,
        )

    def grace_ms(self, agent: Agent) -> int:
        """Return the longest time that a session of an agent may take to end."""
        return max(agent.limits.grace_ms, self.preemption.within_ms if self.preemption is not None else 0)


def _talks(program: AgentProgram | None) -> Talks | None:
    """Return what an agent program can do with conversations; None for a command, which keeps none."""
    if program is None:
        return None
    adapter = adapter_of(program.adapter)
    return Talks(adapter.chooses_conversation, adapter.resumable) if adapter.resumable else None


def model_of(known: Agent | Service | None) -> str:
    """Return the model of an agent's program; empty if it has none."""
    return known.program.model if isinstance(known, Agent) and known.program is not None else ""
