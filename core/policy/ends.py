"""The meaning of a session's end: its cause, and the worth of another try (E5, E39).

*Only the agent's own end counts*: its exit status, the signals that it was sent, and its last words. The output of a
verification is not the agent's: a failing test that prints "401 Unauthorized" is no login failure. ``WORDS`` holds the
last words of real agent programs, one row for each kind of end. The first row that matches decides, and rows of lasting
trouble come first. An end without known words is judged by its status.

A program can exit with 0 and report an error in its result. That is a failure. Other words of a program that exits with
0 decide nothing, because it may talk about errors that it has fixed.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from lifefold.core.policy.reasons import AbortReason, TransitionReason, abort_reason_of, claude_verdict


class Trouble(StrEnum):
    """The kind of a failure: whether it passes by itself (E5)."""

    TRANSIENT = "transient"
    FATAL = "fatal"
    OTHER = "other"
    LOST = "lost"
    """The agent could not resume its conversation; a session that begins another one may succeed."""


class Program(StrEnum):
    """The program that exited: document 004 has a table for ``claude``; status 75 suspends a cooperative agent."""

    ANY = ""
    CLAUDE = "claude"
    COOPERATIVE = "cooperative"


class Diagnosis(msgspec.Struct, frozen=True):
    """The cause of an abnormal end of a session, and the kind of failure."""

    transition_reason: TransitionReason = TransitionReason.RETRY
    abort_reason: AbortReason = AbortReason.UNKNOWN
    trouble: Trouble = Trouble.OTHER


class Diagnosed:
    """Base of events of an abnormal end; the journal takes the reasons from its ``diagnosis``, if that is known."""

    __slots__ = ()

    diagnosis: Diagnosis | None

    @property
    def transition_reason(self) -> TransitionReason | None:
        """The reason of the transition; None if unknown."""
        return None if self.diagnosis is None else self.diagnosis.transition_reason

    @property
    def abort_reason(self) -> AbortReason | None:
        """The reason of the abnormal end; None if unknown."""
        return None if self.diagnosis is None else self.diagnosis.abort_reason


class Words(msgspec.Struct, frozen=True):
    """The last words of programs at one kind of end, in lower case, and their meaning.

    Words of a trouble that cannot pass match as whole words only: ``test_billing failed`` does not contain ``billing``.
    """

    said: tuple[str, ...]
    means: Diagnosis


_FATAL, _TRANSIENT = Trouble.FATAL, Trouble.TRANSIENT
_PROVIDER = AbortReason.PROVIDER_ERROR
_COMPACT = AbortReason.COMPACT_FAILURE
_UNKNOWN = AbortReason.UNKNOWN

WORDS: Final = (
    Words(
        ("permission denied", "permission_denied", "permission_error"),
        Diagnosis(TransitionReason.PERMISSION_DENIED, AbortReason.PERMISSION_DENIED, _FATAL),
    ),
    Words(
        (
            "unauthorized", "invalid api key", "incorrect api key", "authentication failed", "authentication_error",
            "not logged in", "please run /login", "oauth token has expired",
        ),
        Diagnosis(TransitionReason.PERMISSION_DENIED, _PROVIDER, _FATAL),
    ),
    Words(
        ("credit balance is too low", "insufficient_quota", "billing", "billing_error", "payment required"),
        Diagnosis(TransitionReason.ABORTED, _PROVIDER, _FATAL),
    ),
    Words(
        ("no such model", "model not found", "model_not_found"),
        Diagnosis(TransitionReason.ABORTED, _PROVIDER, _FATAL),
    ),
    Words(
        ("stop hook",),
        Diagnosis(TransitionReason.STOP_HOOK_BLOCKED, _UNKNOWN),
    ),
    Words(
        ("compaction failed", "error during compaction", "failed to compact"),
        Diagnosis(TransitionReason.COMPACTION_FAILED, _COMPACT),
    ),
    Words(
        ("prompt is too long", "context_length_exceeded", "maximum context length", "context window"),
        Diagnosis(TransitionReason.PROMPT_TOO_LONG, _COMPACT),
    ),
    Words(
        ("(413)", "request_too_large", "payload too large", "request too large"),
        Diagnosis(TransitionReason.PROVIDER_413, _PROVIDER),
    ),
    Words(
        ("max_output_tokens", "output token maximum", "maximum output tokens"),
        Diagnosis(TransitionReason.MAX_OUTPUT_TOKENS, _UNKNOWN),
    ),
    Words(
        ("max turns", "max_turns", "maximum number of turns", "turn limit"),
        Diagnosis(TransitionReason.MAX_TURNS, _UNKNOWN),
    ),
    Words(
        ("529", "overloaded"),
        Diagnosis(TransitionReason.PROVIDER_529, _PROVIDER, _TRANSIENT),
    ),
    Words(
        ("rate limit", "rate_limit", "429", "usage limit", "try again", "temporarily unavailable", "503"),
        Diagnosis(TransitionReason.RETRY, _PROVIDER, _TRANSIENT),
    ),
    Words(
        ("timed out", "timeout", "connection"),
        Diagnosis(TransitionReason.RETRY, _UNKNOWN, _TRANSIENT),
    ),
    Words(
        ("bash tool failed", "bash: command failed", "tool bash failed"),
        Diagnosis(TransitionReason.RETRY, AbortReason.BASH_ERROR),
    ),
)  # fmt: skip
"""The last words of agent programs, by the kind of end, in order of precedence."""

TIMED_OUT: Final = Diagnosis(abort_reason=AbortReason.TIMEOUT)
"""The session exceeded its time, or was silent for too long: another session may be faster."""

LEFT: Final = Diagnosis(abort_reason=AbortReason.SHUTDOWN_SIGNAL)
"""The session was asked to end, because it had no runner or was preempted."""


def diagnosis(said: str, status: int | None = None, program: Program = Program.ANY) -> Diagnosis:
    """Return the meaning of an end, by the agent's last words and its exit status (-n for a death by signal n)."""
    return by_words(said) or by_status(status, program)


