"""The vocabulary: every effect and every activity that a reducer may ask for. Imports nothing of ours."""

from lifefold.effects.base import Activity, Effect
from lifefold.effects.hooks import CallHook
from lifefold.effects.kernel import Begin, CancelTimer, End, Postpone, StartTimer, Tell
from lifefold.effects.session import (
    BuildPrompt,
    CancelSession,
    ForceStopSession,
    IncrementSession,
    LogFatal,
    PrepareWorktree,
    RefreshWorktree,
    RunSession,
    StorePrompt,
)
from lifefold.effects.work import CheckOutWork, MergeWork, VerifyWork

__all__ = [
    "Activity",
    "Begin",
    "BuildPrompt",
    "CallHook",
    "CancelSession",
    "CancelTimer",
    "CheckOutWork",
    "Effect",
    "End",
    "ForceStopSession",
    "IncrementSession",
    "LogFatal",
    "MergeWork",
    "Postpone",
    "PrepareWorktree",
    "RefreshWorktree",
    "RunSession",
    "StartTimer",
    "StorePrompt",
    "Tell",
    "VerifyWork",
]
