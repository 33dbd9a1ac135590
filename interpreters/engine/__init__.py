"""Run a system: decide on inputs, make them durable, and perform the requested effects, on anyio."""

from lifefold.interpreters.engine.activities import UnfinishedActivityError
from lifefold.interpreters.engine.clock import Clock, WallClock
from lifefold.interpreters.engine.command_queue import CommandQueue, Unattended
from lifefold.interpreters.engine.engine import Engine, Observer
from lifefold.interpreters.engine.failures import SKIP, STOP, OnError, Then
from lifefold.interpreters.engine.interpreter import ActivityContext, EffectContext, Interpreter, Unreached, handles
from lifefold.interpreters.engine.ledger import Decision, Ledger, LogMismatchError
from lifefold.interpreters.engine.log_writer import ACCEPTED, REFUSED, Accepted, LogWriter
from lifefold.interpreters.engine.misuse import EngineMisuseError
from lifefold.interpreters.missing import MissingHandlersError

__all__ = [
    "ACCEPTED",
    "REFUSED",
    "SKIP",
    "STOP",
    "Accepted",
    "ActivityContext",
    "Clock",
    "CommandQueue",
    "Decision",
    "EffectContext",
    "Engine",
    "EngineMisuseError",
    "Interpreter",
    "Ledger",
    "LogMismatchError",
    "LogWriter",
    "MissingHandlersError",
    "Observer",
    "OnError",
    "Then",
    "Unattended",
    "UnfinishedActivityError",
    "Unreached",
    "WallClock",
    "handles",
]
