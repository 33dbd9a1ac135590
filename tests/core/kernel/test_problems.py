"""Problems: an invalid machine is refused when it is built, with each problem named."""

from collections import deque
from collections.abc import Mapping, MutableSet, Sequence
from typing import Any, cast

import msgspec
import pytest
from pyrsistent import PMap, PVector, pmap

from lamp import (
    BREAK,
    GO,
    HALT,
    LEFT,
    RULES,
    Failed,
    Lamp,
    Light,
    Other,
    Turned,
    is_sound,
    lamp,
    never,
    shine,
    what_is_wrong,
)
from lifefold.core.kernel import (
    ANY,
    Event,
    InvalidMachine,
    Machine,
    Record,
    Row,
    after,
    does,
    row,
)
from oven import Doused


def test_a_well_formed_machine_has_no_problems() -> None:
    """The lamp that the other tests break is sound."""
    assert lamp().states == (Light.RED, Light.GREEN, Light.DARK)
    assert lamp().events == (Turned, Failed)


MISTAKES: list[tuple[tuple[Row[Any], ...], dict[str, Any], str]] = [
    ((row(Light.RED, Turned, Other.RED), BREAK), {}, "row(Red, Turned(by), Red)"),
    ((row(Other.RED, Turned, Light.RED), BREAK), {}, "row(Red, Turned(by), Red)"),
    (RULES, {"during": {Other.RED: does(shine)}}, "during Red"),
    (RULES, {"postpone": {Other.RED: Failed}}, "postpone Red"),
    (RULES, {"final": {Light.DARK, Other.RED}}, "final"),
    (RULES, {"detached": {Other.RED}}, "detached"),
]


@pytest.mark.parametrize(
    ("rows", "parts", "place"),
    MISTAKES,
    ids=["target", "source", "during", "postpone", "final", "detached"],
)
def test_a_state_of_another_machine_is_unknown(rows: tuple[Row[Any], ...], parts: dict[str, Any], place: str) -> None:
    """Even if it is spelled the same. The problem names the row or the part, and lists the states there are."""
    assert what_is_wrong(*rows, **parts) == (
        f"{place}: unknown state <Other.RED: 'Red'>; the states are Red, Green, Dark",
    )


def test_unknown_states_are_all_there_is_to_say() -> None:
    """Other problems would only follow from them."""
    wrong = what_is_wrong(row(Other.RED, Turned, Light.RED), GO, final=())
    assert [line for line in wrong if "unknown state" not in line] == []


def test_a_slot_can_be_declared_only_once() -> None:
    """An activity of several states is declared for all of them together."""
    wrong = what_is_wrong(during={Light.RED: does(shine), Light.GREEN: (after(5, Turned), does(shine))})
    assert wrong == ("during: Shine is declared twice; give its states in one key",)


def test_a_row_behind_an_unguarded_one_can_never_be_taken() -> None:
    """The problem names both rows."""
    wrong = what_is_wrong(*RULES, row(Light.GREEN, Turned, Light.DARK, when=never))
    assert wrong == (
        (
            "row(Green, Turned(by), Dark when never) can never be taken: "
            "row(Green, Turned(by), Red) comes first and has no guard"
        ),
    )


def test_a_row_of_several_states_is_shadowed_only_if_it_is_in_all_of_them() -> None:
    """Where one of its states is still open, it has a use."""
    assert is_sound(GO, row((Light.RED, Light.GREEN), Turned, Light.RED), BREAK)
    wrong = what_is_wrong(GO, HALT, row((Light.RED, Light.GREEN), Turned, Light.RED), BREAK)
    assert len(wrong) == 1
    assert wrong[0].startswith("row(Green | Red, Turned(by), Red) can never be taken")


def test_a_guarded_row_shadows_nothing_but_what_needs_all_that_it_needs() -> None:
    """What its guard refuses falls through to the next row, unless that has the very same guard, or one more."""
    assert is_sound(row(Light.RED, Turned, Light.DARK, when=never), *RULES)
    assert is_sound(row(Light.RED, LEFT, Light.DARK), *RULES)
    assert is_sound(row(Light.RED, LEFT, Light.DARK, when=never), row(Light.RED, LEFT, Light.GREEN), *RULES)
    both = row(Light.RED, LEFT, Light.DARK, when=never)
    first: tuple[Row[Any], ...] = (
        row(Light.RED, LEFT, Light.RED),
        row(Light.RED, Turned, Light.RED, when=never),
        row(Light.RED, LEFT, Light.RED, when=never),
    )
    for guarded in first:
        assert what_is_wrong(guarded, both, *RULES) == (
            f"{both} can never be taken: {guarded} comes first and has no guard that this one lacks",
        )


