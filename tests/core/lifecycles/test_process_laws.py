"""Laws of a process, under requests, reports, timers and crashes in any order.

The laws of all lifecycles are tested elsewhere. These are the properties that operators rely on.
"""

import itertools
from collections.abc import Callable
from typing import Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lifefold.core.kernel import Event, Step
from lifefold.core.lifecycles import process
from lifefold.core.lifecycles.process import (
    SERVING,
    BackoffElapsed,
    Comeback,
    Limits,
    MoveRequested,
    Orphaned,
    ResumeRequested,
    RunSucceeded,
    StartRequested,
    State,
    StopRequested,
    SuspendReason,
    SuspendRequested,
    TriggerArrived,
)
from lifefold.effects import Begin, PauseTriggers, ResumeTriggers, ServeTriggers
from process_life import Life

STARTS: Final = (StartRequested, MoveRequested)
ASKED: Final = (*STARTS, SuspendRequested, ResumeRequested)
EVENTS: Final = tuple(event for kind in process.machine.events for event in kind.examples())
TIMERS: Final = {"SuspendDue", "IdleElapsed", "LifetimeElapsed", "DrainElapsed", "BackoffElapsed"}
REPORTED: Final = tuple(event for event in EVENTS if type(event).__name__ not in TIMERS)
"""Events of operators and activities; timers fire by waiting, not by being sent."""

LIMITS: Final = st.builds(
    Limits,
    restart_policy=st.sampled_from(["never", "on_failure", "always"]),
    max_restarts=st.integers(0, 3),
    max_consecutive_failures=st.integers(1, 3),
    idle_timeout_ms=st.sampled_from([0, 500]),
    max_lifetime_ms=st.sampled_from([0, 10_000]),
)


class Likely(msgspec.Struct, frozen=True):
    """An event that the state accepts, by its number among them; some events are left out."""

    choice: int
    unsaid: tuple[type[Event], ...]


Happening = Event | int | Likely | None
"""An event, a time to wait in milliseconds, an event that the state takes, or a crash of the runner."""


def happenings(*unsaid: type[Event]) -> st.SearchStrategy[list[Happening]]:
    """Return a strategy of happenings without these events."""
    said = st.sampled_from([event for event in REPORTED if not isinstance(event, unsaid)])
    likely = st.builds(Likely, st.integers(0, 99), st.just(unsaid))
    times = st.sampled_from([0, 400, 3_000, 70_000])
    return st.lists(st.one_of(likely, likely, likely, likely, times, times, said, st.none()), min_size=10, max_size=60)


def happen(life: Life, happening: Happening) -> None:
    """Let it happen; an event that is refused does nothing."""
    match happening:
        case None:
            life.crash(1_000)
        case int():
            life.wait(happening)
        case Likely(choice, unsaid):
            said = [event for event in REPORTED if not isinstance(event, unsaid)]
            taken = [event for event in said if isinstance(life.machine.step(life.record, event), Step)]
            if taken:
                happen(life, taken[choice % len(taken)])
        case Event():
            life.offer(happening, life.source(happening))


def live(limits: Limits, course: list[Happening], check: Callable[[Life], None] = lambda _life: None) -> Life:
    """Live through a course of happenings, with a check after each."""
    life = Life(limits)
    for happening in course:
        happen(life, happening)
        check(life)
    return life


def must_keep_the_invariants(life: Life) -> None:
    assert [holds.__name__ for holds in life.machine.invariants if not holds(life.record)] == []


@given(LIMITS, happenings())
def test_the_invariants_hold_whatever_happens(limits: Limits, course: list[Happening]) -> None:
    """In every record reached by requests, reports, timers and crashes."""
    live(limits, course, must_keep_the_invariants)


@given(LIMITS, happenings())
def test_every_change_of_state_is_an_edge_of_the_document(limits: Limits, course: list[Happening]) -> None:
    """All inputs lead along the nineteen edges."""
    edges = {(source, row.target) for row in process.TABLE for source in row.sources or ()}
    visited = live(limits, course).visited
    assert {(before, after) for before, after in itertools.pairwise(visited)} <= edges


