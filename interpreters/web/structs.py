"""The contents of pages, which programs get as JSON: one struct a page, and the parts that pages share.

Times are Unix time in milliseconds. ``seq`` is a position of the log. Facts from outside the log (runners, processes,
files) exist only for the present: they are null or empty in the past.
"""

from typing import Any

import msgspec

from lifefold.interpreters.desk.output_lines import OutputLine
from lifefold.interpreters.desk.verifications import Verification
from lifefold.interpreters.explain.accounts import Balance
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.explain.why import Explanation
from lifefold.interpreters.fleet_runner.agent_looks import Looks
from lifefold.interpreters.fleet_runner.hosts import HostStatus
from lifefold.interpreters.fleet_runner.process_evidence import Evidence
from lifefold.interpreters.web.journal import Line, Told


class At(msgspec.Struct, frozen=True):
    """Which moment of which fleet a page shows. ``newest`` is the last position that is known.

    ``runner`` is ``at work``, ``gone``, ``over``, or ``unknown`` in the past. ``trouble`` says why the log cannot be
    read on; it is empty while it can. ``is_told``: the past is known, too, and not only the present by a snapshot.
    ``told_from`` is the position before the first entry of the past that is known.
    """

    key: str
    fleet: str
    log: str
    seq: int
    newest: int
    at_ms: int
    is_now: bool
    runner: str
    trouble: str = ""
    is_told: bool = True
    told_from: int = 0


class Action(msgspec.Struct, frozen=True):
    """A command that an operator can give here. ``command`` is the body of the request.

    ``asks`` names the field of the command that the operator fills in, such as ``reason``; it is empty if none.
    ``proposed`` is a value for it.
    """

    label: str
    command: dict[str, Any]
    about: str = ""
    asks: str = ""
    is_optional: bool = True
    proposed: str = ""


class Wait(msgspec.Struct, frozen=True):
    """Something that waits for an operator: the sentence of ``lifefold status``, and the commands that help.

    ``said`` is that sentence without the command of the command line.
    """

    about: str
    names: tuple[str, ...]
    sentence: str
    said: str
    since_ms: int
    until_ms: int
    actions: tuple[Action, ...]


class Cost(msgspec.Struct, frozen=True):
    """Known costs; null for what no session has reported. ``words`` is for people, and empty without costs."""

    cost_usd: float | None
    input_tokens: int | None
    output_tokens: int | None
    words: str


class Agent(msgspec.Struct, frozen=True):
    """An agent or a service: its desired state, its state in the log, and the evidence of its process.

    ``asked``, ``believed`` and ``evident`` are these three in words. ``next`` is its next timer in words.
    """

    status: AgentStatus
    asked: str
    believed: str
    evident: str
    looks: Looks | None
    process: Evidence | None
    is_missing: bool
    next: str
    stopped_by: str
    cost: Cost


class Task(msgspec.Struct, frozen=True):
    """A task on the board, with its state in the words of the screens, its known costs, and the commands that help."""

    status: TaskStatus
    words: str
    cost: Cost
    next: str
    actions: tuple[Action, ...]


class PlanChange(msgspec.Struct, frozen=True):
    """The difference of the fleet file to the plan in force, as ``lifefold plan`` shows it, which waits for acceptance.

    ``obstacles`` say which parts are not possible; ``actions`` is then empty, or accepts the other parts. ``problem``
    says why the fleet file cannot be read.
    """

    source: str
    number: int
    lines: tuple[str, ...]
    obstacles: tuple[str, ...]
    problem: str
    actions: tuple[Action, ...]


class FleetPage(msgspec.Struct, frozen=True):
    """A fleet: what waits first, what is in the way, failed tasks, counts by state, agents, costs, budgets.

    ``words`` are the counts of the tasks that are not closed, as ``lifefold status`` has them. ``releases`` end the
    quarantines that the ``troubles`` name. ``hosts`` are empty for a fleet on one machine.
    """

    at: At
    is_over: bool
    waits: tuple[Wait, ...]
    change: PlanChange | None
    troubles: tuple[str, ...]
    releases: tuple[Action, ...]
    failed: tuple[Task, ...]
    counts: dict[str, int]
    words: str
    closed: int
    total: int
    agents: tuple[Agent, ...]
    balances: tuple[Balance, ...]
    cost: Cost
    story: tuple[Told, ...]
    hosts: tuple[HostStatus, ...] = ()


class Overview(msgspec.Struct, frozen=True):
    """All fleets that this program serves."""

    fleets: tuple[FleetPage, ...]


class Column(msgspec.Struct, frozen=True):
    """The tasks of one state, with the words of the screens for it. ``hidden`` counts those that are not listed."""

    state: str
    words: str
    tasks: tuple[Task, ...]
    hidden: int


class BoardPage(msgspec.Struct, frozen=True):
    """The board: a column a state. ``evidence`` has the age of the last sign of life of an agent at work, in words.

    ``waits_for`` has, for each task on a card, the tasks that it waits for, with their states.
    """

    at: At
    columns: tuple[Column, ...]
    evidence: dict[str, str]
    waits_for: dict[str, dict[str, str]]


