"""The laws: every mutant is found, shown as a short trace, and found again by its seed."""

import itertools
import re
from collections.abc import Callable
from typing import Any, ClassVar, Final, Never

import pytest
from hypothesis import settings
from msgspec import field

import kiln
import oven
from lifefold.core.kernel import (
    Entity,
    Envelope,
    Event,
    Machine,
    Record,
    State,
    Step,
    always,
    always_step,
    replace,
    row,
    sometimes,
)
from lifefold.interpreters import views
from lifefold.interpreters.testing import LawBrokenError, check_laws
from lifefold.interpreters.testing.laws import LAWS


class Door(State):
    OPEN = "Open"
    SHUT = "Shut"


class Pushed(Event, frozen=True):
    """The door is pushed."""


class Knocked(Event, frozen=True):
    """A visitor knocks, in vain on an open door."""


class Written(Event, frozen=True):
    """A pair is written, which is a list in JSON."""

    pair: Any = (1, 2)

    @classmethod
    def examples(cls) -> "tuple[Written, ...]":
        return (cls((1, 2)),)


class Hall(Record, frozen=True):
    state: Door = Door.SHUT
    pushes: int = 0
    guests: Any = field(default_factory=list[int])
    pair: Any = 0


class Loose(Record, frozen=True):
    state: Any = Door.SHUT


EXAMPLES: Final = settings().max_examples // 10

COUNTER: Final = itertools.count()


def count(hall: Hall, _event: Pushed) -> Step[Hall, Never]:
    return Step(replace(hall, pushes=hall.pushes + 1))


def count_elsewhere(hall: Hall, _event: Pushed) -> Step[Hall, Never]:
    return Step(replace(hall, pushes=next(COUNTER)))


def write_into(hall: Hall, _event: Pushed) -> Step[Hall, Never]:
    hall.guests.append(1)
    return Step(hall)


def looks_and_writes(hall: Hall, _event: Knocked) -> bool:
    hall.guests.append(1)
    return False


