"""The parts of a session: its states, its outcomes, its events, its record."""

from typing import Any, ClassVar, Final, Literal

import msgspec

from lifefold.core.kernel import Event, Pattern, Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.ends import LEFT, TIMED_OUT, Diagnosis, Trouble, diagnosis
from lifefold.core.policy.limits import at_least, between
from lifefold.core.policy.outcomes import Outcome as Reported
from lifefold.core.policy.outcomes import diagnosis_of
from lifefold.core.policy.reasons import AbortReason, TransitionReason


class State(AnyLifecycleState):
    """The eight states of an agent."""

    INITIALIZING = "Initializing"
    BUILDING_PROMPT = "BuildingPrompt"
    SPAWNING = "Spawning"
    RUNNING = "Running"
    INTERRUPTING = "Interrupting"
    SESSION_COMPLETE = "SessionComplete"
    COOLING_DOWN = "CoolingDown"
    STOPPED = "Stopped"


SESSION_LIVES: Final = (State.SPAWNING, State.RUNNING, State.INTERRUPTING)


FAR_MS: Final = 10**15
"""The end of a limit in examples: later than any limit that is believed."""


class Outcome(msgspec.Struct, frozen=True, tag=True):
    """The outcome of a session."""


class Success(Outcome, frozen=True):
    """It completed normally."""


class Error(Outcome, frozen=True):
    """It failed, with a message; without a ``diagnosis`` the message is classified."""

    message: str = ""
    diagnosis: Diagnosis | None = None


class Timeout(Outcome, frozen=True, omit_defaults=True):
    """It exceeded its time limit; the message says which one."""

    message: str = ""


class Suspended(Outcome, frozen=True):
    """It has kept a state to continue from (a fleet's profile; the document has no such end).

    ``asked``: it was ended because it had no runner, and not by itself.
    """

    asked: bool = False


class Limited(Outcome, frozen=True):
    """Its account may not be used for some time (a fleet's profile; the document has no such end).

    ``until_ms`` is the end of that time in Unix milliseconds; None if the agent has not told it. ``scope`` is the
    agent's name of the limit, such as ``five_hour``.
    """

    until_ms: int | None = None
    scope: str = ""
    message: str = ""


class Usage(msgspec.Struct, frozen=True):
    """The reported costs of a session: millionths of a dollar, and tokens read and written."""

    cost_microusd: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum."""
        return Usage(
            self.cost_microusd + other.cost_microusd,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


class WorktreeReady(Event, frozen=True):
    """The worktree is ready; also after a completed session, where nothing new is made (D19)."""


class PromptReady(Event, frozen=True):
    """The next session's prompt is written."""

    prompt: str

    @classmethod
    def examples(cls) -> tuple["PromptReady", ...]:
        """Return one prompt: its text decides nothing."""
        return (cls("do it"),)


class SessionStarted(Event, frozen=True):
    """The process runs. ``seq`` is the number of its session."""

    seq: int

    @classmethod
    def examples(cls) -> tuple["SessionStarted", ...]:
        """Return the first two numbers: the expected one and another."""
        return cls(0), cls(1)

    @classmethod
    def examples_for(cls, record: "Session") -> tuple["SessionStarted", ...]:
        """Return the expected number and another."""
        return cls(record.session_seq), cls(record.session_seq + 1)


class SessionExited(Event, frozen=True):
    """The process is gone, confirmed. Its cost decides nothing here; it is for the accounts.

    ``conversation`` is the agent's identifier of its conversation; empty if the agent has named none. ``is_total``: the
    ``usage`` is that of the whole conversation, with its earlier sessions. ``messages`` is the number of the
    last operator message that the session has taken while it ran; 0 for none. ``before`` is the program's own count of
    the conversation when the session began; None if it tells none. ``was_killed``: the program could not save its
    count, because SIGKILL has ended it.
    """

    outcome: Success | Error | Timeout | Suspended | Limited
    usage: Usage = Usage()
    conversation: str = ""
    is_total: bool = False
    messages: int = 0
    before: Usage | None = None
    was_killed: bool = False

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The meaning of the end; None for a normal one."""
        match self.outcome:
            case Error(message=message, diagnosis=known):
                return known or diagnosis(message)
            case Timeout():
                return TIMED_OUT
            case Suspended(asked=True):
                return LEFT
            case Limited():
                return diagnosis_of(Reported.LIMITED)
            case _:
                return None

    @property
    def transition_reason(self) -> TransitionReason | None:
        """The reason of the end; None if the session has suspended itself."""
        if isinstance(self.outcome, Success):
            return TransitionReason.COMPLETED
        return None if self.diagnosis is None else self.diagnosis.transition_reason

    @property
    def abort_reason(self) -> AbortReason | None:
        """The reason of an abnormal end; None for a normal one."""
        return None if self.diagnosis is None else self.diagnosis.abort_reason

    @classmethod
    def examples(cls) -> tuple["SessionExited", ...]:
        """Return one of each outcome; a limit with a known end, and without."""
        usual = (Success(), Error("exit status 1"), Timeout(), Suspended(), Suspended(asked=True))
        return tuple(cls(each) for each in (*usual, Limited(), Limited(FAR_MS)))

    @classmethod
    def examples_for(cls, record: Any) -> tuple["SessionExited", ...]:
        """Return one of each outcome. Only a session with an account is limited.

        With conversations there are also a total, a smaller one, and a loss. A session that takes messages may have
        taken one or two, or none and have used a small budget up.
        """
        has_account = bool(getattr(record, "account", ""))
        found = tuple(each for each in cls.examples() if has_account or type(each.outcome) is not Limited)
        if getattr(record, "steers", False):
            found += (cls(Success(), messages=1), cls(Error("exit status 1"), messages=1), cls(Success(), messages=2))
            found += (cls(Success(), Usage(2)),)
        if not getattr(record, "talks", False):
            return found
        lost = Error("no conversation found", Diagnosis(trouble=Trouble.LOST))
        total = cls(Success(), Usage(2), "C1", is_total=True)
        return (*found, total, cls(Error("exit status 1"), Usage(1), "C1", is_total=True), cls(lost))


SUCCESS: Final = Pattern(SessionExited, "Success", lambda e: type(e.outcome) is Success)
ERROR: Final = Pattern(SessionExited, "Error", lambda e: type(e.outcome) is Error)
TIMEOUT: Final = Pattern(SessionExited, "Timeout", lambda e: type(e.outcome) is Timeout)


class UrgentMessage(Event, frozen=True, repr_omit_defaults=True):
    """A message cannot wait for the session to end; ``abort_reason`` decides nothing here."""

    transition_reason: ClassVar = TransitionReason.ABORTED

    abort_reason: AbortReason = AbortReason.USER_INTERRUPT

    @classmethod
    def label(cls) -> str:
        """Return the document's word: the reason is for the journal."""
        return cls.__name__