def test_everything_is_declared_for_some_state() -> None:
    """An empty source is a slip: the row or the activity would never be."""
    assert what_is_wrong(*RULES, row((), Doused, Light.DARK)) == ("row(, Doused, Dark) has no source",)
    assert what_is_wrong(during={(): does(shine)}) == ("during: no state is named",)
    assert what_is_wrong(postpone={(): Turned}) == ("postpone: no state is named",)


def test_a_state_that_no_row_enters_is_reported_with_the_rows_that_leave_it() -> None:
    """It cannot be reached; its own rows are dead."""
    assert what_is_wrong(BREAK, HALT) == (
        "state Green cannot be reached from Red (it is the source of row(Green, Turned(by), Red))",
    )
    assert what_is_wrong(GO, HALT) == ("state Dark cannot be reached from Red (it is the source of no row)",)


def test_a_state_that_cannot_be_left_must_be_final() -> None:
    """A row that stays does not leave. The problem names the rows that lead there."""
    assert what_is_wrong(final=()) == (
        "state Dark can never be left and is not declared final (it is the target of row(ANY, Failed, Dark))",
    )
    alone = Machine(
        "lamp", Lamp(), rows=(row(Light.RED, Failed, Light.RED),), final={Light.RED}, detached={Light.GREEN, Light.DARK}
    )
    assert alone.final == {Light.RED}
    with pytest.raises(InvalidMachine, match=r"state Red can never be left .* the target of no row"):
        Machine("lamp", Lamp(), rows=(), detached={Light.GREEN, Light.DARK})


def test_a_detached_state_needs_no_row() -> None:
    """It is outside the table; it is neither unreachable nor a dead end."""
    assert lamp(GO, HALT, detached={Light.DARK}, final=()).detached == {Light.DARK}


def test_a_final_state_is_not_left() -> None:
    """The problem names the row; a row that stays in it leaves nothing."""
    wrong = what_is_wrong(*RULES, row(Light.DARK, Turned, Light.RED))
    assert wrong == ("row(Dark, Turned(by), Red) leaves Dark, which is declared final",)
    assert is_sound(*RULES, row(Light.DARK, Turned, Light.DARK))


def test_an_event_is_not_postponed_for_ever() -> None:
    """Some other state must have a row for it."""
    wrong = what_is_wrong(GO, HALT, row(Light.RED, Failed, Light.DARK), postpone={Light.GREEN: (Failed, Doused)})
    assert wrong == ("postpone Green: no later state has a row for Doused",)
    assert what_is_wrong(GO, HALT, detached={Light.DARK}, final=(), postpone={ANY: Failed}) == (
        "postpone Green: no later state has a row for Failed",
        "postpone Red: no later state has a row for Failed",
    )


def test_only_a_state_that_can_still_come_is_a_later_state() -> None:
    """A row in an earlier state, or any row for an event that waits in a final state, does not help."""
    rows: tuple[Row[Any], ...] = (GO, row(Light.RED, Doused, Light.GREEN), row(Light.GREEN, Failed, Light.DARK))
    assert is_sound(*rows)
    assert what_is_wrong(*rows, postpone={Light.GREEN: Doused}) == (
        "postpone Green: no later state has a row for Doused",
    )
    assert what_is_wrong(*rows, postpone={Light.DARK: Doused}) == (
        "postpone Dark: no later state has a row for Doused",
    )


def test_the_last_event_of_an_activity_does_not_wait() -> None:
    """The activity is over when it says so; by the time its word counted, it would be stale."""
    wrong = what_is_wrong(
        row(Light.RED, Turned, Light.GREEN, when=never), row(Light.RED, Doused, Light.GREEN), HALT, BREAK,
        during={Light.RED: does(shine, last=Turned)}, postpone={Light.RED: Turned},
    )  # fmt: skip
    assert wrong == ("postpone Red: Turned cannot wait: it ends Shine",)


def test_an_event_that_a_row_takes_does_not_wait() -> None:
    """A guarded row is different: what it refuses waits."""
    assert what_is_wrong(postpone={Light.RED: Turned}) == (
        "postpone Red: Turned never waits, because a row takes it there",
    )
    assert is_sound(
        row(Light.RED, Turned, Light.GREEN, when=never),
        HALT,
        row(Light.RED, Doused, Light.GREEN),
        BREAK,
        postpone={Light.RED: Turned},
    )


def test_what_an_activity_yields_has_a_row_in_one_of_its_states() -> None:
    """Otherwise the report of the activity would never be accepted."""
    wrong = what_is_wrong(during={(Light.RED, Light.GREEN): does(shine, yields=(Turned, Doused))})
    assert wrong == ("during Green, Red: Shine yields Doused, for which there is no row in Green, Red",)


