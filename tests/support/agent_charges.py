"""What the sessions of one conversation are charged, by the rule of docs/adapters.md."""

from collections.abc import Iterable
from typing import Protocol

from lifefold.interpreters.adapters import Counted, Fact, Spent, Tokens


class Told(Protocol):
    """A session with its facts."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts, in order."""
        ...


def charged(sessions: Iterable[Told]) -> Tokens:
    """Return the charge of sessions of one conversation, in order; the rule of the core, by kind of token.

    No session is taken for a killed one. So the result is less than the costs, if some were killed and others ended.
    """
    charged, unsaved = Tokens(), Tokens()
    for session in sessions:
        totals = {each.counted: each for each in session.facts if isinstance(each, Spent)}
        if whole := totals.get(Counted.CONVERSATION):
            total, held = whole.total.tokens, charged.minus(unsaved)
            seen = held if whole.before is None else _least(whole.before.tokens, held)
            charged = charged.plus(total.minus(seen))
            unsaved = unsaved if whole.before is None else charged.minus(total)
        elif own := totals.get(Counted.SESSION):
            charged = charged.plus(own.total.tokens)
    return charged


def _least(one: Tokens, other: Tokens) -> Tokens:
    return one.minus(one.minus(other))
