"""The prices of models turn tokens into money: each token once, and a later total never costs less."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.adapters import Cost, Counted, ModelCost, Spent, Tokens
from lifefold.interpreters.adapters.prices import Price, money_of, priced

COUNTS = st.integers(0, 10**9)
TOKENS = st.builds(Tokens, COUNTS, COUNTS, COUNTS, COUNTS)
PRICES = st.builds(Price, *[st.integers(0, 10**9)] * 3)
PRICE = Price(1_250_000, 125_000, 10_000_000)
"""1.25, 0.125 and 10 US dollars for a million tokens."""


def spent(tokens: Tokens, *models: ModelCost, microusd: int | None = None) -> Spent:
    """Return a total."""
    return Spent("c1", Cost(tokens, microusd), Counted.SESSION, models)


def test_each_kind_of_token_has_its_price() -> None:
    """A cache is written at the price of input. A part of a millionth of a dollar counts as one."""
    million = 1_000_000
    assert money_of(Tokens(input=million), PRICE) == 1_250_000
    assert money_of(Tokens(cache_write=million), PRICE) == 1_250_000
    assert money_of(Tokens(cache_read=million), PRICE) == 125_000
    assert money_of(Tokens(output=million), PRICE) == 10_000_000
    assert money_of(Tokens(cache_read=1), PRICE) == 1
    assert money_of(Tokens(), PRICE) == 0


@given(TOKENS, TOKENS, PRICES)
def test_a_sum_costs_the_sum_of_its_parts(one: Tokens, two: Tokens, price: Price) -> None:
    """But for rounding; so a total that has grown never costs less."""
    parts, whole = (money_of(one, price), money_of(two, price)), money_of(one.plus(two), price)
    assert max(parts) <= whole <= sum(parts) <= whole + 1


@given(TOKENS, PRICES)
def test_the_money_is_the_exact_amount_rounded_up(tokens: Tokens, price: Price) -> None:
    """Compared with fractions."""
    fresh, cached, out = (Fraction(each, 1_000_000) for each in (price.input, price.cached_input, price.output))
    exact = (tokens.input + tokens.cache_write) * fresh + tokens.cache_read * cached + tokens.output * out
    assert 0 <= money_of(tokens, price) - exact < 1


@given(TOKENS, TOKENS)
def test_tokens_by_model_have_the_prices_of_their_models(one: Tokens, two: Tokens) -> None:
    """A model without a price has that of the agent's model."""
    other = Price(3, 2, 1)
    found = spent(one.plus(two), ModelCost("big", Cost(one)), ModelCost("unknown", Cost(two)))
    money = money_of(one, PRICE) + money_of(two, other)
    assert priced(found, {"big": PRICE, "mine": other}, "mine").total == Cost(one.plus(two), money)
    assert priced(found, {"big": PRICE}, "mine") == found


@given(TOKENS)
def test_a_total_is_not_priced_twice_or_without_a_price(tokens: Tokens) -> None:
    """Money that the agent names counts. Without a price the cost in money stays unknown."""
    named = spent(tokens, microusd=7)
    assert priced(named, {"m": PRICE}, "m") == named
    assert priced(spent(tokens), {"m": PRICE}, "other") == spent(tokens)
    assert priced(spent(tokens), {"m": PRICE}, "m").total.microusd == money_of(tokens, PRICE)


def test_models_that_do_not_add_up_are_not_used() -> None:
    """The total has all tokens, so its price is the agent's model's."""
    found = spent(Tokens(10), ModelCost("big", Cost(Tokens(4))))
    assert priced(found, {"big": Price(0, 0, 0), "mine": PRICE}, "mine").total.microusd == money_of(Tokens(10), PRICE)
