"""What the running session of an agent does, as its output tells: tools, compactions, permissions, limits.

The activity ``FollowOutput`` lasts while the session runs. It reads the output through the adapter of the agent program
and reports facts. ``WorkSeen`` is a snapshot: the works under way, and how many have begun since the last one. So a
tool that begins and ends between two looks costs one report, and a lost end of a tool cannot stay for ever. All other
facts are reported one by one.

*Each fact has a position*, which grows with the output. A restarted runner reads the output from its beginning, and a
fact that is not beyond the last position is refused. So each fact counts once.

A fact decides nothing here. ``turns`` lets the turn follow the works; ``output_receivers`` hands on the rest.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar, Final, Never, Self

import msgspec

from lifefold.core.kernel import (
    STAY,
    Aggregate,
    Dispatch,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    accepts,
    always,
    always_step,
    anywhere,
    does,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles import session, turn
from lifefold.core.lifecycles.property_forms import asks_once, goes_on, leads_where
from lifefold.effects import FollowOutput

REF: Final = "output"

MOST_WORKS: Final = 16
"""The most works under way that a report names."""


class Work(StrEnum):
    """What an agent does for some time."""

    TOOL = "tool"
    COMPACTION = "compaction"
    """It shortens its own context."""


PHASES: Final = {Work.TOOL: turn.State.TOOL_USE, Work.COMPACTION: turn.State.COMPACTING}
"""The phase of document 004's turn while an agent does that work."""


class State(AnyLifecycleState):
    """The two states of an output: a session runs and is followed, or none does."""

    UNFOLLOWED = "Unfollowed"
    FOLLOWED = "Followed"


class Doing(msgspec.Struct, frozen=True):
    """A work under way; ``name`` is the tool's."""

    opaque: ClassVar[tuple[str, ...]] = ("name",)

    work: Work = Work.TOOL
    name: str = ""


class SessionRuns(Event, frozen=True):
    """A session runs, and its output is followed from now on."""


class SessionOver(Event, frozen=True):
    """The followed session no longer runs, or is being interrupted."""


class Seen(Event, frozen=True):
    """Base of facts. ``position`` is the offset of the fact's line in the output, with the number of the fact in it."""

    example: ClassVar[tuple[str, ...]] = ()
    """Its other fields, for an example."""

    position: int = 1

    @classmethod
    def examples_for(cls, record: Any) -> tuple[Self, ...]:
        """Return a new fact, and an old one."""
        return cls(record.position + 1, *cls.example), cls(record.position)


class WorkSeen(Seen, frozen=True):
    """The works that are under way, and the numbers of ``tools`` and ``compactions`` begun since the last report."""

    works: tuple[Doing, ...] = ()
    tools: int = 0
    compactions: int = 0

    @classmethod
    def examples_for(cls, record: Any) -> tuple[Self, ...]:
        """Return each kind of work, both at once, a tool that is over already, nothing, and an old report."""
        new, tool, compaction = record.position + 1, Doing(), Doing(Work.COMPACTION)
        return (
            cls(new),
            cls(new, (tool,), 1),
            cls(new, (compaction,), 0, 1),
            cls(new, (tool, compaction), 1, 1),
            cls(new, (), 1),
            cls(record.position, (tool,), 1),
        )


class PermissionWanted(Seen, frozen=True):
    """The agent asks for leave to use a tool, and waits for the answer."""

    opaque: ClassVar[tuple[str, ...]] = ("id", "tool", "question")
    example: ClassVar[tuple[str, ...]] = ("1", "Bash")

    id: str = ""
    tool: str = ""
    question: str = ""


class PermissionDenied(Seen, frozen=True):
    """The agent may not use a tool, and goes on without it."""

    opaque: ClassVar[tuple[str, ...]] = ("id", "tool", "reason")
    example: ClassVar[tuple[str, ...]] = ("1", "Bash")

    id: str = ""
    tool: str = ""
    reason: str = ""


