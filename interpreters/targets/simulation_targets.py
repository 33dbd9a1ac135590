"""The targets of simulations by name: every shipped lifecycle and system, and machines and systems of other modules.

The names are those of ``check``. The fleets are larger than those of ``check``, and have an environment. Sessions take
minutes, and a process ends when it is asked to.

- ``fleet-20x200`` has twenty agents and two hundred tasks, and so on for other sizes;
- ``fleet-governed``, or ``fleet-governed-20x200``, has approvals; in ``fleet-trusted`` agents earn trust, too;
- ``fleet-limited`` has budgets, and in ``fleet-renewed`` they are refilled;
- in ``fleet-stalling`` sessions are watched, and some fall silent;
- in ``fleet-asking`` sessions ask operators, too;
- in ``fleet-telling`` people are told what waits and what has happened, with approvals, budgets, accounts and services;
- in ``fleet-turns`` the output of sessions is followed, and tells of tools and compactions;
- in ``fleet-steering`` running sessions take messages of operators, early, late or never;
- in ``fleet-restarts`` agents that stop by their errors are restarted;
- in ``fleet-orphans`` the work of dead sessions is verified;
- in ``fleet-preempting`` tasks preempt others of lower priority;
- in ``fleet-quota`` agents share accounts, and sessions meet their limits;
- in ``fleet-aborts`` tools, tasks and whole families are aborted;
- in ``fleet-talking`` agents have conversations, and money is limited;
- in ``fleet-messages`` operators send messages to tasks at any time;
- ``fleet-serving`` has services, and ``fleet-mixed`` has all of these at once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from lifefold.core import fleet
from lifefold.core.fleet.dispatch import task_messages
from lifefold.core.fleet.service import trigger
from lifefold.core.fleet.worker import conversation, mailbox, output, question, stall_detector, steering
from lifefold.core.kernel import Aggregate, Created, Entity, Envelope, Event, Machine, System
from lifefold.core.lifecycles.session_limits import LimitReached
from lifefold.effects import (
    Activity,
    AwaitTrigger,
    CancelSession,
    CheckOutWork,
    DeliverNotification,
    Every,
    FollowOutput,
    InspectWork,
    MergeWork,
    ParkWork,
    PrepareWorktree,
    RunSession,
    VerifyWork,
    WatchOutput,
)
from lifefold.interpreters.simulate.choices import Choices
from lifefold.interpreters.simulate.environment import Environment, Said
from lifefold.interpreters.simulate.inputs import Opening
from lifefold.interpreters.targets import check_targets
from lifefold.interpreters.targets.fleet_plans import KINDS, MINUTE_MS, SECOND_MS, plan
from lifefold.interpreters.targets.target import Target, UnusableTarget

__all__ = ["ALONE", "FLEET", "fleet_of", "named", "plan", "target"]

MOST_AGENTS: Final = 9_999
MOST_TASKS: Final = 99_999
"""The most tasks of a fleet."""


def watched(aggregate: Aggregate, entity: Entity[Any], activity: Activity, choices: Choices) -> Iterator[Said]:
    """Yield the reports of a watched session: none if it makes progress, else its silence.

    One silence in four ends by itself after a step of the ladder, and another one may follow. A silence that ends with
    the nudge was answered; the session then makes progress or not.
    """
    assert isinstance(activity, WatchOutput)  # noqa: S101 - it is the script of that
    running = entity.find(WatchOutput.__name__)
    assert running is not None  # noqa: S101 - as it begins now
    name = (aggregate.name, entity.ref, WatchOutput.__name__, running.generation)
    for place in range(_SILENCES):
        steps = choices.way(("falls silent", *name, place), len(activity.steps_ms) + 1, 0.4)
        moves_ms = choices.any_way(("moves", *name, place), 4) * 2 * MINUTE_MS
        for taken, silent_ms in enumerate(activity.steps_ms[:steps]):
            before_ms = activity.steps_ms[taken - 1] if taken else -moves_ms
            yield Said(silent_ms - before_ms, stall_detector.Silent(silent_ms))
        if steps:
            yield Said(SECOND_MS, stall_detector.Stirred())
        if steps == _NUDGE and steps < len(activity.steps_ms):
            answer_ms = activity.steps_ms[steps] - activity.steps_ms[steps - 1]
            hangs_on = choices.way(("hangs on", *name, place), 2, 0.5)
            yield Said(answer_ms, stall_detector.Silent(answer_ms) if hangs_on else stall_detector.Stirred(answer_ms))


def followed(aggregate: Aggregate, entity: Entity[Any], activity: Activity, choices: Choices) -> Iterator[Said]:
    """Yield the facts in the output of a session, in any order, every few seconds; some are told twice.

    They are tools, compactions, refusals and the name of the conversation, and seldom a limit of the account. A fact
    that is told twice has its position again, as after a restart of the runner that reads the output. Its second time
    may come after the next fact. The fact of a torn line is told never, and the next one has the position after it.
    """
    assert isinstance(activity, FollowOutput)  # noqa: S101 - it is the script of that
    running = entity.find(FollowOutput.__name__)
    assert running is not None  # noqa: S101 - as it begins now
    name = (aggregate.name, entity.ref, FollowOutput.__name__, running.generation)
    tool, compaction = output.Doing(output.Work.TOOL, "Bash"), output.Doing(output.Work.COMPACTION)
    known = aggregate.entities.get(conversation.REF)
    talks_as = (known.record.id if known is not None else "") or f"C{running.generation}"
    late: Event | None = None
    for place in range(_FACTS):
        position: int = entity.record.position + place + 1
        facts: tuple[output.Seen, ...] = (
            output.WorkSeen(position, (tool,), 1),
            output.WorkSeen(position),
            output.WorkSeen(position, (compaction,), 0, 1),
            output.WorkSeen(position, (), 2),
            output.PermissionDenied(position, str(place), "Bash"),
            output.PermissionWanted(position, str(place), "Bash"),
            output.ConversationSeen(position, talks_as),
        )
        slow = choices.any_way(("takes its time", *name, place), 4)
        said: Event = facts[choices.any_way(("does", *name, place), len(facts))]
        if choices.way(("tells of a limit", *name, place), 2, _SELDOM):
            said = output.LimitSeen(position)
        if steering.REF in aggregate.entities and (number := choices.any_way(("takes", *name, place), _MESSAGES)):
            said = output.MessageTaken(position, number)
        if choices.way(("tears a line", *name, place), 2, _SELDOM):
            continue
        yield Said((1 + slow * 20) * SECOND_MS, said)
        if late is not None:
            yield Said(SECOND_MS, late)
        late = said if choices.way(("tells it late", *name, place), 2, _SELDOM) else None
        if choices.way(("tells it twice", *name, place), 2, _SELDOM):
            yield Said(SECOND_MS, said)


_FACTS: Final = 8
"""The most facts of a session in a simulation."""

_MESSAGES: Final = 4
"""The numbers of messages that a session may say to have taken, in a simulation: none, and up to three."""

_SELDOM: Final = 0.05
"""The rate of limits among the facts, and of facts that are told twice."""


def task_mailboxes(aggregate: Aggregate) -> Iterator[Envelope]:
    """Yield the mailboxes that a message for a task creates: one for each task without a mailbox, in any state."""
    for ref in sorted(aggregate.entities):
        kind, _, name = ref.partition(":")
        box = f"{task_messages.MAILBOX}{name}"
        if kind == "task" and box not in aggregate.entities:
            yield Envelope(box, Created(mailbox.Mailbox()), 0)


def triggered(aggregate: Aggregate, entity: Entity[Any], activity: Activity, choices: Choices) -> Iterator[Said]:
    """Yield the reports of a trigger: that it fires, again and again, sooner or later."""
    assert isinstance(activity, AwaitTrigger)  # noqa: S101 - it is the script of that
    running = entity.find(AwaitTrigger.__name__)
    assert running is not None  # noqa: S101 - as it begins now
    name = (aggregate.name, entity.ref, AwaitTrigger.__name__, running.generation)
    for place in range(_TRIGGERS):
        late = choices.any_way(("comes late", *name, place), 4)
        every_ms = activity.source.every_ms if isinstance(activity.source, Every) else MINUTE_MS
        yield Said(every_ms + late * 10 * SECOND_MS, trigger.Triggered())


_TRIGGERS: Final = 20
"""The most firings of a trigger in a simulation, while its service runs."""

_NUDGE: Final = 2
"""The index of the nudge in the ladder, if there is one."""

_SILENCES: Final = 3
"""The most silences of a session in a simulation."""


FLEET: Final = Environment(
    durations_ms={
        PrepareWorktree: (200, 5 * SECOND_MS),
        CheckOutWork: (100, 2 * SECOND_MS),
        RunSession: (2 * SECOND_MS, 20 * MINUTE_MS),
        InspectWork: (100, 2 * SECOND_MS),
        VerifyWork: (SECOND_MS, 5 * MINUTE_MS),
        ParkWork: (100, 5 * SECOND_MS),
        MergeWork: (100, 5 * SECOND_MS),
        DeliverNotification: (50, 10 * SECOND_MS),
    },
    scripts={WatchOutput: watched, FollowOutput: followed, AwaitTrigger: triggered},
    unusual=(LimitReached,),
    hastens={CancelSession: (RunSession,)},
    fenced=(RunSession,),
    operators_ms=(5 * SECOND_MS, 30 * MINUTE_MS),
)
"""The environment of a fleet: sessions take minutes, tests less, git takes seconds."""

_AROUND: Final[Mapping[str, Environment]] = {
    "asking-": msgspec.structs.replace(FLEET, keen=(question.QuestionAnswered, question.QuestionAsked)),
    "messages-": msgspec.structs.replace(FLEET, creates=task_mailboxes, keen=(mailbox.OperatorMessageArrived, Created)),
    "steering-": msgspec.structs.replace(FLEET, keen=(mailbox.OperatorMessageArrived,)),
    "mixed-": msgspec.structs.replace(
        FLEET,
        creates=task_mailboxes,
        keen=(question.QuestionAnswered, question.QuestionAsked, mailbox.OperatorMessageArrived, Created),
    ),
}
"""The environments of fleets whose sessions ask operators, or whose operators write to tasks; others have ``FLEET``."""


ALONE: Final = Environment(
    operators_ms=(SECOND_MS, 10 * MINUTE_MS), parts=(64, 64, 16, 16, 4, 4, 1), rates={"operators": 0.6}
)
"""The environment of a machine by itself: most inputs are operator commands, and many come soon."""


def fleet_of(agents: int, tasks: int, name: str = "", *, kind: str = "") -> Target:
    """Return a fleet of so many agents with a plan of so many tasks, of this kind."""
    sizes = [(a, t) for a, t in _SIZES if a <= agents and t <= tasks and (a, t) != (agents, tasks)]
    smaller = tuple(f"fleet-{kind}{a}x{t}" for a, t in sizes)
    opening = tuple(fleet.opening(KINDS[kind](agents, tasks), 0))
    name = name or f"fleet-{kind}{agents}x{tasks}"
    return Target(name, fleet.system, opening, environment=_AROUND.get(kind, FLEET), smaller=smaller)


_SIZES: Final = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (2, 3), (3, 3))
"""The sizes of fleets, in agents and tasks, in which findings of larger ones are shrunk, first to last."""


def named(name: str) -> Target:
    """Return the target of a name, or of ``module:attribute``. Raises ``UnusableTarget``."""
    sized = re.fullmatch(rf"fleet-({'|'.join(KINDS)})(\d{{1,9}})x(\d{{1,9}})", name)
    if sized is not None:
        agents, tasks = int(sized[2]), int(sized[3])
        if not (1 <= agents <= MOST_AGENTS and 1 <= tasks <= MOST_TASKS):
            raise UnusableTarget(f"{name}: a fleet has 1 to {MOST_AGENTS} agents and 1 to {MOST_TASKS} tasks here")
        return fleet_of(agents, tasks, kind=sized[1])
    if name == "fleet":
        return fleet_of(3, 9, name)
    if f"{name.removeprefix('fleet-')}-" in KINDS:
        return fleet_of(3, 9, kind=f"{name.removeprefix('fleet-')}-")
    found = check_targets.named(name)
    return msgspec.structs.replace(found, environment=_around(found.subject))


def target(
    subject: Machine[Any] | System,
    opening: Opening = (),
    *,
    environment: Environment | None = None,
    name: str = "",
    smaller: Iterable[Target] = (),
) -> Target:
    """Return a machine, or a system with its opening, of another module as a target."""
    return Target(
        name or subject.name,
        subject,
        tuple(opening),
        environment=environment or _around(subject),
        smaller=tuple(smaller),
    )


def _around(subject: Machine[Any] | System) -> Environment:
    return ALONE if isinstance(subject, Machine) else Environment()