class Mark(msgspec.Struct, frozen=True):
    """The present state of a machine of an agent or of a task; ``picture`` is the name of its picture."""

    machine: str
    picture: str
    state: str
    since_ms: int


class PastSession(msgspec.Struct, frozen=True):
    """A session of an agent: its turn (0 without turns), its task, attempt and claim, its time, its end, its cost.

    ``to_ms`` is 0 and ``ended`` is empty while it goes on. ``became`` is how its claim ended, empty until then.
    """

    number: int
    turn: int
    task: str
    attempt: int
    claim: int
    from_ms: int
    to_ms: int
    ended: str
    became: str
    cost: Cost


class AgentPage(msgspec.Struct, frozen=True):
    """An agent: desired state, belief and evidence; its lifecycles; its turns; its output; its conversation; its cost.

    ``session`` is the number of the session whose ``prompt`` and ``printed`` output are shown, of the ``sessions``.
    ``not_printed`` says why there is no output. ``past`` has the latest sessions, the latest first, and ``earlier``
    counts the ones before them.
    """

    at: At
    agent: Agent
    marks: tuple[Mark, ...]
    balances: tuple[Balance, ...]
    waits: tuple[Wait, ...]
    actions: tuple[Action, ...]
    sessions: tuple[int, ...]
    session: int
    prompt: str
    printed: tuple[OutputLine, ...]
    is_cut: bool
    not_printed: str
    past: tuple[PastSession, ...]
    earlier: int
    lines: tuple[Line, ...]


class Diff(msgspec.Struct, frozen=True):
    """What a task has changed. ``about`` says what is compared; ``is_cut``: only the beginning is shown."""

    about: str
    text: str
    is_cut: bool


class Claim(msgspec.Struct, frozen=True):
    """One claim of a task: its agent, its time, and how it ended in words; empty while it goes on.

    ``attempt`` is the number of the attempt at the task that it belongs to.
    """

    number: int
    agent: str
    from_ms: int
    to_ms: int
    ended: str
    attempt: int


class TaskForm(msgspec.Struct, frozen=True):
    """What an operator can edit of a task, as it is now. ``seen`` names these values in the command ``edit``.

    ``verify`` are command lines. A text with a secret is left out. ``budgets`` has the limits of its own budget, each
    with its balance in words: a task without one gets none.
    """

    seen: str
    prompt: str
    verify: tuple[str, ...]
    priority: int
    max_retries: int
    budgets: dict[str, str]


class TaskPage(msgspec.Struct, frozen=True):
    """A task: ``why`` it is in its state, the commands that help, its claims, its verification, its cost.

    ``form`` is null for a task that cannot be edited.
    """

    at: At
    task: Task
    prompt: str
    why: Explanation
    marks: tuple[Mark, ...]
    doubts: tuple[str, ...]
    waits: tuple[Wait, ...]
    actions: tuple[Action, ...]
    form: TaskForm | None
    claims: tuple[Claim, ...]
    verifications: tuple[Verification, ...]
    lines: tuple[Line, ...]


class DiffPage(msgspec.Struct, frozen=True):
    """The work of a task: what it has changed, and the outputs of its verification.

    ``diff`` is null if there is no work to compare; ``why_not`` then says why. ``waits`` is its approval, if it waits.
    ``attempts`` counts the attempts. ``attempt`` is the one that is shown, and ``since`` the one that it is compared
    with; 0 is the work of the moment, and its base.
    """

    at: At
    task: str
    waits: tuple[Wait, ...]
    diff: Diff | None
    why_not: str
    verifications: tuple[Verification, ...]
    attempts: int = 0
    attempt: int = 0
    since: int = 0


class LogPage(msgspec.Struct, frozen=True):
    """The story of a log, or with ``is_all`` its transitions, the latest first.

    ``before`` is the position of the next older page; 0 if there is none.
    """

    at: At
    is_all: bool
    story: tuple[Told, ...]
    lines: tuple[Line, ...]
    before: int


class Span(msgspec.Struct, frozen=True):
    """A time in one state, in one lane. ``words`` names what went on; ``seq`` is the position at which it began.

    ``Idle`` is no state of a machine: the agent is prepared, and has no task.
    """

    from_ms: int
    to_ms: int
    state: str
    words: str
    seq: int


class Lane(msgspec.Struct, frozen=True):
    """The states of one agent or one task over time."""

    kind: str
    name: str
    spans: tuple[Span, ...]


class TimelinePage(msgspec.Struct, frozen=True):
    """A lane for each agent and each task, from one time to another. ``idle`` has the gaps that are drawn short."""

    at: At
    from_ms: int
    to_ms: int
    lanes: tuple[Lane, ...]
    hidden: int
    idle: tuple[tuple[int, int], ...]


class Problem(msgspec.Struct, frozen=True):
    """Why a request was not answered."""

    error: str
