"""What a fleet file says of budgets: what may be spent by all, by an agent, on a task; and what a claim is given."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from lifefold.core.fleet import Budget, Caps
from lifefold.core.lifecycles.budget.amounts import Amounts, Resource
from lifefold.core.lifecycles.session import Limits
from lifefold.interpreters.fleet_file import forms
from lifefold.interpreters.fleet_file.keys import Key, Section, said_but_defaults
from lifefold.interpreters.fleet_file.table import Table

MOST: Final = 1_000_000_000
"""So many tokens, or sessions, are the highest limit."""

USD = Key[int | None](forms.MONEY, "the money that may be spent, in US dollars", None, absent="no limit")
TOKENS = Key[int | None](forms.integer(1, MOST), "the tokens that may be read and written", None, absent="no limit")
TIME = Key[int | None](forms.duration(1), "how long sessions may take, all together", None, absent="no limit")
SESSIONS = Key[int | None](
    forms.integer(1, MOST),
    "how many sessions there may be; one that is interrupted and goes on is one",
    None,
    absent="no limit",
)


class AgentBudgetKeys(Section, header="[agents.budget]"):
    """What one agent may spend; of several that are made by a ``count``, each."""

    usd = USD
    tokens = TOKENS
    time = TIME
    sessions = SESSIONS


class TaskBudgetKeys(Section, header="[tasks.budget]"):
    """What may be spent on a task and on its parts, over all attempts."""

    usd = USD
    tokens = TOKENS
    time = TIME
    sessions = SESSIONS


UNREPORTED: Final = forms.choice("free", "share")


class FleetBudgetKeys(Section, header="[fleet.budget]"):
    """What all agents together may spend, and how budgets are kept."""

    usd = USD
    tokens = TOKENS
    time = TIME
    sessions = SESSIONS
    session_usd = Key[int | None](
        forms.MONEY,
        "what is set aside for a claim before its session begins, and what the agent is told in `LIFEFOLD_BUDGET_USD`;"
        " needed where `usd` is limited",
        None,
    )
    session_tokens = Key[int | None](
        forms.integer(1, MOST),
        "the same for tokens, in `LIFEFOLD_BUDGET_TOKENS`; needed where `tokens` are limited",
        None,
    )
    resets = Key[int](
        forms.duration(1_000),
        "after how long all budgets are filled anew; it begins with the first session after a filling",
        0,
        absent="never",
    )
    unreported = Key[str](
        UNREPORTED,
        'what a session is taken to have cost that does not say it: nothing, or with `"share"` what was set aside',
        "free",
    )


def read_caps(table: Table, *, finish: bool = True) -> Caps:
    """Return the limits in one of these tables."""
    caps = Caps(table.read(USD), table.read(TOKENS), table.read(TIME), table.read(SESSIONS))
    if finish:
        table.finish()
    return caps


def read_budget(table: Table) -> Budget:
    """Return what [fleet.budget] says. How much time a claim is given depends on the agents; see ``with_time``."""
    caps = read_caps(table, finish=False)
    budget = Budget(
        caps,
        Amounts(table.read(FleetBudgetKeys.session_usd) or 0, table.read(FleetBudgetKeys.session_tokens) or 0, 0, 1),
        table.read(FleetBudgetKeys.resets),
        table.read(FleetBudgetKeys.unreported) == "share",
    )
    table.finish()
    return budget


def with_time(budget: Budget, limits: Iterable[Limits]) -> Budget:
    """Return a budget by which a claim is given the time of the longest session that there may be; 0 if any may."""
    longest_ms = [0 if each.session_timeout_ms is None else each.session_timeout_ms + each.grace_ms for each in limits]
    return replace(budget, share=budget.share.but(Resource.TIME, max(longest_ms, default=0) if all(longest_ms) else 0))


def check_caps(table: Table, caps: Caps, share: Amounts) -> None:
    """Report limits of which it is not said how much a claim is given, or which are less than that."""
    for name, problem in problems_of(caps, share):
        table.problem(name, problem)


def problems_of(caps: Caps, share: Amounts) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with limits where a claim is given this: the key, and what is wrong."""
    for resource, key in KEYS.items():
        cap, given = caps.of(resource), share.of(resource)
        if cap is not None and not given:
            yield key.name, f"it is not said how much of it a session is given; {_SHARES[resource]}"
        elif cap is not None and cap < given:
            least, found = key.form.write(given), key.form.write(cap)
            yield key.name, f"found {found}; accepted: at least what a session is given, {least}"


KEYS: Final[Mapping[Resource, Key[int | None]]] = {
    Resource.MONEY: USD,
    Resource.TOKENS: TOKENS,
    Resource.TIME: TIME,
    Resource.SESSIONS: SESSIONS,
}
"""The keys of every table of limits, by what they limit."""

_SHARES: Final = {
    Resource.MONEY: "write session_usd under [fleet.budget]",
    Resource.TOKENS: "write session_tokens under [fleet.budget]",
    Resource.TIME: "write a session_timeout for every agent: the longest, with its grace, is what a session is given",
}


def said_caps(caps: Caps) -> dict[str, object]:
    """Return limits as the file would write them; nothing if there are none."""
    meaning = said_but_defaults(_written(caps))
    return {"budget": meaning} if meaning else {}


def _written(caps: Caps) -> dict[Key[Any], object]:
    return {key: caps.of(resource) for resource, key in KEYS.items()}


def said_budget(budget: Budget) -> dict[str, object]:
    """Return what [fleet.budget] means as the file would write it; nothing if it says nothing."""
    meaning = said_but_defaults(
        {
            **_written(budget.caps),
            FleetBudgetKeys.session_usd: budget.share.microusd or None,
            FleetBudgetKeys.session_tokens: budget.share.tokens or None,
            FleetBudgetKeys.resets: budget.period_ms,
            FleetBudgetKeys.unreported: "share" if budget.charges_the_silent else "free",
        }
    )
    return {"budget": meaning} if meaning else {}