def fails_at_two(hall: Hall, _event: Pushed) -> Step[Hall, Never]:
    return Step(replace(hall, pushes=hall.pushes + 1 + 0 // (2 - hall.pushes)))


def keep_pair(hall: Hall, _event: Pushed) -> Step[Hall, Never]:
    return Step(replace(hall, pair=(hall.pushes,)))


def few_pushes(hall: Hall) -> bool:
    return hall.pushes < 3


def fewer_than(pushes: int) -> Callable[[Entity[Any]], bool]:
    return lambda entity: entity.record.pushes < pushes


def hall(action: Any = count, **parts: Any) -> Machine[Any]:
    """Return a sound machine, but for what it is given."""
    rows = (
        row(Door.SHUT, Pushed, Door.OPEN, action),
        row(Door.OPEN, Pushed, Door.SHUT, action),
        *parts.pop("more", ()),
    )
    return Machine("hall", Hall(guests=[]), rows=rows, **parts)


class Careless:
    """Keeps between its calls what a reducer may not keep."""

    seen: ClassVar[set[int]] = set()

    @classmethod
    def first_time(cls, hall: Hall, _event: Pushed) -> Step[Hall, Never]:
        new = hall.pushes not in cls.seen
        cls.seen.add(hall.pushes)
        return Step(replace(hall, pushes=hall.pushes + 1 + new))


MISTAKES: Final[dict[str, tuple[Machine[Any], str, int | None]]] = {
    "counts elsewhere": (hall(count_elsewhere), "the same input has the same outcome: operator says Pushed()", 1),
    "remembers": (hall(Careless.first_time), "the same input has the same outcome: operator says Pushed()", None),
    "writes into the record": (hall(write_into), "what is given does not change: operator says Pushed() was taken", 0),
    "writes and refuses": (
        hall(more=[row(Door.SHUT, Knocked, Door.OPEN, when=looks_and_writes)]),
        "what is given does not change: operator says Knocked() was refused",
        0,
    ),
    "cannot be read": (hall(more=[row(Door.SHUT, Written, Door.OPEN)]), "what is written is read as it was", -1),
    "keeps what cannot be read": (hall(keep_pair), "what is written is read as it was: Created(", 1),
    "breaks an invariant": (hall(invariants=[few_pushes]), "invariants hold: few_pushes does not hold of Hall(", 3),
    "breaks a property": (
        hall(properties=[always("it is pushed twice", fewer_than(3))]),
        "properties hold: 'it is pushed twice' does not hold after operator says Pushed()",
        3,
    ),
    "breaks a property of steps": (
        hall(properties=[always_step("it is never shut", lambda step: step.entered is not Door.SHUT)]),
        "properties hold: 'it is never shut' does not hold after",
        0,
    ),
}
"""Machines with a mistake, what is said of it, and after how many inputs, unless it shows only once."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found_and_shown_as_short_as_it_can_be(mistake: str) -> None:
    """The law, what breaks it, and the trace as a table, with no input that it does not need."""
    machine, said, inputs = MISTAKES[mistake]
    Careless.seen.clear()
    with pytest.raises(LawBrokenError) as raised:
        check_laws(machine, seed=7)
    message = str(raised.value)
    assert message.startswith(f"hall breaks a law: {said}")
    steps = re.findall(r"^ *(\d+) +[\d,]+  ", message, re.MULTILINE)
    assert [int(each) for each in steps] == list(range(len(steps) if inputs is None else inputs + 1))
    assert ("check_laws(..., seed=7) or pytest --lifefold-seed=7" in message) is bool(steps)


def test_every_law_is_broken_by_some_mistake_or_kept_by_the_kernel() -> None:
    """No law is there that nothing could break."""
    broken = {said.partition(":")[0] for _, said, _ in MISTAKES.values()}
    assert set(LAWS) - broken == {"what is late is refused", "the log folds to the same"}


def test_what_a_machine_raises_comes_with_the_way_to_it() -> None:
    """The error is the user's own; its notes have the trace, as far as it came."""
    with pytest.raises(ZeroDivisionError) as raised:
        check_laws(hall(fails_at_two), seed=7)
    note = "\n".join(raised.value.__notes__)
    assert "pushes 1 → 2" in note
    assert note.count("operator says Pushed()") == 2


@pytest.mark.parametrize("machine", [kiln.kiln, kiln.tally, oven.machine, hall()], ids=lambda m: m.name)
def test_a_sound_machine_keeps_all_laws(machine: Machine[Any]) -> None:
    """Those of the tests, with everything in them that a machine may have."""
    check_laws(machine, examples=50)


@pytest.mark.parametrize("name", views.machines())
def test_every_shipped_machine_keeps_all_laws(name: str) -> None:
    """A few lives of each; ``tests/core`` has laws of its own, and many more lives."""
    check_laws(views.machine_named(name), examples=EXAMPLES, seed=0)


def test_a_state_that_is_read_as_a_mere_text_is_found() -> None:
    """A record whose state is declared as anything is read with another one, which fits no row."""
    with pytest.raises(LawBrokenError, match="what is written is read as it was: Created"):
        check_laws(
            Machine("ring", Loose(), rows=(row(Door.SHUT, Pushed, Door.OPEN), row(Door.OPEN, Pushed, Door.SHUT)))
        )


def test_a_seed_finds_the_same_again() -> None:
    """The message is the same, word for word."""
    machine = hall(properties=[always("few", fewer_than(7))])
    messages: list[str] = []
    for _ in range(2):
        with pytest.raises(LawBrokenError) as raised:
            check_laws(machine, seed=11)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_what_is_declared_to_be_possible_is_nothing_that_lives_at_random_could_break() -> None:
    """It is for the checker, which knows when it has seen everything."""
    check_laws(hall(properties=[sometimes("it is pushed never", fewer_than(0))]))


def test_the_examples_that_are_written_are_those_of_the_events() -> None:
    """An event that is not read as it was is found before any life is drawn."""
    with pytest.raises(LawBrokenError, match=re.escape("Written(pair=(1, 2)) is read as Written(pair=[1, 2])")):
        check_laws(hall(more=[row(Door.SHUT, Written, Door.OPEN)]), examples=1)
    assert Envelope("hall", Written([1, 2]), 0).event == Written([1, 2])


def test_the_laws_are_those_of_a_machine() -> None:
    """Not of its record's class, nor of its record."""
    record: Any = kiln.Kiln
    with pytest.raises(TypeError, match=r"^Kiln is a Record class; accepted: a Machine$"):
        check_laws(record)
    with pytest.raises(TypeError, match=r"^a Kiln is given; accepted: a Machine$"):
        check_laws(record())
