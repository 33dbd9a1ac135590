"""Any command: a process that is judged by its exit status and its last line.

A line ``{"lifefold": {"cost_usd": 0.12, "input_tokens": 1, "output_tokens": 2}}`` has the total of the session up to
then. Totals in the forms of Claude Code and Codex are read, too, because scripts run these programs.
"""

from typing import Any, Final

import msgspec

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import hostile, reading, verdicts
from lifefold.interpreters.adapters.adapter import Brief, Conversation, Now, Reports
from lifefold.interpreters.adapters.claude import Claude
from lifefold.interpreters.adapters.codex import Codex
from lifefold.interpreters.adapters.facts import ConversationBegan, Cost, Counted, Ended, Spent, Tokens
from lifefold.interpreters.adapters.reading import Reading, Step

_SIGNALS: Final = 128
_KNOWN: Final = (Claude(), Codex())


class _Line(msgspec.Struct, frozen=True):
    """The relevant fields of a line, of any type, because agents write them."""

    type: Any = None
    lifefold: Any = None


_DECODER: Final = hostile.decoder(_Line)


class Command:
    """A command without a format of its own."""

    name = "command"
    initial = Reading()
    resumable = False
    chooses_conversation = False
    reports = Reports.USD
    tested_versions: tuple[str, ...] = ()
    version_argv: tuple[str, ...] = ()

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:  # noqa: ARG002  # it has none
        """Return the arguments, which are the command, with the prompt in the place of ``{prompt}``."""
        return tuple(each.replace("{prompt}", brief.prompt) for each in brief.arguments)

    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        """Return the facts of one line; the last line with text is kept."""
        found = hostile.decoded(_DECODER, line)
        own = hostile.table(found.lifefold) if found else {}
        if own:
            tokens = Tokens(
                input=hostile.count(own.get("input_tokens")), output=hostile.count(own.get("output_tokens"))
            )
            return reading.spent(state, Cost(tokens, hostile.microusd(own.get("cost_usd"))), Counted.SESSION)
        text = hostile.plain(line)
        if text:
            state = msgspec.structs.replace(state, last=text[: reading.SENTENCE_CHARS])
        return _known(state, line, now) if found and hostile.name(found.type) in _TYPES else (state, ())

    def finish(self, state: Reading, status: int | None) -> Ended:
        """Return the end of the session: its exit status, and its last line for people."""
        if status == 0:
            return Ended(Outcome.SUCCESS, state.last)
        if status is None:
            how = "ended in an unknown way"
        else:
            how = f"ended by signal {-status}" if status < 0 else f"exit status {status}"
        reason = f"{how}: {state.last}" if state.last else how
        signalled = status is None or status < 0 or status > _SIGNALS
        words = None if signalled else verdicts.known(state.last, status)
        return Ended(words or Outcome.CRASHED, reason)


_TYPES: Final = frozenset({"result", "thread.started", "turn.completed"})


def _known(state: Reading, line: bytes, now: Now) -> Step:
    """Read a total in the form of a known program."""
    kept = state
    facts: reading.Facts = ()
    for program in _KNOWN:
        kept, more = program.read(kept, line, now)
        facts += tuple(each for each in more if isinstance(each, ConversationBegan | Spent))
    named = {"conversation": kept.conversation, "totals": kept.totals}
    return msgspec.structs.replace(state, **named), facts
