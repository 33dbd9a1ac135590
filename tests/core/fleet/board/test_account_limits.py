"""An account: it rests until the end that was told, or for a guess that grows, and is then tried with one session."""

from typing import Final

import pytest
from returns.result import Success

from lifefold.core.fleet.board import account
from lifefold.core.fleet.board.account import (
    FIRST_MS,
    LEAST_MS,
    LONGEST_MS,
    MOST_LIMITS,
    MOST_MS,
    Account,
    Admitted,
    LimitReported,
    RestOver,
    State,
    machine,
    reported_rest_ms,
)
from lifefold.core.kernel import Event, row
from lifefold.interpreters.check import check

NOW_MS: Final = 1_700_000_000_000
HOUR_MS: Final = 3_600_000


def after(*events: Event, of: Account | None = None) -> Account:
    """Return an account after these events, each of which it accepts."""
    record = of or Account()
    for each in events:
        found = machine.reduce(record, each)
        assert isinstance(found, Success), each
        record = found.unwrap().record
    return record


def refuses(record: Account, event: Event) -> bool:
    """Tell whether an account refuses an event."""
    return not isinstance(machine.reduce(record, event), Success)


def test_without_a_told_end_the_rest_grows_with_every_limit_in_a_row() -> None:
    """It is at most an hour."""
    record, rests = Account(), list[int]()
    for _ in range(MOST_LIMITS + 1):
        record = after(LimitReported(), of=record)
        rests.append(record.rest_ms)
        record = after(RestOver(), of=record)
        assert record.state is State.PROBING
    assert rests[:3] == [FIRST_MS, 2 * FIRST_MS, 4 * FIRST_MS]
    assert rests[-2:] == [MOST_MS, MOST_MS]


@pytest.mark.parametrize(
    ("until_ms", "rest_ms"),
    [
        (None, None),
        (NOW_MS, None),
        (NOW_MS - 1, None),
        (NOW_MS + 1, LEAST_MS),
        (NOW_MS + HOUR_MS, HOUR_MS),
        (NOW_MS + 10 * LONGEST_MS, LONGEST_MS),
    ],
    ids=["unknown", "now", "past", "near", "told", "far"],
)
def test_a_told_end_is_believed_within_bounds(until_ms: int | None, rest_ms: int | None) -> None:
    """An end that is past tells nothing, and no rest is longer than a week and a day."""
    assert reported_rest_ms(until_ms, NOW_MS) == rest_ms


def test_an_account_has_its_properties() -> None:
    """They hold in every state that it can come to."""
    assert check(machine).ok


def test_an_account_that_admits_agents_while_it_rests_is_found() -> None:
    """The property of the time is broken then."""
    mutant = machine.with_rows(row(State.RESTING, Admitted, State.RESTING, account.admit))
    broken = [each.name for each in check(mutant).broken()]
    assert "nothing begins on an account before its time" in broken
