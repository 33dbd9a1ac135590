"""An entity that is driven by calls: decided purely, committed whole, performed in order."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Barrier, Thread
from typing import Never

import pytest

from lifefold.core.kernel import Entity, Event, Machine, Record, State, Step, Transition, after, replace, row
from lifefold.effects import CallHook, Effect
from lifefold.interpreters.facades.driver import Driver, Performer, RefusedError
from lifefold.interpreters.facades.moves import moves, targets
from lifefold.interpreters.missing import MissingHandlersError
from oven import Baked, Knocked, Lit, Oven, Place, Ring, Scrapped
from oven import machine as oven


class Side(State):
    SHUT = "Shut"
    OPEN = "Open"


class Opened(Event, frozen=True):
    """The door is opened."""


class Closed(Event, frozen=True):
    """The door is shut."""


class Slammed(Event, frozen=True):
    """It has stood open too long."""


class Door(Record, frozen=True):
    """A door."""

    state: Side = Side.SHUT
    openings: int = 0


def open_up(door: Door, _event: Opened) -> Step[Door, CallHook]:
    return Step(replace(door, openings=door.openings + 1), (CallHook("unlock", (), before=True), CallHook("greet")))


def say_bye(door: Door, _event: Closed) -> Step[Door, CallHook]:
    return Step(door, (CallHook("bye"),))


def slam(door: Door, _event: Slammed) -> Step[Door, Never]:
    return Step(door)


door = Machine(
    "door",
    Door(),
    rows=(
        row(Side.SHUT, Opened, Side.OPEN, open_up),
        row(Side.OPEN, Closed, Side.SHUT, say_bye),
        row(Side.OPEN, Slammed, Side.SHUT, slam),
    ),
    during={Side.OPEN: after(1_000, Slammed)},
)


def nothing() -> None:
    """Do nothing."""


@dataclass
class House:
    """A door, what is heard of it in order, and hooks that a test may set."""

    hooks: dict[str, Callable[[], None]] = field(default_factory=dict[str, Callable[[], None]])
    heard: list[str] = field(default_factory=list[str])
    now_ms: int = 0
    commit: Callable[[Entity[Door], Entity[Door]], None] | None = None

    def __post_init__(self) -> None:
        performers: dict[type[Effect], Performer] = {CallHook: self.call}
        self.driver = Driver(door, Door(), performers, observer=self.see, commit=self.commit, clock=lambda: self.now_ms)

    def call(self, hook: CallHook) -> None:
        self.heard.append(f"{hook.name} in {self.driver.record.state}")
        self.hooks.get(hook.name, nothing)()

    def see(self, transition: Transition) -> None:
        self.heard.append(f"to {transition.after.state}")
        self.hooks.get("see", nothing)()


def boom() -> None:
    raise ValueError("no")


def test_hooks_stand_before_and_after_the_commit() -> None:
    """The one before sees the old state, then comes the observer, then the hook after."""
    house = House()
    house.driver.take(Opened())
    assert house.heard == ["unlock in Shut", "to Open", "greet in Open"]


def test_a_refused_event_changes_nothing_and_calls_nothing() -> None:
    """The refusal says why."""
    house = House()
    before = house.driver.entity
    with pytest.raises(RefusedError, match="Closed is not possible in Shut") as caught:
        house.driver.take(Closed())
    assert caught.value.refusal.kind == "illegal"
    assert house.driver.entity is before
    assert house.heard == []


def test_a_hook_before_prevents_the_transition_by_raising() -> None:
    """Nothing is committed, the observer is not called, and the caller gets the error (A14)."""
    house = House({"unlock": boom})
    with pytest.raises(ValueError, match="no"):
        house.driver.take(Opened())
    assert house.driver.record == Door()
    assert house.heard == ["unlock in Shut"]


@pytest.mark.parametrize("name", ["see", "greet"])
def test_whatever_fails_after_the_commit_is_kept_and_the_transition_stands(name: str) -> None:
    """The others are performed all the same (A14, E42)."""
    house = House({name: boom})
    house.driver.take(Opened())
    assert house.driver.record.state is Side.OPEN
    assert house.heard == ["unlock in Shut", "to Open", "greet in Open"]
    assert [str(error) for error in house.driver.failures] == ["no"]


def test_a_call_from_a_hook_is_committed_at_once_and_performed_afterwards() -> None:
    """First in, first out (A22): the hook after goes on to its end before the next transition is told."""
    house = House()

    def close() -> None:
        house.driver.take(Closed())
        house.heard.append(f"closed: {house.driver.record.state}")

    house.hooks["greet"] = close
    house.driver.take(Opened())
    assert house.heard == [
        "unlock in Shut", "to Open", "greet in Open", "closed: Shut", "to Shut", "bye in Shut"
    ]  # fmt: skip


def test_what_changed_during_a_hook_before_is_decided_again() -> None:
    """The transition was legal when the hook was called, and is not any more; the hook is not called twice."""
    house = House()

    def meanwhile() -> None:
        del house.hooks["unlock"]
        house.driver.take(Opened())

    house.hooks["unlock"] = meanwhile
    with pytest.raises(RefusedError, match="Opened is not possible in Open"):
        house.driver.take(Opened())
    assert house.driver.record == Door(Side.OPEN, 1)
    assert house.heard.count("unlock in Shut") == 2


def test_a_commit_that_fails_leaves_everything_as_it_was() -> None:
    """The observer is not called for a transition that could not be saved (B10, B11)."""

    def full(_before: Entity[Door], _after: Entity[Door]) -> None:
        raise OSError("disk full")

    house = House(commit=full)
    with pytest.raises(OSError, match="disk full"):
        house.driver.take(Opened())
    assert house.driver.record == Door()
    assert house.heard == ["unlock in Shut"]


def test_a_timer_that_is_due_happens_before_the_call() -> None:
    """The call meets the state that it led to; until then nothing happens by itself."""
    house = House()
    house.driver.take(Opened())
    house.now_ms = 999
    assert house.driver.would_take(Closed())
    house.now_ms = 1_000
    with pytest.raises(RefusedError, match="Closed is not possible in Shut"):
        house.driver.take(Closed())
    assert house.driver.record.state is Side.SHUT


def test_a_tick_lets_what_is_due_happen_once() -> None:
    """And nothing that is not."""
    house = House()
    house.driver.take(Opened())
    house.driver.tick()
    assert house.driver.record.state is Side.OPEN
    house.now_ms = 5_000
    house.driver.tick()
    house.driver.tick()
    assert house.heard[-1] == "to Shut"
    assert house.driver.entity.version == 3


def test_time_never_goes_backwards_for_an_entity() -> None:
    """A clock that is set back neither fires nor delays a timer twice."""
    house = House(now_ms=10_000)
    house.driver.take(Opened())
    house.now_ms = 0
    house.driver.tick()
    assert house.driver.record.state is Side.OPEN
    assert house.driver.entity.entered_ms == 10_000


def test_the_caller_serves_the_activities_and_postponed_events_wait() -> None:
    """Nothing is begun or ended behind his back; what waits is taken after the state that it waited for."""
    rung: list[Ring] = []
    driver = Driver(oven, Oven(), {Ring: rung.append}, clock=lambda: 0)
    driver.take(Lit())
    assert driver.take(Knocked()) is None
    transition = driver.take(Baked())
    assert transition is not None
    assert transition.after.state is Place.COOLING
    assert driver.record.state is Place.COLD
    assert driver.record.visitors == 1
    assert rung == [Ring(1)]


def test_an_effect_without_a_performer_is_an_error_at_once() -> None:
    """It names the effect, before anything has happened."""
    with pytest.raises(MissingHandlersError, match=r"no performer for Ring: the machine 'oven' can request it"):
        Driver(oven, Oven())


def test_an_interrupt_in_a_hook_does_not_stop_what_comes_later() -> None:
    """KeyboardInterrupt goes through; the next call performs what was left."""
    house = House()

    def interrupt() -> None:
        del house.hooks["see"]
        raise KeyboardInterrupt

    house.hooks["see"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        house.driver.take(Opened())
    house.driver.take(Closed())
    assert house.heard[-2:] == ["to Shut", "bye in Shut"]


def test_calls_from_many_threads_are_one_chain() -> None:
    """Each transition begins where the one before ended, and all are told in that order."""
    told: list[Transition] = []
    driver = Driver(door, Door(), {CallHook: lambda _hook: None}, observer=told.append, clock=lambda: 0)
    start = Barrier(8)

    def use() -> None:
        start.wait()
        for _ in range(200):
            for event in (Opened(), Closed()):
                with suppress(RefusedError):
                    driver.take(event)

    threads = [Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == driver.entity.version - 1
    assert all(earlier.after is later.before for earlier, later in pairwise(told))


def test_moves_are_looked_up_in_the_table() -> None:
    """Rows from any state lead from each, those that stay from none."""
    assert targets(oven, Place.BAKING) == (Place.COLD, Place.BAKING, Place.COOLING, Place.SCRAPPED)
    assert [each.event for each in moves(oven, Place.COLD, Place.SCRAPPED)] == [Scrapped]
    assert targets(oven, Place.SCRAPPED) == (Place.SCRAPPED,)
