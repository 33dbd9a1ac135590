"""The return of granted money that is not needed."""

from lifefold.effects.base import Effect


class ReturnBudget(Effect, frozen=True):
    """Return ``amount_microusd`` (a millionth of a dollar each) to the grantor of this holder's lease.

    An interpreter that adds the amounts up must keep the identities of the effects that it added.
    """

    recognised = True

    holder: str
    amount_microusd: int
