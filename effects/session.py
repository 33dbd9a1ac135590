"""The effects of an agent's session: the side effects of its table, and the work of its states."""

from lifefold.effects.base import Activity, Effect


class StorePrompt(Effect, frozen=True):
    """Keep the text of the next session's prompt."""

    idempotent = True

    prompt: str


class CancelSession(Effect, frozen=True):
    """Ask the running session to end by itself; it may take its grace period.

    Idempotent as long as it reaches the session that ran at the decision, and no later one.
    """

    idempotent = True


class ForceStopSession(Effect, frozen=True):
    """Kill the session now: the grace period is over."""

    idempotent = True


class WarnOfSilence(Effect, frozen=True):
    """Tell the operator that the session has shown no progress for ``silent_ms``; after ``end_ms`` it is ended."""

    idempotent = True

    silent_ms: int
    end_ms: int


class InterruptSession(Effect, frozen=True):
    """Send SIGINT to the session's own process, which has been silent for ``silent_ms``, to interrupt a hanging call.

    An agent may take a second signal as a request to end. So the sender keeps the identity of the signal it sent.
    """

    recognised = True

    silent_ms: int


class SteerSession(Effect, frozen=True):
    """Give the running session a message without ending it. ``number`` identifies the message within the session.

    The session takes its messages in the order of their numbers, each once. An ``urgent`` message ends the present turn
    of the agent. Idempotent as long as it reaches the session that ran at the decision, and no later one.
    """

    idempotent = True

    number: int
    text: str
    urgent: bool = False


class HoldTimeLimit(Effect, frozen=True):
    """Let the time limit of the running session stand still while it is ``held``, and go on afterwards."""

    idempotent = True

    held: bool


class LogFatal(Effect, frozen=True):
    """Report an error that no retry will fix."""

    idempotent = True

    message: str


class IncrementSession(Effect, frozen=True):
    """Report that the session number rose to ``session_seq``. A notification: the reducer has counted already."""

    idempotent = True

    session_seq: int


class PrepareWorktree(Activity, frozen=True):
    """Make the agent's worktree."""


class BuildPrompt(Activity, frozen=True):
    """Select the agent's next work and write its prompt."""

    session_seq: int


class RunSession(Activity, frozen=True):
    """Run one session of the agent's command with ``prompt``, for at most ``timeout_ms``.

    ``attempt`` counts every session of this agent, ``session_seq`` only the completed ones before it. Ending a session
    means to ask it to end, to wait ``grace_ms`` and then to kill it.
    """

    opaque = ("prompt",)

    prompt: str
    session_seq: int
    attempt: int
    grace_ms: int
    timeout_ms: int | None = None


class RefreshWorktree(Activity, frozen=True):
    """Merge the finished session's work and prepare its worktree for the next session."""

    session_seq: int


class FollowOutput(Activity, frozen=True):
    """Read the output of the running session as it grows, and report the facts in it, each with its position.

    The output is read from its beginning, also by a runner that has restarted. Nothing is reported of an agent program
    whose output has no facts.
    """


class WatchOutput(Activity, frozen=True):
    """Watch the running session for signs of progress: its output grows, or its heartbeat file is touched.

    Report a silence as long as the next of ``steps_ms``, in milliseconds. After such a report, report the next sign,
    too. A living process alone is no sign of progress.
    """

    steps_ms: tuple[int, ...]
