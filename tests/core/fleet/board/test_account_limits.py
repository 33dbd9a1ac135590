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
    GaveUp,
    Left,
    LimitReported,
    RestLifted,
    RestOver,
    State,
    Succeeded,
    machine,
    told_rest_ms,
)
from lifefold.core.kernel import Event, row
from lifefold.interpreters.check import check

NOW_MS: Final = 1_700_000_000_000
HOUR_MS: Final = 3_600_000
TOLD: Final = LimitReported(HOUR_MS, NOW_MS + HOUR_MS, "five_hour", "limit reached")


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


def test_an_account_rests_until_the_told_end() -> None:
    """It is open afterwards: the end is known, so nothing has to be tried."""
    resting = after(TOLD)
    assert (resting.state, account.rest_ms(resting), resting.scope) == (State.RESTING, HOUR_MS, "five_hour")
    assert after(TOLD, RestOver()).state is State.OPEN


def test_nothing_begins_while_an_account_rests() -> None:
    """No agent is admitted before the end."""
    assert refuses(after(TOLD), Admitted())


def test_of_several_told_ends_the_latest_counts() -> None:
    """Agents of one account meet its limits at different times; an earlier or unknown end changes nothing."""
    later = LimitReported(2 * HOUR_MS, NOW_MS + 2 * HOUR_MS)
    assert after(TOLD, later).rest_ms == 2 * HOUR_MS
    assert after(later, TOLD).rest_ms == 2 * HOUR_MS
    assert after(TOLD, LimitReported()) == after(TOLD)


def test_a_told_end_replaces_a_guess() -> None:
    """Also if it is earlier: the service knows better."""
    assert after(LimitReported(), LimitReported(LEAST_MS, NOW_MS)).rest_ms == LEAST_MS


def test_a_later_end_starts_the_timer_again() -> None:
    """The timer of the shorter rest would end it too early."""
    found = machine.reduce(after(TOLD), LimitReported(2 * HOUR_MS, NOW_MS + 2 * HOUR_MS)).unwrap()
    assert [type(each).__name__ for each in found.effects] == ["CancelTimer", "StartTimer"]


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


def test_a_probing_account_has_one_session() -> None:
    """Another agent is admitted when the first has left without success."""
    probing = after(LimitReported(), RestOver(), Admitted("ann"))
    assert refuses(probing, Admitted("ben"))
    assert after(GaveUp("ann"), Admitted("ben"), of=probing).probe == "ben"


def test_the_success_of_the_probe_opens_the_account() -> None:
    """The limits in a row are forgotten; the success of another agent's session changes nothing."""
    probing = after(Admitted("ben"), LimitReported(), RestOver(), Admitted("ann"))
    assert refuses(probing, Succeeded("ben"))
    opened = after(Succeeded("ann"), of=probing)
    assert (opened.state, opened.probe, opened.limits) == (State.OPEN, "", 0)
    assert after(Left("ben"), of=probing).probe == "ann"


def test_a_limit_of_the_probe_lets_the_account_rest_longer() -> None:
    """The agent is still a user until it has left."""
    again = after(LimitReported(), RestOver(), Admitted("ann"), LimitReported())
    assert (again.state, again.rest_ms, again.probe, again.users) == (State.RESTING, 2 * FIRST_MS, "", ("ann",))


def test_an_operator_may_end_the_rest() -> None:
    """The account is tried with one session, also if an end was told."""
    assert after(TOLD, RestLifted("paid")).state is State.PROBING


def test_an_agent_that_was_not_admitted_cannot_leave() -> None:
    """Nothing is known of it. The agent with the probe gives it up instead."""
    assert refuses(Account(), Left("ann"))
    probing = after(LimitReported(), RestOver(), Admitted("ann"))
    assert refuses(probing, Left("ann"))
    assert refuses(probing, GaveUp("ben"))


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
    assert told_rest_ms(until_ms, NOW_MS) == rest_ms


def test_an_account_has_its_properties() -> None:
    """They hold in every state that it can come to."""
    assert check(machine).ok


def test_an_account_that_admits_agents_while_it_rests_is_found() -> None:
    """The property of the time is broken then."""
    mutant = machine.with_rows(row(State.RESTING, Admitted, State.RESTING, account.admit))
    broken = [each.name for each in check(mutant).broken()]
    assert "nothing begins on an account before its time" in broken
