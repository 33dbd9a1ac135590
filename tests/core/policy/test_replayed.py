"""Repeated requests for a transition: the answers of a ledger (E14)."""

from hypothesis import given
from hypothesis import strategies as st
from returns.result import Failure, Success

from lifefold.core.policy.replayed import LEDGER_LIMIT, Conflict, Ledger


def test_the_same_again_is_answered_with_the_original_outcome() -> None:
    """Not done again, not refused."""
    ledger: Ledger[str] = Ledger[str]().with_success("T1", "x", "open", "first")
    assert ledger.recall("T1", "x", "open") == Success("first")


def test_something_else_under_the_same_id_is_a_conflict() -> None:
    """It says which id was used for what."""
    ledger: Ledger[str] = Ledger[str]().with_success("T1", "x", "open", "first")
    answer = ledger.recall("T1", "x", "done")
    assert answer == Failure(Conflict("T1", "x", "open", "done"))
    assert str(answer.failure()) == "transition id 'x' of T1 was used for 'open', not for 'done'"


def test_an_id_belongs_to_its_entity() -> None:
    """At another one it is new."""
    ledger: Ledger[str] = Ledger[str]().with_success("T1", "x", "open", "first")
    assert ledger.recall("T2", "x", "done") == Success(None)


def test_what_was_never_recorded_is_unknown_however_often_it_was_asked_for() -> None:
    """Only a success uses up an id; asking changes nothing."""
    ledger: Ledger[str] = Ledger()
    assert ledger.recall("T1", "x", "open") == Success(None)
    assert ledger.recall("T1", "x", "done") == Success(None)
    assert ledger == Ledger()


def test_the_oldest_is_forgotten_when_there_are_too_many() -> None:
    """Ten thousand by default."""
    ledger: Ledger[int] = Ledger(limit=3)
    for number in range(5):
        ledger = ledger.with_success("T1", str(number), "p", number)
    assert [ledger.recall("T1", str(n), "p").unwrap() for n in range(5)] == [None, None, 2, 3, 4]
    assert (len(ledger.entries), len(ledger.order)) == (3, 3)
    assert Ledger[int]().limit == LEDGER_LIMIT == 10_000


@given(st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from("xyz"), st.integers(0, 2)), max_size=30))
def test_a_ledger_is_a_map_of_bounded_size(successes: list[tuple[str, str, int]]) -> None:
    """What is remembered is what was recorded last under an id; its order lists each id once."""
    ledger: Ledger[int] = Ledger(limit=4)
    for entity, id_, payload in successes:
        ledger = ledger.with_success(entity, id_, payload, payload * 10)
        assert ledger.recall(entity, id_, payload) == Success(payload * 10)
    assert set(ledger.order) == set(ledger.entries)
    assert len(ledger.order) == len(ledger.entries) <= 4
