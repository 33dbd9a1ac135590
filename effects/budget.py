"""What becomes of money that was granted and is not needed."""

from lifefold.effects.base import Effect


class ReturnBudget(Effect, frozen=True):
    """Give ``amount_microusd`` (a millionth of a dollar each) back to whoever granted the lease of this holder.

    Whoever adds it up has to keep the identities of what was added.
    """

    recognised = True

    holder: str
    amount_microusd: int
