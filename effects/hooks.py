"""Calls into the user's own code."""

from lifefold.effects.base import Effect


class CallHook(Effect, frozen=True):
    """Call the user's hook of this name with these arguments.

    With ``before`` it is called before the transition is committed, and its failure prevents the transition (A11,
    A14); otherwise the transition stands whatever the hook does. Not idempotent: what the user's code does is unknown.
    """

    name: str
    arguments: tuple[str | int | bool, ...] = ()
    before: bool = False
