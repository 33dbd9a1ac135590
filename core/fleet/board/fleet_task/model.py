"""What the board knows of a task besides the document's record, and the events that only a fleet has."""

from typing import Any, ClassVar, Final, Self

import msgspec

from lifefold.core.fleet.board.claim_token import token_of
from lifefold.core.kernel import Event, replace
from lifefold.core.lifecycles.task import (
    Claimed,
    OnDeath,
    OnNothing,
    OwnerReport,
    Rejected,
    Retried,
    Stage,
    State,
    Task,
)
from lifefold.core.policy.abort import AbortPolicy, AbortScope
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.core.policy.retry import RetryPolicy

MOST_SUBTASKS: Final = 100
"""Into how many subtasks a task may be split at most, all of its attempts together."""

ROLE: Final = "role:"
"""What ``lacks`` begins with in place of a task's id, if what is lacking is anybody who has this role."""

LEVEL: Final = "level:"
"""The same, if it is anybody who is trusted so far (E34)."""

PURSE: Final = "budget:"
"""The same, if it is money."""

PLAN: Final = "plan:"
"""The same, if it is its place in the plan: a change has taken it out."""

NOT_IN_THE_PLAN: Final = "removed from the fleet file"
"""Why a task is not done that lacks that."""

SUBTASKS_MS: Final = 1_800_000
"""For how long subtasks are waited for (E9)."""


class DependencyLost(Event, frozen=True):
    """What the task waits for, ``by``, will not be done (E7, E19)."""

    by: str = "T0"
    reason: str = ""


class DependencyBack(Event, frozen=True):
    """What the task waits for, ``by``, may be done after all (E19)."""

    by: str = "T0"


class Rested(Retried, frozen=True):
    """The task that has failed has rested, and is tried again (E6)."""


class RetryGranted(Event, frozen=True):
    """A person lets the task be tried once more than it may be."""

    transition_reason: ClassVar = TransitionReason.RETRY

    reason: str = ""


class Parked(OwnerReport, frozen=True):
    """The owner has put what is verified, ``commit``, where whoever merges it finds it: a person has to agree first."""

    opaque: ClassVar[tuple[str, ...]] = ("commit",)

    commit: str = ""


class Entrusted(Claimed, frozen=True):
    """A worker claims it in a fleet that gates what its agents may do (E34); ``level`` is how far it is trusted."""

    level: AccessLevel = AccessLevel.UNTRUSTED

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Entrusted", ...]:
        """Return one by an agent whose work is merged unseen, and one by an agent whose work is not; none ungated."""
        gated = record.level is not AccessLevel.UNTRUSTED or record.merges is not AccessLevel.UNTRUSTED
        return (cls(level=AccessLevel.ELEVATED), cls()) if gated else ()


class Handed(Claimed, frozen=True):
    """A worker is given a task that is done, to verify or to merge it."""


class NothingDone(Rejected, frozen=True):
    """The owner has said that the work is done, and there is none: nothing has changed, and no command was to tell."""


class Returned(OwnerReport, frozen=True):
    """The owner cannot verify or merge what it was given: somebody else may."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Subtask(msgspec.Struct, frozen=True):
    """A part of a task, as whoever splits it describes it."""

    prompt: str = "do a part"
    verify: tuple[tuple[str, ...], ...] = ()
    files: tuple[str, ...] = ()


class Split(OwnerReport, frozen=True):
    """The owner splits its task, and is done with it until all of these are closed; ``token`` is its claim's."""

    tasks: tuple[Subtask, ...] = ()
    token: str = ""

    @classmethod
    def examples(cls) -> tuple["Split", ...]:
        """Return the first claim's, into two parts and into none, and one of a claim that never was."""
        two = (Subtask(), Subtask())
        return cls(1, two), cls(1), cls(0, two)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Split", ...]:
        """Return the present claim's, into two parts and into none, another's, and a forged one; none if it may not."""
        if not record.most_subtasks:
            return ()
        two = Subtask(verify=(("make", "check"),)), Subtask(files=("part",))
        token = record.token
        forged = cls(record.epoch, two, f"not {token}")
        return cls(record.epoch, two, token), cls(record.epoch, (), token), cls(record.epoch + 1, two, token), forged


class Fate(msgspec.Struct, frozen=True):
    """What a task has to do with aborts, in a fleet that has any (document 004): ``policy`` is the fleet's (E37).

    ``said`` is the last scope wider than a tool that it came to when somebody aborted here. ``doomed`` is the reason
    for which the task itself is aborted, and ``why`` says it to people; what cannot be cancelled just now is cancelled
    when it is opened again. ``wanted``: a person has had it tried again since.
    """

    opaque: ClassVar[tuple[str, ...]] = ("why",)

    policy: AbortPolicy = AbortPolicy()
    said: AbortScope | None = None
    doomed: AbortReason | None = None
    why: str = ""
    wanted: bool = False


SHELLS: Final = frozenset({"bash", "shell", "sh"})
"""What agent programs call the tool that runs commands, in lower case."""