class GraceExceeded(Event, frozen=True):
    """The session was asked to end and has not ended in time."""

    transition_reason: ClassVar = TransitionReason.ABORTED
    abort_reason: ClassVar = AbortReason.TIMEOUT


class BackoffElapsed(Event, frozen=True):
    """The pause after an error is over."""


class OperatorStop(Event, frozen=True, repr_omit_defaults=True):
    """This agent is to stop for good. Without an ``abort_reason`` that is no abnormal end: its work is done."""

    abort_reason: AbortReason | None = AbortReason.USER_INTERRUPT

    @property
    def transition_reason(self) -> TransitionReason:
        """The reason of the stop: the agent was aborted, or it has finished."""
        return TransitionReason.COMPLETED if self.abort_reason is None else TransitionReason.ABORTED

    @classmethod
    def label(cls) -> str:
        """Return the document's word: the reason is for the journal."""
        return cls.__name__


class FatalError(Event, frozen=True):
    """An error that no retry will fix."""

    transition_reason: ClassVar = TransitionReason.ABORTED
    abort_reason: ClassVar = AbortReason.UNKNOWN

    msg: str

    @classmethod
    def examples(cls) -> tuple["FatalError", ...]:
        """Return one message: its text decides nothing."""
        return (cls("no space left"),)


class Limits(msgspec.Struct, frozen=True):
    """The settings of a fleet. Times in milliseconds; the defaults are the document's where it has one."""

    max_consecutive_errors: int = 5
    max_total_errors: int = 20
    backoff_base_ms: int = 2_000
    backoff_cap_ms: int = 60_000
    jitter: float = 0.0
    grace_ms: int = 5_000
    session_timeout_ms: int | None = None
    reset_errors_on: Literal["start", "success"] = "start"
    total_errors_window_ms: int = 86_400_000

    def __post_init__(self) -> None:
        """Refuse values that cannot work (D26). Raises ``ValueError``, which names the field."""
        at_least(1, self, "max_consecutive_errors", "max_total_errors", "backoff_base_ms", "backoff_cap_ms")
        at_least(1, self, "session_timeout_ms", "total_errors_window_ms")
        at_least(0, self, "grace_ms")
        between(0, 1, self, "jitter")


class Session(Record, frozen=True):
    """An agent. ``session_seq`` counts completed sessions, ``attempt`` every spawn (D15); ``prompt`` is the last.

    ``suspensions`` counts the sessions that suspended themselves without a request since the last success or error.
    """

    identifiers: ClassVar[tuple[str, ...]] = ("session_seq", "attempt")
    opaque: ClassVar[tuple[str, ...]] = ("prompt",)

    state: State = State.INITIALIZING
    name: str = ""
    session_seq: int = 0
    attempt: int = 0
    prompt: str = ""
    consecutive_errors: int = 0
    total_errors: int = 0
    suspensions: int = 0
    limits: Limits = Limits()

    @property
    def present_grace_ms(self) -> int:
        """The time that the session has to end if it is asked to now."""
        return self.limits.grace_ms

    def normal_form(self) -> "Session":
        """Return it without its numbers if the agent has stopped: no session follows."""
        return replace(self, session_seq=0, attempt=0, suspensions=0) if self.state is State.STOPPED else self

    def counted(self) -> tuple[int, int]:
        """Return consecutive and total errors with one more."""
        return self.consecutive_errors + 1, self.total_errors + 1

    def after_error(self) -> "Session":
        """Return the record with one more error counted."""
        consecutive, total = self.counted()
        return replace(self, consecutive_errors=consecutive, total_errors=total, suspensions=0)
