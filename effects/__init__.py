"""The vocabulary: every effect and every activity that a reducer may request. Imports nothing of lifefold."""

from lifefold.effects.base import Activity, Effect
from lifefold.effects.budget import ReturnBudget
from lifefold.effects.hooks import CallHook
from lifefold.effects.kernel import Begin, CancelTimer, End, Postpone, StartTimer, Tell
from lifefold.effects.notify import DeliverNotification, Notification, NotificationKind
from lifefold.effects.process import (
    DrainProcess,
    NotifyProcess,
    PauseTriggers,
    ResumeTriggers,
    ServeTriggers,
    StartProcess,
)
from lifefold.effects.runtime import LogFailure, ReportStuck, ReportTaskFailed, SignalPreemption
from lifefold.effects.service import AwaitTrigger, Changed, Cron, Every
from lifefold.effects.session import (
    BuildPrompt,
    CancelSession,
    FollowOutput,
    ForceStopSession,
    HoldTimeLimit,
    IncrementSession,
    InterruptSession,
    LogFatal,
    PrepareWorktree,
    RefreshWorktree,
    RunSession,
    SteerSession,
    StorePrompt,
    WarnOfSilence,
    WatchOutput,
)
from lifefold.effects.status import EmitTelemetry, SaveState
from lifefold.effects.supervision import AbortSession, EscalateSilence, KeepDeadLetter, KillOverdue
from lifefold.effects.work import CheckOutWork, InspectWork, MergeWork, ParkWork, VerifyWork, WatchBranch

__all__ = [
    "AbortSession",
    "Activity",
    "AwaitTrigger",
    "Begin",
    "BuildPrompt",
    "CallHook",
    "CancelSession",
    "CancelTimer",
    "Changed",
    "CheckOutWork",
    "Cron",
    "DeliverNotification",
    "DrainProcess",
    "Effect",
    "EmitTelemetry",
    "End",
    "EscalateSilence",
    "Every",
    "FollowOutput",
    "ForceStopSession",
    "HoldTimeLimit",
    "IncrementSession",
    "InspectWork",
    "InterruptSession",
    "KeepDeadLetter",
    "KillOverdue",
    "LogFailure",
    "LogFatal",
    "MergeWork",
    "Notification",
    "NotificationKind",
    "NotifyProcess",
    "ParkWork",
    "PauseTriggers",
    "Postpone",
    "PrepareWorktree",
    "RefreshWorktree",
    "ReportStuck",
    "ReportTaskFailed",
    "ResumeTriggers",
    "ReturnBudget",
    "RunSession",
    "SaveState",
    "ServeTriggers",
    "SignalPreemption",
    "StartProcess",
    "StartTimer",
    "SteerSession",
    "StorePrompt",
    "Tell",
    "VerifyWork",
    "WarnOfSilence",
    "WatchBranch",
    "WatchOutput",
]
