"""The outcomes of an agent's session, in the agent's own account, and their diagnoses.

An adapter reads the outcome off the output of an agent program. The table gives each its reasons and its kind of
failure, so that one rule decides about retries for all programs. *An outcome without reasons of its own* is judged by
the exit status (E39). ``by_diagnosis`` is the way back: from the words of ``ends`` to an outcome.
"""

from enum import StrEnum
from typing import Final

from lifefold.core.policy import ends
from lifefold.core.policy.ends import Diagnosis, Program, Trouble
from lifefold.core.policy.reasons import AbortReason, TransitionReason


class Outcome(StrEnum):
    """How a session ended."""

    SUCCESS = "success"
    """The agent says that it has done its work."""
    DENIED = "denied"
    """A tool was refused, and the agent went on without its result."""
    LIMITED = "limited"
    """The account has used up what it may use for some time."""
    LOGIN_REFUSED = "login_refused"
    PROMPT_TOO_LONG = "prompt_too_long"
    OUT_OF_CREDIT = "out_of_credit"
    TURN_LIMIT = "turn_limit"
    """The agent reached its own limit of steps."""
    BUDGET_SPENT = "budget_spent"
    """The agent reached the limit of money that its command line gave it."""
    OVERLOADED = "overloaded"
    """The service has no capacity; another try may succeed soon."""
    MODEL_UNKNOWN = "model_unknown"
    CONVERSATION_LOST = "conversation_lost"
    """The conversation to resume does not exist, or its new identifier is taken."""
    REFUSED_COMMAND = "refused_command"
    """The program accepts its arguments or settings not as they are."""
    NOTHING_DONE = "nothing_done"
    """The agent says that it is done, and nothing has changed. The fleet finds it, no adapter."""
    FAILED = "failed"
    """The agent says that it has failed, in no known words."""
    CRASHED = "crashed"
    """The program ended without a word about its work, or by a signal."""


_PROVIDER: Final = AbortReason.PROVIDER_ERROR
_UNKNOWN: Final = AbortReason.UNKNOWN

DIAGNOSES: Final = {
    Outcome.DENIED: Diagnosis(TransitionReason.PERMISSION_DENIED, AbortReason.PERMISSION_DENIED, Trouble.FATAL),
    Outcome.LOGIN_REFUSED: Diagnosis(TransitionReason.PERMISSION_DENIED, _PROVIDER, Trouble.FATAL),
    Outcome.OUT_OF_CREDIT: Diagnosis(TransitionReason.ABORTED, _PROVIDER, Trouble.FATAL),
    Outcome.MODEL_UNKNOWN: Diagnosis(TransitionReason.ABORTED, _PROVIDER, Trouble.FATAL),
    Outcome.REFUSED_COMMAND: Diagnosis(TransitionReason.ABORTED, _UNKNOWN, Trouble.FATAL),
    Outcome.BUDGET_SPENT: Diagnosis(TransitionReason.ABORTED, _UNKNOWN, Trouble.OTHER),
    Outcome.PROMPT_TOO_LONG: Diagnosis(TransitionReason.PROMPT_TOO_LONG, AbortReason.COMPACT_FAILURE, Trouble.OTHER),
    Outcome.TURN_LIMIT: Diagnosis(TransitionReason.MAX_TURNS, _UNKNOWN, Trouble.OTHER),
    Outcome.OVERLOADED: Diagnosis(TransitionReason.PROVIDER_529, _PROVIDER, Trouble.TRANSIENT),
    Outcome.LIMITED: Diagnosis(TransitionReason.RETRY, _PROVIDER, Trouble.TRANSIENT),
    Outcome.CONVERSATION_LOST: Diagnosis(TransitionReason.RETRY, _UNKNOWN, Trouble.LOST),
    Outcome.NOTHING_DONE: Diagnosis(TransitionReason.RETRY, _UNKNOWN, Trouble.OTHER),
}
"""The diagnosis of each outcome; an outcome without one is judged by the exit status."""

_OF_REASONS: Final = {
    (TransitionReason.PERMISSION_DENIED, AbortReason.PERMISSION_DENIED): Outcome.DENIED,
    (TransitionReason.PERMISSION_DENIED, _PROVIDER): Outcome.LOGIN_REFUSED,
    (TransitionReason.ABORTED, _PROVIDER): Outcome.OUT_OF_CREDIT,
    (TransitionReason.PROMPT_TOO_LONG, AbortReason.COMPACT_FAILURE): Outcome.PROMPT_TOO_LONG,
    (TransitionReason.PROVIDER_413, _PROVIDER): Outcome.PROMPT_TOO_LONG,
    (TransitionReason.MAX_TURNS, _UNKNOWN): Outcome.TURN_LIMIT,
    (TransitionReason.PROVIDER_529, _PROVIDER): Outcome.OVERLOADED,
    (TransitionReason.RETRY, _PROVIDER): Outcome.OVERLOADED,
}
"""The outcome of the words of ``ends``, by their reasons; they do not tell a limit from an overload."""


def diagnosis_of(
    outcome: Outcome, status: int | None = None, words: str = "", program: Program = Program.ANY
) -> Diagnosis | None:
    """Return the diagnosis of an outcome; None of a success.

    ``words`` are the last words of a program without a form of its own, and tell more than an outcome. The exit status
    of a ``program`` judges an outcome without reasons of its own.
    """
    if outcome is Outcome.SUCCESS:
        return None
    return ends.by_words(words) or DIAGNOSES.get(outcome) or ends.by_status(status, program)


def by_diagnosis(diagnosis: Diagnosis) -> Outcome | None:
    """Return the outcome that a diagnosis of last words means; None for words of no outcome."""
    return _OF_REASONS.get((diagnosis.transition_reason, diagnosis.abort_reason))
