"""Measuring on a shared machine: contenders take turns, and are compared within a round only.

A *turn* is one measurement of one contender, a *round* one turn of each. The first contender changes from round to
round. Ratios are computed within each round, so a disturbance longer than a turn affects both sides. The result is the
median over the rounds; the least and the greatest ratio are printed beside it.
"""

import gc
from collections.abc import Callable, Mapping, Sequence
from statistics import median

Turn = Callable[[], tuple[float, object]]
"""Returns the cost and an outcome, which must be equal for all contenders."""

Costs = dict[str, list[float]]
"""The costs of each contender, round by round."""


def take_turns(contenders: Mapping[str, Turn], rounds: int) -> Costs:
    """Measure every contender ``rounds`` times, after one round that is not recorded."""
    costs: Costs = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(rounds + 1):
        begin = number % len(names)
        outcomes: dict[str, object] = {}
        for name in (*names[begin:], *names[:begin]):
            gc.collect()
            cost, outcomes[name] = contenders[name]()
            if number:
                costs[name].append(cost)
        for name, outcome in outcomes.items():
            assert outcome == outcomes[names[0]], f"{name} ends with {outcome}, {names[0]} with {outcomes[names[0]]}"
    return costs


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Return the ratios of two contenders' costs, round by round."""
    return [one / other for one, other in zip(over, under, strict=True)]


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that ``percent`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def spread(values: Sequence[float], form: str = "{:,.2f}") -> str:
    """Return the median with the least and the greatest of the values."""
    return f"{form.format(median(values))} ({form.format(min(values))} to {form.format(max(values))})"
