"""Calls into the user's own code."""

from lifefold.effects.base import Effect


class CallHook(Effect, frozen=True):
    """Call the user's hook of this name with these arguments.

    With ``before`` it is called before the transition is committed, and its failure prevents the transition (A11,
    A14); otherwise the transition stands whatever the hook does. What the user's code does is unknown: a hook that must
    not be called twice for one transition has to know the identity again.
    """

    recognised = True

    name: str
    arguments: tuple[str | int | bool, ...] = ()
    before: bool = False
