"""Reasons in plain words: what stands in a record as ``Error(exit status 1)`` is shown as ``exit status 1``.

Document 000 writes the end of a session as ``Error(message)``, and records keep that form, as every log has it.
An operator reads the message alone. A reason has the form at its beginning, or after the words of the rules before it.
So code in an agent's own sentence stays as it is. The state of a task in a sentence of the rules, as ``depends on T1,
which is FAILED``, becomes the word of the screens.
"""

import re
from typing import Final

from lifefold.core.lifecycles.task import State
from lifefold.interpreters.explain.task_words import is_in

STOPPED: Final = "stopped by the operator"
DRAINED: Final = "drained by the operator"
KILLED: Final = "killed by the operator"
"""The reasons of a stop, which an operator gives without one: the tasks and messages that it ends have them."""

_STATE: Final = re.compile(
    rf"(?:(?<=\bwhich )|(?<=\bthe task )|(?<=\bbut it )|(?<=\ba part of it, ))is (?P<state>{'|'.join(State)})\b"
)
"""A state in the sentences of the board's rules."""

_FORM: Final = re.compile(r"(?:^|(?<=: )|(?<=; )|(?<=was )|(?<=is )|(?<=, )|(?<=\())(?:Error|Timeout)\(")
"""The beginning of the form, where a reason can have it."""


def given_reason(reason: str, actor: str = "") -> str:
    """Return the reason that an operator has given; empty if the command itself has written one.

    Such a reason repeats the command, and the operator whose name stands beside it. Logs of earlier versions have
    ``cancelled by NAME`` and ``rejected by NAME``, too; ``actor`` is then ``operator:NAME``.
    """
    name = actor.partition(":")[2]
    return "" if reason in {STOPPED, DRAINED, KILLED, f"cancelled by {name}", f"rejected by {name}"} else reason


def in_plain_words(reason: str) -> str:
    """Return a reason without the form of document 000 around messages, and with the words of states."""
    at, reason = 0, _STATE.sub(lambda found: is_in(found["state"]), reason)
    while (found := _FORM.search(reason, at)) is not None:
        message, rest = _parted(reason[found.end() :])
        at, reason = found.start() + len(message), f"{reason[: found.start()]}{message}{rest}"
    return reason


def _parted(text: str) -> tuple[str, str]:
    """Return the message before the closing bracket of the form, and what follows it; a cut message has no bracket."""
    depth = 1
    for place, each in enumerate(text):
        depth += (each == "(") - (each == ")")
        if not depth:
            return text[:place], text[place + 1 :]
    # A message with an open bracket of its own: the last bracket is that of the form.
    before, closing, after = text.rpartition(")")
    return (before, after) if closing else (text, "")