def test_a_timer_is_heard_in_each_of_its_states() -> None:
    """It happens once in a stay: what a guard refuses then would never come again. What waits is heard later."""
    wrong = ("during Red: Turned fires once, and Red has no unguarded row for it",)
    guarded = row(Light.RED, Turned, Light.GREEN, when=never)
    assert (
        what_is_wrong(guarded, row(Light.RED, Doused, Light.GREEN), HALT, BREAK, during={Light.RED: after(5, Turned)})
        == wrong
    )
    assert (
        what_is_wrong(
            row(Light.RED, Doused, Light.GREEN), HALT, BREAK, during={(Light.RED, Light.GREEN): after(5, Turned)}
        )
        == wrong
    )
    assert is_sound(guarded, GO, HALT, BREAK, during={Light.RED: after(5, Turned)})
    waits: tuple[Row[Any], ...] = (row(Light.RED, Doused, Light.GREEN), HALT, BREAK)
    assert is_sound(*waits, during={(Light.RED, Light.GREEN): after(5, Turned)}, postpone={Light.RED: Turned})
    assert what_is_wrong(*waits, during={Light.RED: after(5, Turned)}, postpone={Light.RED: Turned}) == wrong


def test_a_timers_event_can_be_made_of_nothing() -> None:
    """No sender could fill its fields."""

    class Named(Event, frozen=True):
        name: str

    assert what_is_wrong(*RULES, row(Light.RED, Named, Light.DARK), during={Light.RED: after(5, Named)}) == (
        "during Red: Named has fields that no timer can fill",
    )


def test_the_last_event_of_an_activity_has_a_row_in_each_of_its_states() -> None:
    """It may come at any time, and there is no other to come after it."""
    wrong = what_is_wrong(
        *RULES, row(Light.RED, Doused, Light.DARK), during={(Light.RED, Light.GREEN): does(shine, last=Doused)}
    )
    assert wrong == ("during Green: Shine ends with Doused, for which Green has no row",)


def test_the_last_event_of_an_activity_leaves_its_states() -> None:
    """Nothing would go on in them."""
    assert what_is_wrong(during={(Light.RED, Light.GREEN): does(shine, last=Turned)}) == (
        "row(Red, Turned(by), Green) stays where Shine is declared to run, but Turned is its last event",
        "row(Green, Turned(by), Red) stays where Shine is declared to run, but Turned is its last event",
    )


def test_every_problem_is_reported_at_once() -> None:
    """One build, one list."""
    assert len(what_is_wrong(HALT, GO, GO, during={Light.RED: does(shine, yields=Doused)})) == 3


Loose = msgspec.defstruct("Loose", [("state", Light, Light.RED)], bases=(Record,), frozen=False)
"""A record that can change; type checkers refuse one that is written as a class."""


class Holding(Record, frozen=True):
    state: Light = Light.RED
    names: list[str] = msgspec.field(default_factory=list[str])
    each: tuple[dict[str, int], ...] = ()
    marks: set[str] = msgspec.field(default_factory=set[str])
    kept: frozenset[str] = frozenset()
    thing: object = None
    maybe: bytearray | None = None
    several: Sequence[int] = ()
    named: Mapping[str, int] = pmap()
    some: MutableSet[str] = msgspec.field(default_factory=set[str])
    last: deque[int] = msgspec.field(default_factory=deque[int])
    shared: PMap[str, PVector[int]] = pmap()


class Carrying(Event, frozen=True):
    names: list[str] = msgspec.field(default_factory=list[str])


def test_what_a_record_or_an_event_holds_cannot_change() -> None:
    """Each is named with the type that is accepted instead; what cannot change is."""
    rows: tuple[Row[Record], ...] = (row(Light.RED, Turned, Light.GREEN),)
    with pytest.raises(InvalidMachine) as wrong:
        Machine("loose", cast("Record", Loose()), rows=rows, final=(Light.GREEN,), detached=(Light.DARK,))
    assert wrong.value.problems == ("Loose is not frozen: class Loose(Record, frozen=True)",)
    with pytest.raises(InvalidMachine) as wrong:
        Machine("held", Holding(), rows=(row(Light.RED, Carrying, Light.GREEN),), final=(Light.GREEN,))
    assert wrong.value.problems == (
        "Holding.names is of type list; accepted: tuple[..., ...]",
        "Holding.each is of type dict; accepted: a tuple of pairs, or a frozen struct",
        "Holding.marks is of type set; accepted: a tuple, or a frozenset that no log holds",
        "Holding.thing is of type object; accepted: the type that it has",
        "Holding.maybe is of type bytearray; accepted: bytes",
        "Holding.several is of type Sequence; accepted: tuple[..., ...]",
        "Holding.named is of type Mapping; accepted: a tuple of pairs, or a frozen struct",
        "Holding.some is of type MutableSet; accepted: a tuple, or a frozenset that no log holds",
        "Holding.last is of type deque; accepted: tuple[..., ...]",
        "Carrying.names is of type list; accepted: tuple[..., ...]",
    )
