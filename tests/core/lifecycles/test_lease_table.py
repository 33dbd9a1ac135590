"""What each state of a lease makes of each event, with every guard both ways.

``test_documents`` compares the rows with document 001.
"""

from typing import Final

import pytest

from lifefold.core.kernel import Event, IllegalTransition, Step, replace
from lifefold.core.lifecycles.budget.account import Account, Reservation
from lifefold.core.lifecycles.budget.lease import (
    AddBudget,
    Charge,
    Close,
    Expire,
    GraceExceeded,
    Lease,
    Limits,
    Refresh,
    Refund,
    Reserve,
    Revoke,
    Settle,
    State,
    machine,
)
from lifefold.effects import CancelTimer, Effect, ReturnBudget, StartTimer

EVENTS: Final[dict[str, Event]] = {
    "Reserve": Reserve("new", 40),
    "Reserve0": Reserve("new", 0),
    "TooMuch": Reserve("new", 61),
    "Settle": Settle("a", 10),
    "NotHeld": Settle("b", 10),
    "Below0": Settle("a", -1),
    "UsesUp": Settle("a", 90),
    "Refund": Refund("a"),
    "NoRefund": Refund("b"),
    "Add": AddBudget(5),
    "Add0": AddBudget(0),
    "Charge": Charge(70),
    "Charge0": Charge(0),
    "Expire": Expire(),
    "Refresh": Refresh(),
    "Refresh-": Refresh(-1),
    "Grace": GraceExceeded(),
    "Close": Close(),
    "Revoke": Revoke("token"),
}

GRID: Final = """
        Reserve Reserve0 TooMuch Settle NotHeld Below0 UsesUp  Refund NoRefund Add  Add0 Charge Charge0 Expire  Refresh Refresh- Grace  Close  Revoke
ACTIVE  stay    .        .       stay   .       .      EXPIRED stay   .        stay .    stay   .       EXPIRED .       .        .      CLOSED REVOKED
EXPIRED .       .        .       stay   .       .      stay    stay   .        .    .    stay   .       .       ACTIVE  .        CLOSED CLOSED REVOKED
CLOSED  .       .        .       stay   .       .      stay    stay   .        .    .    .      .       .       .       .        .      .      .
REVOKED .       .        .       stay   .       .      stay    stay   .        .    .    .      .       .       .       .        .      .      .
"""  # noqa: E501 - a grid is read across


def cells() -> list[tuple[str, str, str]]:
    head, *lines = [line.split() for line in GRID.strip().splitlines()]
    return [(line[0], column, word) for line in lines for column, word in zip(head, line[1:], strict=True)]


def a_lease(state: str) -> Lease:
    """Return a lease of 100, with 10 spent and 30 reserved, so 60 are free, or were returned if it is over."""
    over = state in {"CLOSED", "REVOKED"}
    account = Account(
        cap=100,
        spent=10,
        returned=60 if over else 0,
        reservations=(Reservation("a", 30),),
        closed=over,
    )
    return Lease(State(state), "agent_1", account)


@pytest.mark.parametrize(("state", "column", "word"), cells())
def test_every_pair_is_what_the_grid_says(state: str, column: str, word: str) -> None:
    """Usage requires ACTIVE, a settlement only a reservation (B12, B19)."""
    answer = machine.step(a_lease(state), EVENTS[column])
    if word == ".":
        assert isinstance(answer, IllegalTransition)
    else:
        assert isinstance(answer, Step), str(answer)
        assert answer.record.state == (state if word == "stay" else word)
        assert [holds.__name__ for holds in machine.invariants if not holds(answer.record)] == []


def test_the_grid_has_every_event_and_nothing_leaves_an_ended_lease() -> None:
    """CLOSED and REVOKED are final."""
    assert machine.final == {State.CLOSED, State.REVOKED}
    assert {type(event) for event in EVENTS.values()} == set(machine.events)


def effects_of(record: Lease, event: Event) -> tuple[Effect, ...]:
    step = machine.step(record, event)
    assert isinstance(step, Step), str(step)
    return step.effects


def test_timers_belong_to_their_states() -> None:
    """Being active ends by itself, and so does the grace of 60 seconds (B19)."""
    short = replace(a_lease("ACTIVE"), limits=Limits(duration_ms=1_000))
    assert machine.entering(short) == (StartTimer("Expire", 1_000),)
    assert effects_of(short, Expire()) == (StartTimer("GraceExceeded", 60_000),)
    refreshed = effects_of(replace(short, state=State.EXPIRED), Refresh())
    assert refreshed == (CancelTimer("GraceExceeded"), StartTimer("Expire", 1_000))


@pytest.mark.parametrize("event", [Close(), Revoke("token")])
@pytest.mark.parametrize("state", ["ACTIVE", "EXPIRED"])
def test_every_way_out_returns_what_is_left(state: str, event: Event) -> None:
    """Also out of EXPIRED: nothing leaks (B19)."""
    assert ReturnBudget("agent_1", 60) in effects_of(a_lease(state), event)


def test_limits_refuse_what_could_never_work() -> None:
    """The message names the field."""
    assert Limits().grace_ms == 60_000
    with pytest.raises(ValueError, match="duration_ms must be at least 1, not 0"):
        Limits(duration_ms=0)
    with pytest.raises(ValueError, match="grace_ms must be at least 0, not -1"):
        Limits(grace_ms=-1)
