"""What the sessions of one conversation are charged, by the rule of docs/adapters.md."""

from collections.abc import Iterable
from typing import Protocol

from lifefold.interpreters.adapters import Cost, Counted, Fact, Spent, Tokens
from lifefold.interpreters.adapters.reading import highest


class Told(Protocol):
    """A session with its facts."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts, in order."""
        ...


def charged(sessions: Iterable[Told]) -> Tokens:
    """Return the charge of sessions of one conversation, in order.

    A total of the conversation replaces what was charged before, a total of the session is added.
    """
    before = Cost()
    for session in sessions:
        totals = {each.counted: each.total for each in session.facts if isinstance(each, Spent)}
        if whole := totals.get(Counted.CONVERSATION):
            before = highest(before, whole)
        elif own := totals.get(Counted.SESSION):
            before = before.plus(own)
    return before.tokens
