"""A rehearsal: nothing is done, and everything that is asked for is taken down. Replaces the whole interpreter.

What it shows: one method for many types; what each activity has to report so that the fleet goes on; how something that
is asked for again after a crash is known again.

    lifefold run examples/recorder.toml

The tasks come in their real order, to agents with their real names, with their real prompts, and every one of them
succeeds at once. What was asked for is in ``asked.jsonl`` among the files of the log, one JSON object a line. Do not
rehearse with the log of the performance: it says that all is done. (A fleet file with this interpreter and one without
are two fleets, so that one log does not take both.)
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
    IncrementSession,
    InterruptSession,
    LogFatal,
    MergeWork,
    NotifyProcess,
    PauseTriggers,
    PrepareWorktree,
    ResumeTriggers,
    RunSession,
    StorePrompt,
    VerifyWork,
    WarnOfSilence,
)
from lifefold.interpreters.engine import ActivityContext, EffectContext, handles
from lifefold.interpreters.fleet_runner import RunContext


class Recorder:
    """Takes down what it is asked for, once each, and says of every activity that it went well."""

    def __init__(self, surroundings: RunContext, file: str = "asked.jsonl") -> None:
        """Read what an earlier runner of the same log was asked for; cut off a last line that a power cut has torn."""
        self.file: Final = surroundings.folder.root / file
        *lines, torn = self.file.read_bytes().split(b"\n") if self.file.exists() else [b""]
        if torn:
            os.truncate(self.file, self.file.stat().st_size - len(torn))
        self._known: Final[set[str]] = {json.loads(line)["id"] for line in lines}

    @handles(
        *(StorePrompt, CancelSession, InterruptSession, ForceStopSession, LogFatal, WarnOfSilence, IncrementSession),
        *(NotifyProcess, PauseTriggers, ResumeTriggers),
    )
    async def note(self, effect: Effect, occasion: EffectContext) -> None:
        """Take an effect down."""
        self._write("/".join(str(part) for part in occasion.identity), occasion.within.key, effect)

    @handles(PrepareWorktree, CheckOutWork, RunSession, VerifyWork, MergeWork)
    async def pretend(self, activity: Activity, context: ActivityContext) -> None:
        """Take an activity down, and report that it went well. There is never anything of it to be ended."""
        if context.cleanup_only:
            return
        occasion = context.occasion
        begun = f"{occasion.within.name}/{occasion.ref}/{context.begin.slot}/{context.generation}"
        self._write(begun, occasion.within.key, activity)
        if isinstance(activity, RunSession) and occasion.entity.state is session.State.SPAWNING:
            await context.report(session.SessionStarted(activity.session_seq))
        await context.report(success_of(activity))

    def _write(self, known_as: str, agent: str, asked: Effect | Activity) -> None:
        if known_as not in self._known:
            self._known.add(known_as)
            told = {"id": known_as, "agent": agent, **msgspec.to_builtins(asked)}
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as file:
                file.write(json.dumps(told) + "\n")


def success_of(activity: Activity) -> Event:
    """Return what an activity reports last when all is well."""
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
