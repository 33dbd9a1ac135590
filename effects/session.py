"""What an agent's session asks of the world: the side effects of its table, and the work that its states stand for."""

from lifefold.effects.base import Activity, Effect


class StorePrompt(Effect, frozen=True):
    """Keep the text of the prompt that the next session gets."""

    idempotent = True

    prompt: str


class CancelSession(Effect, frozen=True):
    """Ask the running session to end by itself; it may take its grace period.

    Idempotent as long as the one that is asked is the one that ran when it was decided, and none after it.
    """

    idempotent = True


class ForceStopSession(Effect, frozen=True):
    """The grace period is over: kill the session now."""

    idempotent = True


class WarnOfSilence(Effect, frozen=True):
    """Tell people that the session has shown no sign of progress for ``silent_ms``; after ``end_ms`` it is ended."""

    idempotent = True

    silent_ms: int
    end_ms: int


class InterruptSession(Effect, frozen=True):
    """Ask the session's own process to leave what it hangs in (SIGINT); it has been silent for ``silent_ms``.

    An agent may take a second signal for the wish that it ends: who sends one keeps the identity of what was sent.
    """

    recognised = True

    silent_ms: int


class LogFatal(Effect, frozen=True):
    """Report an error that no retry will mend."""

    idempotent = True

    message: str


class IncrementSession(Effect, frozen=True):
    """The session number went up to ``session_seq``. A notification: the reducer has counted already."""

    idempotent = True

    session_seq: int


class PrepareWorktree(Activity, frozen=True):
    """Make the place where the agent works."""


class BuildPrompt(Activity, frozen=True):
    """Find out what the agent is to do next and write its prompt."""

    session_seq: int


class RunSession(Activity, frozen=True):
    """Run one session of the agent's command with ``prompt``, for at most ``timeout_ms``.

    ``attempt`` counts every session of this agent, ``session_seq`` only those that were completed before it. To end a
    session is to ask politely, to wait ``grace_ms`` and then to kill it.
    """

    opaque = ("prompt",)

    prompt: str
    session_seq: int
    attempt: int
    grace_ms: int
    timeout_ms: int | None = None


class RefreshWorktree(Activity, frozen=True):
    """Bring the finished session's work home and make its worktree ready for the next session."""

    session_seq: int


class WatchOutput(Activity, frozen=True):
    """Look for signs of progress of the session that runs: its output grows, or its heartbeat file is touched.

    Say when there was none for as long as the next of ``steps_ms`` says, in milliseconds, and, on a step, when there is
    one again. That the process is alive is none.
    """

    steps_ms: tuple[int, ...]
