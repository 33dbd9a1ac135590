"""The record of a task on a board, with the fields that a fleet adds, and the events that only a fleet has."""

from typing import Any, ClassVar, Final, Self

import msgspec

from lifefold.core.fleet.board.claim_token import token_of
from lifefold.core.kernel import Event, replace
from lifefold.core.lifecycles.session import Usage
from lifefold.core.lifecycles.task import (
    Claimed,
    KeptConversation,
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
"""The most subtasks of a task, over all its attempts."""

ROLE: Final = "role:"
"""The prefix of ``blocked_by`` if a task is blocked because no agent has its role."""

LEVEL: Final = "level:"
"""The prefix of ``blocked_by`` if no agent has the trust level of the task (E34)."""

BUDGET: Final = "budget:"
"""The prefix of ``blocked_by`` if a budget is spent."""

PLAN: Final = "plan:"
"""The value of ``blocked_by`` if a plan change has removed the task."""

NOT_IN_THE_PLAN: Final = "removed from the fleet file"
"""The reason of a task that a plan change has removed."""

SUBTASKS_MS: Final = 1_800_000
"""How long a task waits for its subtasks, in milliseconds (E9)."""


class DependencyLost(Event, frozen=True):
    """The dependency or part ``by`` of the task will not be done (E7, E19)."""

    by: str = "T0"
    reason: str = ""


class DependencyBack(Event, frozen=True):
    """The dependency or part ``by`` of the task may be done after all (E19)."""

    by: str = "T0"


class Rested(Retried, frozen=True):
    """The rest of a failed task is over: it is tried again (E6)."""


class RetryGranted(Event, frozen=True):
    """An operator grants the task one more retry."""

    transition_reason: ClassVar = TransitionReason.RETRY

    reason: str = ""


class Parked(OwnerReport, frozen=True):
    """The owner has kept the verified work as ``commit``, for a merge after an operator's approval."""

    opaque: ClassVar[tuple[str, ...]] = ("commit",)

    commit: str = ""


class Entrusted(Claimed, frozen=True):
    """A worker claims the task in a fleet with trust gates (E34); ``level`` is the trust level of its agent."""

    level: AccessLevel = AccessLevel.UNTRUSTED

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Entrusted", ...]:
        """Return claims by a trusted and by an untrusted agent; none without trust gates."""
        gated = record.level is not AccessLevel.UNTRUSTED or record.merges is not AccessLevel.UNTRUSTED
        return (cls(level=AccessLevel.ELEVATED), cls()) if gated else ()


class Handed(Claimed, frozen=True):
    """A worker is handed a done task, to verify or to merge it."""


class NothingDone(Rejected, frozen=True):
    """The owner reported its work as done, but nothing has changed and the task has no verification command."""


class Returned(OwnerReport, frozen=True):
    """The owner returns a task that it cannot verify or merge: another worker may."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class ConversationKept(Event, frozen=True):
    """The ``agent`` of claim ``epoch`` reports its conversation, with its charges; None if it has none any more."""

    epoch: int = 1
    agent: str = ""
    conversation: KeptConversation | None = None

    @classmethod
    def examples_for(cls, record: Any) -> tuple["ConversationKept", ...]:
        """Return a conversation of the current claim, one of another claim's agent, and the end of the first.

        None of a task without a conversation, unless its retries begin anew: its fleet may have none.
        """
        if record.conversation is None and not record.anew:
            return ()
        kept = KeptConversation("worker", "C1", Usage(2))
        other = replace(kept, agent="other")
        return (cls(record.epoch, "worker", kept), cls(record.epoch + 1, "other", other), cls(record.epoch, "worker"))


class Subtask(msgspec.Struct, frozen=True):
    """A part of a task, as the splitting agent describes it."""

    prompt: str = "do a part"
    verify: tuple[tuple[str, ...], ...] = ()
    files: tuple[str, ...] = ()


class Split(OwnerReport, frozen=True):
    """The owner splits its task into ``tasks``, and no longer owns it; ``token`` is the token of its claim."""

    tasks: tuple[Subtask, ...] = ()
    token: str = ""

    @classmethod
    def examples(cls) -> tuple["Split", ...]:
        """Return splits of the first claim into two parts and into none, and one of an unknown claim."""
        two = (Subtask(), Subtask())
        return cls(1, two), cls(1), cls(0, two)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Split", ...]:
        """Return splits of the current claim, of another claim, and with a forged token; none if it may not split."""
        if not record.most_subtasks:
            return ()
        two = Subtask(verify=(("make", "check"),)), Subtask(files=("part",))
        token = record.token
        forged = cls(record.epoch, two, f"not {token}")
        return cls(record.epoch, two, token), cls(record.epoch, (), token), cls(record.epoch + 1, two, token), forged


class Fate(msgspec.Struct, frozen=True):
    """The aborts of a task, in a fleet that has aborts (document 004); ``policy`` is the fleet's (E37).

    ``said`` is the scope of the last abort at this task that reached further than a tool. ``aborted`` is the reason for
    which the task itself is aborted, and ``why`` explains it to operators. A task that cannot be cancelled now is
    cancelled when it is opened again. ``wanted``: an operator has granted a retry since.
    """

    opaque: ClassVar[tuple[str, ...]] = ("why",)

    policy: AbortPolicy = AbortPolicy()
    said: AbortScope | None = None
    aborted: AbortReason | None = None
    why: str = ""
    wanted: bool = False


SHELLS: Final = frozenset({"bash", "shell", "sh"})
"""The names of tools that run shell commands, in lower case."""


class ToolAborted(OwnerReport, frozen=True):
    """The owner reports an aborted call of a ``tool``; its session goes on. ``token`` is the token of its claim."""

    transition_reason: ClassVar = TransitionReason.ABORTED
    scope: ClassVar = AbortScope.TOOL
    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    tool: str = "tool"
    reason: str = ""
    token: str = ""

    @property
    def abort_reason(self) -> AbortReason:
        """The reason of the abort: an error of a shell command, or unknown."""
        return AbortReason.BASH_ERROR if self.tool.lower() in SHELLS else AbortReason.UNKNOWN

    @classmethod
    def examples_for(cls, record: Any) -> tuple["ToolAborted", ...]:
        """Return reports of the current claim, of another one, and with a forged token; none without aborts."""
        token = record.token
        reports = (
            cls(record.epoch, token=token),
            cls(record.epoch + 1, token=token),
            cls(record.epoch, token=f"not {token}"),
        )
        return () if record.fate is None else reports


class AbortWanted(Event, frozen=True):
    """An operator aborts a task or its siblings, each with all its parts."""

    transition_reason: ClassVar = TransitionReason.ABORTED
    abort_reason: ClassVar = AbortReason.USER_INTERRUPT
    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    scope: AbortScope = AbortScope.SESSION
    reason: str = ""

    @classmethod
    def examples_for(cls, record: Any) -> tuple["AbortWanted", ...]:
        """Return one of each possible scope; none without aborts."""
        siblings = (cls(AbortScope.SIBLING),) if record.parent else ()
        return () if record.fate is None else (cls(), *siblings)


class Aborted(Event, frozen=True):
    """The task is aborted by an abort at the task ``by``."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    abort_reason: AbortReason = AbortReason.USER_INTERRUPT
    by: str = ""
    reason: str = ""

    @property
    def transition_reason(self) -> TransitionReason:
        """The reason: an abort of a sibling, or one at this task or above."""
        is_sibling = self.abort_reason is AbortReason.SIBLING_ABORTED
        return TransitionReason.SIBLING_ABORTED if is_sibling else TransitionReason.ABORTED

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Aborted", ...]:
        """Return one by the task itself; none without aborts."""
        return () if record.fate is None else (cls(by=record.id),)


class FleetTask(Task, frozen=True):
    """A task on a board.

    An agent needs ``role`` to take the task, which changes ``files`` and is a part of ``parent``. ``level`` is the
    trust level for a claim (E34). ``needs_approval``: the merge needs approval. Either the plan says so
    (``always_needs_approval``), or ``author``, its last owner, is trusted less than ``merges``. ``stage`` is the next
    step of its work. ``result`` is the epoch of the claim that keeps the work meanwhile, as the commit ``collected``.

    ``limit`` is the number of retries after its last failure. ``blocked_by`` is a task, a role, a level or a budget.
    ``removed``: a plan change has removed it. ``parts`` counts its subtasks; it ``waits_for_parts`` until they are all
    closed. ``orphaned`` decides what follows when its session dies, ``on_nothing`` when a session reports work without
    any change. ``conversation`` is the last one about the task, in a fleet whose agents have conversations. ``anew``:
    a retry begins another one. ``fate`` has its aborts, if its fleet has any. The tokens of its claims are derived from
    ``key``, and are empty without one. An approval is awaited for ``approval_ms``; 0 is for ever. Times are in
    milliseconds.
    """

    identifiers: ClassVar[tuple[str, ...]] = ("epoch", "kept", "result")
    opaque: ClassVar[tuple[str, ...]] = (*Task.opaque, "collected")

    role: str = ""
    files: tuple[str, ...] = ()
    parent: str = ""
    needs_approval: bool = False
    stage: Stage = Stage.WORK
    result: int = 0
    collected: str = ""
    limit: int = 3
    blocked_by: str = ""
    parts: int = 0
    waits_for_parts: bool = False
    level: AccessLevel = AccessLevel.UNTRUSTED
    merges: AccessLevel = AccessLevel.UNTRUSTED
    always_needs_approval: bool = False
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
    anew: bool = False
    conversation: KeptConversation | None = None

    def normal_form(self) -> Self:
        """Return the task without its reason, and without the fields that no rule reads once it is over."""
        if self.state in {State.CLOSED, State.CANCELLED}:
            left = self.fate and Fate(self.fate.policy, aborted=self.fate.aborted)
            form = replace(super().normal_form(), fate=left)
            return replace(
                form,
                stage=Stage.WORK,
                result=0,
                collected="",
                limit=0,
                blocked_by="",
                waits_for_parts=False,
                removed=False,
                conversation=None,
            )
        return replace(self, reason="")

    @property
    def allowed_retries(self) -> int:
        """How often the task may be opened again after failures (E5)."""
        return min(self.limit, self.max_retries)

    @property
    def token(self) -> str:
        """The token that the session of the current claim has to show."""
        return token_of(self.key, self.id, self.epoch)

    def conversation_of(self, agent: str) -> KeptConversation | None:
        """Return the conversation that this agent had about the task; None if the last one was another agent's."""
        kept = self.conversation
        return kept if kept is not None and kept.agent == agent else None

    @property
    def is_aborted(self) -> bool:
        """Whether the task is aborted: cancelled now, or as soon as it is opened again."""
        return self.fate is not None and self.fate.aborted is not None

    @property
    def lacked_task(self) -> str:
        """The task that blocks this one; empty if there is none."""
        return "" if self.blocked_by.startswith((ROLE, LEVEL, BUDGET, PLAN)) else self.blocked_by

    def part(self, number: int) -> str:
        """Return the id of subtask ``number``, from 1. It is unique: no id of a fleet file has a ``+``."""
        return f"{self.id}+{number}"

    def parts_of_it(self) -> tuple[str, ...]:
        """Return the ids of all subtasks."""
        return tuple(self.part(number) for number in range(1, self.parts + 1))