@given(LIMITS, happenings(), happenings(*STARTS))
def test_a_stopped_process_starts_only_on_request(
    limits: Limits, before: list[Happening], after: list[Happening]
) -> None:
    """Between a requested stop and a requested start, no timer, trigger, failure or crash starts it (C7)."""
    life = live(limits, before)
    happen(life, StopRequested())
    life.visited.clear()
    life.visited.append(life.state)
    for happening in after:
        happen(life, happening)
    assert not {State.STARTING, State.RUNNING, State.AWAITING, State.SUSPENDED}.intersection(life.visited)


@given(LIMITS, happenings(RunSucceeded, *STARTS))
def test_there_are_never_more_restarts_than_the_limit_without_a_successful_run(
    limits: Limits, course: list[Happening]
) -> None:
    """Starts that work, triggers, suspensions and crashes restore no restarts; recycles do not count."""
    life = Life(limits).give(StartRequested())
    restarts = 0
    for happening in course:
        for step in [1] * (happening // 100) if isinstance(happening, int) else [happening]:
            due = life.record.comeback is Comeback.RESTART and life.state is State.FAILED
            happen(life, 100 if isinstance(happening, int) else step)
            restarts += due and life.state is not State.FAILED
    assert restarts <= limits.max_restarts
    assert life.record.restart_count == restarts


@given(LIMITS, happenings())
def test_triggers_are_paused_exactly_while_a_suspension_holds_or_is_to_come(
    limits: Limits, course: list[Happening]
) -> None:
    """The published news agree with the record, on every path (C15)."""
    paused = False
    seen = 0
    life = Life(limits)
    for happening in course:
        happen(life, happening)
        for effect in life.effects[seen:]:
            match effect:
                case Begin(activity=ServeTriggers(paused=begun)):
                    paused = begun
                case PauseTriggers():
                    paused = True
                case ResumeTriggers():
                    paused = False
                case _:
                    pass
        seen = len(life.effects)
        if life.state in SERVING:
            assert paused == (life.record.suspended_for is not None)


@given(LIMITS, st.sampled_from([why for why in SuspendReason if why is not SuspendReason.IDLE]), happenings(*ASKED))
def test_a_requested_pause_ends_only_on_request(limits: Limits, why: SuspendReason, course: list[Happening]) -> None:
    """Triggers, idleness, restarts and recycles leave the pause; a stop, a start and a resumption end it (C15)."""
    life = Life(limits).give(StartRequested(), SuspendRequested(why))
    for happening in course:
        happen(life, happening)
        assert life.record.suspended_for is why


@given(LIMITS, happenings())
def test_nothing_is_live_after_a_crash_of_the_runner(limits: Limits, course: list[Happening]) -> None:
    """A live process is FAILED, orphaned; a process at rest is unchanged (C12)."""
    life = live(limits, course)
    before = life.state
    life.crash()
    assert life.state is (before if before in process.AT_REST else State.FAILED)
    assert life.going_on == set()


@given(LIMITS, happenings())
def test_a_timer_that_comes_too_late_is_inert(limits: Limits, course: list[Happening]) -> None:
    """A planned restart that was cancelled does not happen by a late report of its timer."""
    life = live(limits, course)
    before = life.record
    if before.comeback is Comeback.NONE:
        life.offer(BackoffElapsed())
        assert life.record == before


@given(LIMITS, happenings())
def test_a_trigger_is_never_slept_through(limits: Limits, course: list[Happening]) -> None:
    """After a trigger, a process that may work is not idle, and not on its way to an idle suspension."""
    life = live(limits, course)
    happen(life, TriggerArrived())
    if life.state in SERVING and life.record.suspended_for is None:
        assert life.state is State.RUNNING
    assert life.record.suspended_for is not SuspendReason.IDLE or life.state not in SERVING


def test_the_courses_come_everywhere() -> None:
    """The laws are tested with processes in every state: these courses visit all of them."""
    visited: set[State] = set()
    kinds: set[str] = set()

    @settings(max_examples=200)
    @given(LIMITS, happenings())
    def visit(limits: Limits, course: list[Happening]) -> None:
        life = live(limits, course)
        visited.update(life.visited)
        kinds.update(life.news)

    visit()
    assert visited == set(State)
    assert kinds == {"started", "stopped", "failed", "restarted", "restart_exhausted", "suspended", "resumed"}


def test_an_orphan_is_what_the_machine_makes_of_it() -> None:
    """The kernel's recovery requests the work again; this event reports that no runner does it."""
    life = Life().give(StartRequested(), Orphaned())
    assert (life.state, life.record.failure) == (State.FAILED, "orphaned")