class LimitSeen(Seen, frozen=True):
    """The account may not be used before ``until_ms``, Unix time in milliseconds; None if the time is not told."""

    opaque: ClassVar[tuple[str, ...]] = ("scope", "message")

    until_ms: int | None = None
    scope: str = ""
    message: str = ""


class ConversationSeen(Seen, frozen=True):
    """The agent names its conversation; a session that resumes one names it, too."""

    opaque: ClassVar[tuple[str, ...]] = ("id",)
    example: ClassVar[tuple[str, ...]] = ("c",)

    id: str = ""


class MessageTaken(Seen, frozen=True):
    """The session has taken operator message ``number`` of those that it was given."""

    number: int = 1

    @classmethod
    def examples_for(cls, record: Any) -> tuple["MessageTaken", ...]:
        """Return the first two messages, and an old report; none for a session that takes no messages."""
        new = record.position + 1
        return (cls(new), cls(new, 2), cls(record.position)) if record.steers else ()


FACTS: Final = (WorkSeen, PermissionWanted, PermissionDenied, LimitSeen, ConversationSeen, MessageTaken)
"""The facts, the most frequent first."""


class Output(Record, frozen=True):
    """What the output of the session tells. ``position`` is that of the last fact; 0 before the first.

    ``works`` are under way. ``tools`` and ``condensed`` count the tool calls and the compactions of this session.
    ``wanted`` is the tool that the agent waits for leave to use, ``denied`` the last one that it was refused.
    ``steers``: the session takes messages while it runs.
    """

    identifiers: ClassVar[tuple[str, ...]] = ("position", "tools", "condensed")
    opaque: ClassVar[tuple[str, ...]] = ("wanted", "denied", "conversation")

    state: State = State.UNFOLLOWED
    position: int = 0
    works: tuple[Doing, ...] = ()
    tools: int = 0
    condensed: int = 0
    wanted: str = ""
    denied: str = ""
    conversation: str = ""
    steers: bool = False

    def normal_form(self) -> "Output":
        """Return the record without what only people read, and without a session that is over."""
        told = replace(self, tools=0, condensed=0, wanted="", denied="", conversation="")
        return told if self.state is State.FOLLOWED else replace(told, position=0)

    @property
    def phase(self) -> turn.State:
        """The phase of a running turn: it compacts rather than uses a tool, because the table has no way between."""
        for each in (Work.COMPACTION, Work.TOOL):
            if any(doing.work is each for doing in self.works):
                return PHASES[each]
        return turn.State.RUNNING


def is_news(o: Output, e: Seen) -> bool:
    """The fact is beyond the last one."""
    return e.position > o.position


def begin(o: Output, _e: SessionRuns) -> Step[Output, Never]:
    """Begin with an output that nothing was read of."""
    return Step(Output(steers=o.steers))


def end(o: Output, _e: SessionOver) -> Step[Output, Never]:
    """Drop the works under way: the session does nothing any more."""
    return Step(replace(o, works=(), wanted=""))


def see_work(o: Output, e: WorkSeen) -> Step[Output, Never]:
    """Keep the works under way, and count those that have begun. An agent that works waits for nothing."""
    return Step(
        replace(
            o,
            position=e.position,
            works=e.works,
            tools=o.tools + e.tools,
            condensed=o.condensed + e.compactions,
            wanted="",
        )
    )


def want(o: Output, e: PermissionWanted) -> Step[Output, Never]:
    """Keep the tool that the agent waits for."""
    return Step(replace(o, position=e.position, wanted=e.tool))


def deny(o: Output, e: PermissionDenied) -> Step[Output, Never]:
    """Keep the refused tool."""
    return Step(replace(o, position=e.position, wanted="", denied=e.tool))


def see_limit(o: Output, e: LimitSeen) -> Step[Output, Never]:
    """Keep the position: others decide about the limit."""
    return Step(replace(o, position=e.position))


