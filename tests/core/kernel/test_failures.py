"""Failures: an error of a rule names the place; a quarantined entity accepts no input until it is released."""

from collections.abc import Iterator
from typing import Any

import pytest

from lifefold.core.kernel import (
    ActivityEnded,
    Aggregate,
    AggregateType,
    Codec,
    Create,
    Created,
    DecisionError,
    Dispatch,
    EntityQuarantined,
    EntityReleased,
    Envelope,
    Event,
    HandlerFailed,
    Machine,
    Opened,
    Reaction,
    Record,
    Refusal,
    RunnerRecovered,
    State,
    Step,
    System,
    TimerFired,
    Transition,
    View,
    after,
    decide,
    does,
    encode,
    react,
    replace,
    row,
    rule,
)
from lifefold.effects import Activity, Begin, CancelTimer, Effect, End, StartTimer


class At(State):
    """Where a lift is."""

    GROUND = "Ground"
    GOING = "Going"
    TOP = "Top"


class Up(Event, frozen=True):
    """It is to go up, with so many people."""

    people: int = 1


class Arrived(Event, frozen=True):
    """It is there."""


class Down(Event, frozen=True):
    """It is to go down."""


class Move(Activity, frozen=True):
    """Move so many people, evenly."""

    each: int


class Lift(Record, frozen=True):
    """A lift, and how many it moves."""

    state: At = At.GROUND
    people: int = 1


def has_room(_lift: Lift, event: Up) -> bool:
    """Tell whether they fit, each with a share of the room; 13 is bad luck."""
    if event.people == 13:
        raise ValueError("bad luck")
    return event.people < 100


def load(lift: Lift, event: Up) -> Step[Lift, Effect]:
    """Take them in; a negative number is an error."""
    if event.people < 0:
        raise ArithmeticError("fewer than none")
    return Step(Lift(lift.state, event.people))


