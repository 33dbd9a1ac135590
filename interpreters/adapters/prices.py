"""Prices of models: tokens that an agent program reports become money. Pure.

A price is linear in each kind of token. So the price of a total is the sum of the prices of its parts. The total of a
conversation never costs less than before.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Final

import msgspec

from lifefold.interpreters.adapters.facts import Cost, Spent, Tokens

PER: Final = 1_000_000
"""The number of tokens that a price is for."""


class Price(msgspec.Struct, frozen=True):
    """The price of a model, in millionths of a US dollar for a million tokens of each kind."""

    input: int
    cached_input: int
    output: int


Prices = Mapping[str, Price]
"""The prices by the names of the models."""


def money_of(tokens: Tokens, price: Price) -> int:
    """Return what tokens cost, in millionths of a US dollar, rounded up. Writing a cache costs as much as input."""
    parts = (
        (tokens.input + tokens.cache_write) * price.input
        + tokens.cache_read * price.cached_input
        + tokens.output * price.output
    )
    return -(-parts // PER)


def priced(spent: Spent, prices: Prices, model: str) -> Spent:
    """Return a total with its money; unchanged if the agent has named money, or if a price is missing.

    ``model`` is the agent's model in the fleet file. It counts for tokens that the agent reports for no model, or for a
    model without a price. The total before the session has no models, so it is dropped.
    """
    money = None if spent.total.microusd is not None else _money(spent, prices, model)
    if money is None:
        return spent
    return msgspec.structs.replace(spent, total=Cost(spent.total.tokens, money), before=None)


def _money(spent: Spent, prices: Prices, model: str) -> int | None:
    usual = prices.get(model)
    parts = [(each.cost.tokens, prices.get(each.model, usual)) for each in spent.models]
    if not parts or reduce(Tokens.plus, (tokens for tokens, _ in parts), Tokens()) != spent.total.tokens:
        parts = [(spent.total.tokens, usual)]
    known = [(tokens, price) for tokens, price in parts if price is not None]
    return sum(money_of(*each) for each in known) if len(known) == len(parts) else None
