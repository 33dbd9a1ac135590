"""The budgets of a fleet file: of the fleet, of an agent, of a task; and the reservation of a claim."""

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
"""The highest limit of tokens or sessions."""

USD = Key[int | None](forms.MONEY, "the money, in US dollars", None, absent="no limit")
TOKENS = Key[int | None](forms.integer(1, MOST), "the input and output tokens", None, absent="no limit")
TIME = Key[int | None](forms.duration(1), "the time of all sessions together", None, absent="no limit")
SESSIONS = Key[int | None](
    forms.integer(1, MOST),
    "the number of sessions; an interrupted session that is continued counts once",
    None,
    absent="no limit",
)


class AgentBudgetKeys(Section, header="[agents.budget]"):
    """The budget of one agent; with ``count``, of each."""

    usd = USD
    tokens = TOKENS
    time = TIME
    sessions = SESSIONS


class TaskBudgetKeys(Section, header="[tasks.budget]"):
    """The budget of a task and its parts, over all attempts."""

    usd = USD
    tokens = TOKENS
    time = TIME
    sessions = SESSIONS


UNREPORTED: Final = forms.choice("free", "share")


class FleetBudgetKeys(Section, header="[fleet.budget]"):
    """The budget of all agents together, and the rules of all budgets."""

    usd = USD
    tokens = TOKENS
    time = TIME
    sessions = SESSIONS
    session_usd = Key[int | None](
        forms.MONEY,
        "the reservation of a claim, and the value of `LIFEFOLD_BUDGET_USD` for its session;"
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
        "the period after which all budgets are refilled; it begins with the first session after a refill",
        0,
        absent="never",
    )
    unreported = Key[str](
        UNREPORTED, 'the cost of a session that reports none: nothing, or with `"share"` its reservation', "free"
    )


def read_caps(table: Table, *, finish: bool = True) -> Caps:
    """Return the limits in one of these tables."""
    caps = Caps(table.read(USD), table.read(TOKENS), table.read(TIME), table.read(SESSIONS))
    if finish:
        table.finish()
    return caps


def read_budget(table: Table) -> Budget:
    """Return the budget of [fleet.budget]. The reserved time depends on the agents; see ``with_time``."""
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
    """Return a budget that reserves the time of the longest possible session for a claim; 0 without a time-out."""
    longest_ms = [0 if each.session_timeout_ms is None else each.session_timeout_ms + each.grace_ms for each in limits]
    return replace(budget, share=budget.share.but(Resource.TIME, max(longest_ms, default=0) if all(longest_ms) else 0))


def check_caps(table: Table, caps: Caps, share: Amounts) -> None:
    """Report limits without a reservation, or below it."""
    for name, problem in problems_of(caps, share):
        table.problem(name, problem)


def problems_of(caps: Caps, share: Amounts) -> Iterator[tuple[str, str]]:
    """Yield the key and the error of each limit that does not fit the reservation of a claim."""
    for resource, key in KEYS.items():
        cap, given = caps.of(resource), share.of(resource)
        if cap is not None and not given:
            yield key.name, f"the reservation of a session is missing; {_SHARES[resource]}"
        elif cap is not None and cap < given:
            least, found = key.form.write(given), key.form.write(cap)
            yield key.name, f"found {found}; accepted: at least the reservation of a session, {least}"


KEYS: Final[Mapping[Resource, Key[int | None]]] = {
    Resource.MONEY: USD,
    Resource.TOKENS: TOKENS,
    Resource.TIME: TIME,
    Resource.SESSIONS: SESSIONS,
}
"""The keys of a table of limits, by resource."""

_SHARES: Final = {
    Resource.MONEY: "write session_usd under [fleet.budget]",
    Resource.TOKENS: "write session_tokens under [fleet.budget]",
    Resource.TIME: "write a session_timeout for every agent; the longest, with its grace, is reserved",
}


def said_caps(caps: Caps) -> dict[str, object]:
    """Return limits in the form of a file; empty without any."""
    meaning = said_but_defaults(_written(caps))
    return {"budget": meaning} if meaning else {}


def _written(caps: Caps) -> dict[Key[Any], object]:
    return {key: caps.of(resource) for resource, key in KEYS.items()}


def said_budget(budget: Budget) -> dict[str, object]:
    """Return the values of [fleet.budget] in the form of a file; empty without any."""
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
