"""The reasons of transitions: the document's thirteen, and its eleven reasons of an abnormal end.

An event that knows its reason has a field, or a property, named ``transition_reason`` or ``abort_reason``. The journal
takes it from there (E44).

*A pure function classifies the end of a process* by its exit status and by the cause that the runner gave it (E39). A
negative status is the signal that ended the process, as the operating system's wait reports it. 128 + n is a shell's
status for signal n. If the runner ended the process, the runner's cause wins over any status. A session that was asked
to end because of a timeout has timed out, even if it exits with status 0.
"""

from enum import StrEnum
from typing import Final

import msgspec


class TransitionReason(StrEnum):
    """The reason of a transition; the document's thirteen."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    RETRY = "retry"
    PROMPT_TOO_LONG = "prompt_too_long"
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    MAX_TURNS = "max_turns"
    PROVIDER_413 = "provider_413"
    PROVIDER_529 = "provider_529"
    COMPACTION_FAILED = "compaction_failed"
    STOP_HOOK_BLOCKED = "stop_hook_blocked"
    PERMISSION_DENIED = "permission_denied"
    SIBLING_ABORTED = "sibling_aborted"
    ORPHAN_RECOVERED = "orphan_recovered"


class AbortReason(StrEnum):
    """The reason of an agent's abnormal end; the document's eleven."""

    USER_INTERRUPT = "user_interrupt"
    SHUTDOWN_SIGNAL = "shutdown_signal"
    TIMEOUT = "timeout"
    OOM = "oom"
    PERMISSION_DENIED = "permission_denied"
    PROVIDER_ERROR = "provider_error"
    BASH_ERROR = "bash_error"
    SIBLING_ABORTED = "sibling_aborted"
    PARENT_ABORTED = "parent_aborted"
    COMPACT_FAILURE = "compact_failure"
    UNKNOWN = "unknown"


_OF_STATUS: Final = {
    0: None,
    124: AbortReason.TIMEOUT,
    126: AbortReason.PERMISSION_DENIED,
    130: AbortReason.USER_INTERRUPT,
    -2: AbortReason.USER_INTERRUPT,
    137: AbortReason.OOM,
    -9: AbortReason.OOM,
    143: AbortReason.SHUTDOWN_SIGNAL,
    -15: AbortReason.SHUTDOWN_SIGNAL,
}


def abort_reason_of(status: int | None, cause: AbortReason | None = None) -> AbortReason | None:
    """Return the reason of a process's end by its exit status; None if it ended well (E39).

    ``status`` is None if it could not be learnt. ``cause`` is given if the runner ended the process, and wins.
    """
    if cause is not None:
        return cause
    return AbortReason.UNKNOWN if status is None else _OF_STATUS.get(status, AbortReason.UNKNOWN)


SUSPENDED_STATUS: Final = 75
"""The exit status of a cooperative agent that saved its position, to continue later (``EX_TEMPFAIL`` of sysexits)."""


class Verdict(msgspec.Struct, frozen=True):
    """The meaning of an exit status: the reasons of the transition, and whether another try makes sense."""

    transition_reason: TransitionReason
    abort_reason: AbortReason | None
    retry: bool


_RETRY: Final = TransitionReason.RETRY
_ABORTED: Final = TransitionReason.ABORTED
_OF_CLAUDE: Final = {
    0: Verdict(TransitionReason.COMPLETED, None, retry=False),
    1: Verdict(_RETRY, AbortReason.PROVIDER_ERROR, retry=True),
    2: Verdict(_ABORTED, AbortReason.USER_INTERRUPT, retry=False),
    3: Verdict(TransitionReason.PROMPT_TOO_LONG, AbortReason.COMPACT_FAILURE, retry=True),
    4: Verdict(TransitionReason.PERMISSION_DENIED, AbortReason.PERMISSION_DENIED, retry=False),
    130: Verdict(_ABORTED, AbortReason.USER_INTERRUPT, retry=False),
    137: Verdict(_RETRY, AbortReason.OOM, retry=True),
    143: Verdict(_RETRY, AbortReason.SHUTDOWN_SIGNAL, retry=True),
}


def claude_verdict(status: int | None) -> Verdict:
    """Return the meaning of an exit status of the ``claude`` command. An unknown status may be tried again."""
    unknown = Verdict(_RETRY, AbortReason.UNKNOWN, retry=True)
    return unknown if status is None else _OF_CLAUDE.get(status, unknown)