def see_conversation(o: Output, e: ConversationSeen) -> Step[Output, Never]:
    """Keep the name of the conversation."""
    return Step(replace(o, position=e.position, conversation=e.id))


def see_taken(o: Output, e: MessageTaken) -> Step[Output, Never]:
    """Keep the position: the mailbox counts the message."""
    return Step(replace(o, position=e.position))


def follow(_o: Output) -> FollowOutput:
    """Return the activity of a followed session."""
    return FollowOutput()


def counts_each_fact_once(step: Transition) -> bool:
    """A fact is beyond all facts before it, and the last position is that of the last fact."""
    if not isinstance(step.event, Seen):
        return True
    return bool(step.was.position < step.event.position == step.after.record.position)


def shows_the_last_snapshot(step: Transition) -> bool:
    """The works under way are those of the last snapshot, and every tool that it reports counts."""
    if not isinstance(step.event, WorkSeen):
        return True
    was, now, seen = step.was, step.after.record, step.event
    counted = (now.tools - was.tools, now.condensed - was.condensed)
    return now.works == seen.works and counted == (seen.tools, seen.compactions)


def does_nothing_unseen(step: Transition) -> bool:
    """A session that is not followed does nothing and waits for no permission."""
    o: Output = step.after.record
    return o.state is State.FOLLOWED or not (o.works or o.wanted)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("each fact counts once, in the order of the output", counts_each_fact_once, on=Event),
    always_step("the works under way are those of the last snapshot", shows_the_last_snapshot, on=Event),
    always_step("a session that is over does nothing", does_nothing_unseen),
    leads_where(
        "a start and an end of a session begin and end the reading",
        {SessionRuns: (State.FOLLOWED,), SessionOver: (State.UNFOLLOWED,)},
    ),
    accepts(
        "starts and ends of sessions are accepted", {State.UNFOLLOWED: (SessionRuns,), State.FOLLOWED: (SessionOver,)}
    ),
    goes_on(FollowOutput.__name__, State.FOLLOWED),
    asks_once(),
)

machine: Machine[Any] = Machine(
    REF,
    Output(steers=True),
    about="what the output of the running session tells: tools, compactions, permissions, limits",
    rows=(
        row(State.UNFOLLOWED, SessionRuns, State.FOLLOWED, begin),
        row(State.FOLLOWED, SessionOver, State.UNFOLLOWED, end),
        row(State.FOLLOWED, WorkSeen, STAY, see_work, when=is_news),
        row(State.FOLLOWED, PermissionWanted, STAY, want, when=is_news),
        row(State.FOLLOWED, PermissionDenied, STAY, deny, when=is_news),
        row(State.FOLLOWED, LimitSeen, STAY, see_limit, when=is_news),
        row(State.FOLLOWED, ConversationSeen, STAY, see_conversation, when=is_news),
        row(State.FOLLOWED, MessageTaken, STAY, see_taken, when=is_news),
    ),
    during={State.FOLLOWED: does(follow, yields=FACTS)},
    properties=PROPERTIES,
    rests=anywhere,
)


def keep_following(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """The output of a session is followed from its start on, unless an interruption waited for the start."""
    if worker.record("session").state is session.State.RUNNING:
        yield Dispatch(REF, SessionRuns())


def stop_following(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """The output of a session that no longer runs is not followed any more."""
    if worker.record(REF).state is State.FOLLOWED:
        yield Dispatch(REF, SessionOver())


def follows_what_runs(worker: Aggregate) -> bool:
    """An output is followed exactly while its session runs."""
    if REF not in worker.entities:
        return True
    runs = worker.record("session").state is session.State.RUNNING
    return runs == (worker.record(REF).state is State.FOLLOWED)


OF_WORKERS: Final[tuple[Property[Aggregate], ...]] = (
    always("the output of a session is followed exactly while the session runs", follows_what_runs),
)