def by_words(said: str) -> Diagnosis | None:
    """Return the meaning of the agent's last words; None for unknown ones."""
    text = said.lower()
    return next((row.means for row in WORDS if _matches(row, text)), None)


def is_success(status: int | None, *, reports_error: bool) -> bool:
    """Tell whether a session that ended by itself has succeeded: it exited with 0, and its result reports no error."""
    return status == 0 and not reports_error


def in_words(status: int | None) -> str:
    """Return what a shell, or the start of a program, means by an exit status, in brackets; empty for any other."""
    return _IN_WORDS.get(status, "")


_IN_WORDS: Final[Mapping[int | None, str]] = {
    126: " (the program is not executable)",
    127: " (the program was not found)",
}


def telling(said: str) -> str:
    """Return last words of a session that exited with 0, if they name a known trouble; else an empty text.

    Programs print a limit, and exit with 0. So these words may explain why a task is not done. Words of no program
    (``connection``) and parts of words (``529`` in ``5294``) may describe the work instead.
    """
    text = said.lower()
    known = (each for row in WORDS if row.means.abort_reason is not _UNKNOWN for each in row.said)
    return said if any(_as_words(each).search(text) for each in known) else ""


def by_status(status: int | None, program: Program = Program.ANY) -> Diagnosis:
    """Return the meaning of an exit status by itself. A program that may not be executed is not worth another try."""
    if program is Program.CLAUDE:
        verdict = claude_verdict(status)
        trouble = Trouble.OTHER if verdict.retry else Trouble.FATAL
        return Diagnosis(verdict.transition_reason, verdict.abort_reason or _UNKNOWN, trouble)
    abort_reason = abort_reason_of(status) or _UNKNOWN
    if abort_reason is AbortReason.PERMISSION_DENIED:
        return Diagnosis(TransitionReason.PERMISSION_DENIED, abort_reason, Trouble.FATAL)
    return Diagnosis(abort_reason=abort_reason)


def _matches(row: Words, text: str) -> bool:
    if row.means.trouble is Trouble.FATAL:
        return any(_as_words(each).search(text) for each in row.said)
    return any(each in text for each in row.said)


@lru_cache(maxsize=256)
def _as_words(said: str) -> re.Pattern[str]:
    """Return a pattern that finds these words, unless they are part of a longer name or of a path."""
    return re.compile(rf"(?<![\w/.-]){re.escape(said)}(?![\w/-]|\.\w)")