class ToolAborted(OwnerReport, frozen=True):
    """The owner says that one call of a ``tool`` was aborted in its session, which goes on.

    ``token`` is that of its claim.
    """

    transition_reason: ClassVar = TransitionReason.ABORTED
    scope: ClassVar = AbortScope.TOOL
    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    tool: str = "tool"
    reason: str = ""
    token: str = ""

    @property
    def abort_reason(self) -> AbortReason:
        """Why the call was aborted: what a shell was asked to do has failed, or that is not known."""
        return AbortReason.BASH_ERROR if self.tool.lower() in SHELLS else AbortReason.UNKNOWN

    @classmethod
    def examples_for(cls, record: Any) -> tuple["ToolAborted", ...]:
        """Return the present claim's, another claim's, and a forged one; none where the fleet has no aborts."""
        token = record.token
        said = (
            cls(record.epoch, token=token),
            cls(record.epoch + 1, token=token),
            cls(record.epoch, token=f"not {token}"),
        )
        return () if record.fate is None else said


class AbortWanted(Event, frozen=True):
    """A person aborts the siblings of a task, or the task, each with all that is below it."""

    transition_reason: ClassVar = TransitionReason.ABORTED
    abort_reason: ClassVar = AbortReason.USER_INTERRUPT
    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    scope: AbortScope = AbortScope.SESSION
    reason: str = ""

    @classmethod
    def examples_for(cls, record: Any) -> tuple["AbortWanted", ...]:
        """Return one of each scope that there is for it; none where the fleet has no aborts."""
        siblings = (cls(AbortScope.SIBLING),) if record.parent else ()
        return () if record.fate is None else (cls(), *siblings)


class Aborted(Event, frozen=True):
    """It is aborted, because somebody has aborted at the task ``by``."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    abort_reason: AbortReason = AbortReason.USER_INTERRUPT
    by: str = ""
    reason: str = ""

    @property
    def transition_reason(self) -> TransitionReason:
        """Why: for a sibling's sake, or because somebody wanted it, here or above."""
        is_sibling = self.abort_reason is AbortReason.SIBLING_ABORTED
        return TransitionReason.SIBLING_ABORTED if is_sibling else TransitionReason.ABORTED

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Aborted", ...]:
        """Return one by the task itself; none where the fleet has no aborts."""
        return () if record.fate is None else (cls(by=record.id),)


class FleetTask(Task, frozen=True):
    """A task on a board.

    ``role`` is what an agent must have to take it, ``files`` what it will change, ``parent`` the task that it is a part
    of. ``asks``: a person has to agree before it is merged, because the plan says so (``always_asks``) or because its
    ``author``, who has claimed it last, is trusted less than ``merges``; to claim it at all takes ``level`` (E34).
    ``stage`` is what is left to be done of it, and ``result`` the claim under whose number it is kept meanwhile,
    as the commit ``collected``.
    ``limit`` is how often it may be tried again, as far as is known by its last failure. ``lacks`` is the task, the
    role, the level or the budget because of which it is blocked; ``removed``: a plan change has taken it out. ``parts``
    counts its subtasks, and it ``waits`` as long as they are not all closed. ``orphaned`` is what becomes of it if a
    session dies that works at it, ``on_nothing`` if a session says that it is done, and has changed nothing. ``fate``
    is what it has to do with aborts, if its fleet has any. ``key`` is what the tokens of its claims are derived from;
    without one they are empty. A person is waited for ``approval_ms``; 0 is for ever. Times in milliseconds.
    """

    identifiers: ClassVar[tuple[str, ...]] = ("epoch", "kept", "result")
    opaque: ClassVar[tuple[str, ...]] = (*Task.opaque, "collected")

    role: str = ""
    files: tuple[str, ...] = ()
    parent: str = ""
    asks: bool = False
    stage: Stage = Stage.WORK
    result: int = 0
    collected: str = ""
    limit: int = 3
    lacks: str = ""
    parts: int = 0
    waits: bool = False
    level: AccessLevel = AccessLevel.UNTRUSTED
    merges: AccessLevel = AccessLevel.UNTRUSTED
    always_asks: bool = False
    author: str = ""
    most_subtasks: int = 0
    subtasks_ms: int = SUBTASKS_MS
    approval_ms: int = 0
    retry: RetryPolicy = RetryPolicy()
    orphaned: OnDeath = OnDeath.FAIL
    on_nothing: OnNothing = OnNothing.FAIL
    fate: Fate | None = None
    key: str = ""
    removed: bool = False

    def normal_form(self) -> Self:
        """Return it without the reason, which is for people, and without what nobody will ask for once it is over."""
        if self.state in {State.CLOSED, State.CANCELLED}:
            left = self.fate and Fate(self.fate.policy, doomed=self.fate.doomed)
            form = replace(super().normal_form(), fate=left)
            return replace(
                form, stage=Stage.WORK, result=0, collected="", limit=0, lacks="", waits=False, removed=False
            )
        return replace(self, reason="")

    @property
    def allowed_retries(self) -> int:
        """How often it may be opened again after its failures (E5)."""
        return min(self.limit, self.max_retries)

    @property
    def token(self) -> str:
        """What the session at its present claim has to show when it speaks of it."""
        return token_of(self.key, self.id, self.epoch)

    @property
    def is_doomed(self) -> bool:
        """Whether it is aborted: it is cancelled, or will be when it is opened again."""
        return self.fate is not None and self.fate.doomed is not None

    @property
    def lacked_task(self) -> str:
        """The task because of which it is blocked; empty if there is none."""
        return "" if self.lacks.startswith((ROLE, LEVEL, PURSE, PLAN)) else self.lacks

    def part(self, number: int) -> str:
        """Return the id of its subtask of this number, from 1. No other task has it: ``+`` is in no id of a file."""
        return f"{self.id}+{number}"

    def parts_of_it(self) -> tuple[str, ...]:
        """Return the ids of all its subtasks."""
        return tuple(self.part(number) for number in range(1, self.parts + 1))
