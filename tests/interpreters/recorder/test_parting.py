"""Where two runs part: the first entry of a stream that differs, and the fields that differ after it."""

from lifefold import Envelope, Ledger, alone, replace
from lifefold.core.kernel import Created
from lifefold.interpreters.engine import Decision
from lifefold.interpreters.recorder.parting import partings
from lifefold.interpreters.store import Entry
from lobby import RUN, Pulled, Pushed, entries_of, lobby, system, turn_twice
from oven import Lit, Oven
from oven import machine as oven

OF_OVEN, _ = alone(oven)


def test_a_run_does_not_part_from_itself() -> None:
    """Equal runs have no parting."""
    assert partings(system, entries_of(), entries_of()) == ()


def test_the_first_entry_that_differs_is_named_with_the_difference_of_the_states() -> None:
    """Both entries are named, and each field that differs after them."""
    ours, theirs = entries_of(RUN[:3]), entries_of((*RUN[:2], Pushed(), Pulled()))
    (found,) = partings(system, ours, theirs)
    assert (found.stream, found.version) == ("lobby", 3)
    assert found.left is not None
    assert found.right is not None
    assert (found.left.event, found.right.event) == ("Turned()", "Pushed()")
    differing = {each.field: (each.left, each.right) for each in found.differences}
    assert differing == {"turns": ("1", "0"), "state": ("Locked", "Closed")}


def test_a_run_that_ends_earlier_parts_at_the_entry_that_it_does_not_have() -> None:
    """The side without the entry is None, in the state of its last entry."""
    (found,) = partings(system, entries_of(RUN[:3]), entries_of(RUN[:2]))
    assert found.right is None
    assert {each.field: each.right for each in found.differences}["state"] == "Open"


def test_an_equal_input_that_other_rules_decide_with_another_state_parts() -> None:
    """The states count, also where the inputs are equal."""
    (found,) = partings(system, entries_of(RUN[:3]), entries_of(RUN[:3], lobby(turn_twice)))
    assert [(each.field, each.left, each.right) for each in found.differences] == [("turns", "1", "2")]


def test_times_and_opaque_contents_do_not_part_two_runs() -> None:
    """The same run at another time is the same run."""
    early = [Envelope("oven", event, 1_000 + 10 * number) for number, event in enumerate((Created(Oven()), Lit()))]
    late = [replace(each, at_ms=each.at_ms + 77 * each.at_ms) for each in early]
    assert partings(OF_OVEN, _run(early), _run(late)) == ()


def _run(given: list[Envelope]) -> list[Entry]:
    ledger = Ledger(OF_OVEN)
    found = [ledger.decide("oven", each) for each in given]
    return [each.entry for each in found if isinstance(each, Decision)]
