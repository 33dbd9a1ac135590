"""A rehearsal: all effects and activities are recorded, and none is performed. Replaces the whole interpreter.

It shows three things:

- one method for many types
- the events that each activity must report, so that the fleet continues
- recognizing an effect that is requested again after a crash

    lifefold run examples/recorder.toml

The tasks come in their real order, to agents with their real names, with their real prompts, and each task succeeds at
once. The requests are in ``requested.jsonl`` among the files of the log, one JSON object per line. Use another log for
the real run, because the log of the rehearsal has all tasks done. A fleet file with this interpreter and one without it
are two fleets, so one log does not accept both.
"""

import json
import os
from typing import Final

import msgspec

from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Event
from lifefold.core.lifecycles import session
from lifefold.effects import (
    Activity,
    CancelSession,
    CheckOutWork,
    Effect,
    ForceStopSession,
    HoldTimeLimit,
    IncrementSession,
    InterruptSession,
    LogFatal,
    MergeWork,
    NotifyProcess,
    PauseTriggers,
    PrepareWorktree,
    ResumeTriggers,
    RunSession,
    SteerSession,
    StorePrompt,
    VerifyWork,
    WarnOfSilence,
)
from lifefold.interpreters.engine import ActivityContext, EffectContext, handles
from lifefold.interpreters.fleet_runner import RunContext


class Recorder:
    """Records each request once, and reports the success of every activity."""

    def __init__(self, context: RunContext, file: str = "requested.jsonl") -> None:
        """Read the requests of earlier runners of the log; remove a last line that a power cut has left incomplete."""
        self.file: Final = context.folder.root / file
        *lines, torn = self.file.read_bytes().split(b"\n") if self.file.exists() else [b""]
        if torn:
            os.truncate(self.file, self.file.stat().st_size - len(torn))
        self._known: Final[set[str]] = {json.loads(line)["id"] for line in lines}

    @handles(
        *(
            StorePrompt,
            CancelSession,
            InterruptSession,
            HoldTimeLimit,
            SteerSession,
            ForceStopSession,
            LogFatal,
            WarnOfSilence,
            IncrementSession,
        ),
        *(NotifyProcess, PauseTriggers, ResumeTriggers),
    )
    async def note(self, effect: Effect, context: EffectContext) -> None:
        """Record an effect."""
        self._write("/".join(str(part) for part in context.identity), context.within.key, effect)

    @handles(PrepareWorktree, CheckOutWork, RunSession, VerifyWork, MergeWork)
    async def pretend(self, activity: Activity, context: ActivityContext) -> None:
        """Record an activity, and report its success. It has no processes, so there is nothing to end."""
        if context.cleanup_only:
            return
        origin = context.origin
        begun = f"{origin.within.name}/{origin.ref}/{context.begin.slot}/{context.generation}"
        self._write(begun, origin.within.key, activity)
        if isinstance(activity, RunSession) and origin.entity.state is session.State.SPAWNING:
            await context.report(session.SessionStarted(activity.session_seq))
        await context.report(success_of(activity))

    def _write(self, identity: str, agent: str, requested: Effect | Activity) -> None:
        if identity not in self._known:
            self._known.add(identity)
            line = {"id": identity, "agent": agent, **msgspec.to_builtins(requested)}
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as file:
                file.write(json.dumps(line) + "\n")


def success_of(activity: Activity) -> Event:
    """Return the last event of a successful activity."""
    match activity:
        case RunSession():
            return session.SessionExited(session.Success())
        case CheckOutWork():
            return assignment.CheckedOut()
        case VerifyWork():
            return assignment.Verified()
        case MergeWork():
            return assignment.Merged()
        case _:
            return session.WorktreeReady()