def unlucky(lift: Lift, _event: Event) -> Step[Lift, Effect]:
    """Count them again."""
    return Step(Lift(lift.state, 7 // (lift.people - 7)))


def move(record: Lift) -> Move:
    """Move them, each with a share; zero people is an error."""
    return Move(12 // record.people)


lift = Machine(
    "lift",
    Lift(),
    rows=(
        row(At.GROUND, Up, At.GOING, load, when=has_room),
        row(At.GROUND, Up, At.TOP, unlucky),
        row(At.GOING, Arrived, At.TOP),
        row(At.TOP, Down, At.GROUND, unlucky),
    ),
    during={
        At.GOING: does(move, yields=(Arrived,), last=(Arrived,)),
        At.TOP: after(500, Down),
    },
)


@rule(on=lift)
def follow(_aggregate: Aggregate, transition: Transition) -> Iterator[Dispatch | Create]:
    """Have the next lift go up with the first one; there is none for 3, and it is a mistake to look for 9."""
    people = transition.after.record.people
    if transition.entity == "lift:a" and transition.after.state is At.GOING:
        if people == 9:
            raise LookupError("no lift")
        yield Dispatch("lift:b", Up(-people if people == 5 else people))


def counted(before: int, transition: Transition) -> int:
    """Count people; 11 cannot be counted."""
    if transition.after.record.people == 11:
        raise OverflowError("too many")
    return before + int(transition.after.record.people)


lifts = AggregateType("lifts", machines=(lift,), rules=(follow,), views={"counted": View(0, counted)})


def opened() -> Aggregate:
    """Return a house with two lifts."""
    reaction = react(lifts, lifts.start("lifts"), Envelope("", Opened({"lift:a": Lift(), "lift:b": Lift()}), 0))
    assert isinstance(reaction, Reaction)
    return reaction.aggregate


def taken(aggregate: Aggregate, ref: str, event: Event, at_ms: int = 0, **more: Any) -> Reaction:
    """Return what comes of an input that is taken."""
    outcome = react(lifts, aggregate, Envelope(ref, event, at_ms, **more))
    assert isinstance(outcome, Reaction), outcome.reason
    return outcome


def refused(aggregate: Aggregate, ref: str, event: Event, at_ms: int = 0) -> Refusal:
    """Return the refusal of an input."""
    outcome = react(lifts, aggregate, Envelope(ref, event, at_ms))
    assert isinstance(outcome, Refusal)
    return outcome


GUARDED = "row(Ground, Up(people), Going when has_room)"


@pytest.mark.parametrize(
    ("ref", "people", "entity", "error", "said"),
    [
        ("lift:b", 13, "lift:b", ValueError, f"lift:b in Ground, Up, {GUARDED}: ValueError: bad luck (in has_room)"),
        (
            "lift:b", -1, "lift:b", ArithmeticError,
            f"lift:b in Ground, Up, {GUARDED}: ArithmeticError: fewer than none (in load)",
        ),
        (
            "lift:a", 5, "lift:b", ArithmeticError,
            f"lift:b in Ground, Up, {GUARDED}: ArithmeticError: fewer than none (in load)",
        ),
        (
            "lift:a", 9, "lift:a", LookupError,
            "rule follow, after Up of lift:a, now Going: LookupError: no lift (in follow)",
        ),
        (
            "lift:b", 11, "lift:b", OverflowError,
            "view counted, after Up of lift:b, now Going: OverflowError: too many (in counted)",
        ),
    ],
    ids=["guard", "action", "of another entity", "rule", "view"],
)  # fmt: skip
def test_rules_that_raise_name_the_entity_the_row_and_the_function(
    ref: str, people: int, entity: str, error: type[Exception], said: str
) -> None:
    """``decide`` says where; ``react`` raises what was raised. Nothing changes."""
    aggregate = opened()
    with pytest.raises(DecisionError) as failed:
        decide(lifts, aggregate, Envelope(ref, Up(people), 0))
    assert (failed.value.entity, str(failed.value)) == (entity, said)
    assert isinstance(failed.value.error, error)
    with pytest.raises(error):
        react(lifts, aggregate, Envelope(ref, Up(people), 0))


def test_a_timer_whose_row_raises_names_that_row() -> None:
    """The row is that of the event that the timer stands for."""
    at_top = Envelope("", Opened({"lift:b": Lift(At.TOP, 7)}), 0)
    reaction = react(lifts, lifts.start("lifts"), at_top)
    assert isinstance(reaction, Reaction)
    (timer,) = reaction.aggregate.entities["lift:b"].running
    with pytest.raises(DecisionError, match=r"^lift:b in Top, TimerFired, row\(Top, Down, Ground\): ZeroDivisionError"):
        decide(lifts, reaction.aggregate, Envelope("lift:b", TimerFired(timer.slot, timer.generation), 500))


def test_a_row_whose_guard_says_no_is_not_the_one_that_raises() -> None:
    """It is the next one that is taken."""
    seven = taken(opened(), "lift:c", Created(Lift(people=7))).aggregate
    with pytest.raises(
        DecisionError, match=r"^lift:c in Ground, Up, row\(Ground, Up\(people\), Top\): ZeroDivisionError"
    ):
        decide(lifts, seven, Envelope("lift:c", Up(200), 0))


def test_what_begins_with_an_error_names_the_entity() -> None:
    """There is no row then: a beginning, and a runner that is back."""
    with pytest.raises(DecisionError, match=r"^lift:c begins in Going: ZeroDivisionError"):
        decide(lifts, opened(), Envelope("lift:c", Created(Lift(At.GOING, 0)), 0))
    going = taken(opened(), "lift:b", Up(4)).aggregate
    entity = going.entities["lift:b"]
    empty = replace(entity, record=Lift(At.GOING, 0))
    with pytest.raises(DecisionError, match=r"^lift:b in Going, RunnerRecovered: ZeroDivisionError") as failed:
        decide(lifts, replace(going, entities=going.entities.set("lift:b", empty)), Envelope("", RunnerRecovered(1), 0))
    assert failed.value.entity == "lift:b"


def quarantined(ref: str = "lift:b") -> Aggregate:
    """Return a house in which a lift that goes up is quarantined."""
    going = taken(opened(), ref, Up(4)).aggregate
    return taken(going, ref, EntityQuarantined("it smells")).aggregate


def test_an_entity_that_is_quarantined_takes_nothing_more() -> None:
    """Neither from outside nor from rules, whether or not it would be possible; the others go on."""
    aggregate = quarantined()
    assert dict(aggregate.quarantined) == {"lift:b": "it smells"}
    for event in (Up(1), Down(), Created(Lift())):
        refusal = refused(aggregate, "lift:b", event)
        assert (refusal.kind, refusal.reason) == ("quarantined", "lifts: 'lift:b': it smells")
    other = taken(aggregate, "lift:a", Up(2))
    assert other.aggregate.entities["lift:a"].state is At.GOING
    assert [each.kind for each in other.refusals] == ["quarantined"]


def test_what_goes_on_for_it_is_ended_and_confirmed() -> None:
    """Its activity is asked to end, its timer is cancelled; after a crash the end is asked for again."""
    going = taken(opened(), "lift:b", Up(4)).aggregate
    reaction = taken(going, "lift:b", EntityQuarantined("it smells"))
    (asked,) = reaction.effects
    assert isinstance(asked.effect, End)
    assert reaction.transitions == ()
    again = taken(reaction.aggregate, "", RunnerRecovered(1))
    assert [each.effect for each in again.effects] == [asked.effect]
    gone = taken(again.aggregate, "lift:b", ActivityEnded(asked.effect.slot, asked.effect.generation))
    assert gone.aggregate.entities["lift:b"].running == ()
    at_top = react(lifts, lifts.start("lifts"), Envelope("", Opened({"lift:b": Lift(At.TOP)}), 0))
    assert isinstance(at_top, Reaction)
    waits = taken(at_top.aggregate, "lift:b", EntityQuarantined("it smells"))
    assert [type(each.effect) for each in waits.effects] == [CancelTimer]


def test_a_released_entity_goes_on_in_its_state() -> None:
    """Its activity begins anew when the one before it is gone; a timer starts over."""
    reaction = taken(quarantined(), "lift:b", EntityReleased(), 7)
    assert reaction.aggregate.quarantined == {}
    ended, waiting = reaction.aggregate.entities["lift:b"].running
    assert reaction.effects == ()
    gone = taken(reaction.aggregate, "lift:b", ActivityEnded(ended.slot, ended.generation))
    assert [each.effect for each in gone.effects] == [Begin(waiting.slot, Move(3), waiting.generation)]
    at_top = react(lifts, lifts.start("lifts"), Envelope("", Opened({"lift:b": Lift(At.TOP)}), 0))
    assert isinstance(at_top, Reaction)
    waits = taken(at_top.aggregate, "lift:b", EntityQuarantined("it smells")).aggregate
    (asked,) = taken(waits, "lift:b", EntityReleased(), 7).effects
    assert isinstance(asked.effect, StartTimer)
    assert asked.effect.deadline_ms == 507


def test_a_quarantine_is_one_and_a_release_is_of_one() -> None:
    """What is so already, and what no machine is for, is refused."""
    already = refused(quarantined(), "lift:b", EntityQuarantined("again"))
    assert already.reason == "lifts: 'lift:b' is quarantined already"
    assert refused(opened(), "lift:b", EntityReleased()).reason == "lifts: 'lift:b' is not quarantined"
    assert refused(opened(), "stairs", EntityQuarantined("?")).kind == "unknown"


def test_an_activity_that_cannot_be_made_names_the_release_that_wanted_it() -> None:
    """The entity stays quarantined: the input is not taken."""
    gone = taken(opened(), "lift:b", Up(1)).aggregate
    empty = replace(gone.entities["lift:b"], record=Lift(At.GOING, 0))
    held = taken(
        replace(gone, entities=gone.entities.set("lift:b", empty)), "lift:b", EntityQuarantined("why")
    ).aggregate
    with pytest.raises(DecisionError) as raised:
        decide(lifts, held, Envelope("lift:b", EntityReleased(), 7))
    assert isinstance(raised.value.error, ZeroDivisionError)
    assert str(raised.value).startswith("lift:b in Going, EntityReleased: ZeroDivisionError: ")


def test_an_entity_that_cannot_come_to_be_is_quarantined_before_it_is() -> None:
    """So that a message which has it begin is taken, and refused, and not delivered for ever."""
    aggregate = taken(opened(), "lift:c", EntityQuarantined("it raises")).aggregate
    assert refused(aggregate, "lift:c", Created(Lift())).kind == "quarantined"
    told = taken(aggregate, "lift:c", Created(Lift()), sender="house", ordinal=1)
    assert [each.kind for each in told.refusals] == ["quarantined"]
    free = taken(told.aggregate, "lift:c", EntityReleased()).aggregate
    assert "lift:c" in taken(free, "lift:c", Created(Lift())).aggregate.entities


def test_a_failure_of_a_handler_is_noted_and_changes_nothing() -> None:
    """It is an entry like others, also of an entity that is quarantined, or is not there."""
    failed = HandlerFailed("Move", 1, "OSError: stuck", "retry", slot="Move", generation=2)
    for aggregate in (opened(), quarantined()):
        for ref in ("lift:b", "lift:c"):
            reaction = taken(aggregate, ref, failed)
            assert reaction.aggregate.version == aggregate.version + 1
            assert (reaction.aggregate.entities, reaction.effects) == (aggregate.entities, ())


@pytest.mark.parametrize(
    "event", [HandlerFailed("Move", 1, "OSError", "retry", 3, 1), EntityQuarantined("why"), EntityReleased()]
)
def test_a_log_has_them(event: Event) -> None:
    """What is written is read again."""
    envelope = Envelope("lift:a", event, 1, "engine")
    assert Codec(System("house", lifts)).decode("lifts", encode(envelope)) == envelope
    assert lifts.reads("lift:a", event)
