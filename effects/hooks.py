"""Calls into the user's own code."""

from lifefold.effects.base import Effect


class CallHook(Effect, frozen=True):
    """Call the user's hook of this name with these arguments.

    With ``before`` it is called before the transition is committed, and its failure prevents the transition (A11,
    A14). Otherwise the transition stands, with any outcome of the hook. The user's code is unknown to lifefold: a hook
    that must not run twice for one transition has to recognise the effect's identity.
    """

    recognised = True

    name: str
    arguments: tuple[str | int | bool, ...] = ()
    before: bool = False
