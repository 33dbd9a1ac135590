"""The journal: the document's nine fields for every transition, and events in one line each."""

import msgspec

from lifefold.core.kernel import (
    ActivityEnded,
    Created,
    EntityStep,
    Envelope,
    Event,
    LifecycleEvent,
    RunnerRecovered,
    TimerFired,
    advance,
    create,
    describe,
    encode,
    journal,
    replace,
)
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.session_profiles import LimitsChanged
from lifefold.core.policy.ends import TIMED_OUT
from oven import Baked, Doused, Lit, Oven, Place, machine


class Said(Event, frozen=True):
    """A text that was said a number of times."""

    text: str = ""
    times: int = 1


def test_an_entry_has_the_documents_nine_fields_in_its_order() -> None:
    """And what else is known stands in ``metadata`` (E44)."""
    assert LifecycleEvent.__struct_fields__ == (
        "timestamp", "entity_type", "entity_id", "from_status", "to_status", "actor", "reason", "transition_reason",
        "abort_reason", "metadata",
    )  # fmt: skip


def test_a_transition_is_an_entry() -> None:
    """Seconds, machine, key, states, actor, what the event says, and the effects by name."""
    born = create(machine, "oven:left", Oven(), 1_000, "plan")
    lit = advance(machine, born.entity, Envelope("oven:left", Lit(220), 1_500, "baker"))
    assert isinstance(lit, EntityStep)
    assert journal("house/a", lit.transitions[0]) == LifecycleEvent(
        timestamp=1.5,
        entity_type="oven",
        entity_id="left",
        from_status="Cold",
        to_status="Baking",
        actor="baker",
        reason="degrees 220",
        metadata={"aggregate": "house/a", "event": "Lit", "version": 2, "effects": ["Begin"]},
    )


class Reasoned(Event, frozen=True):
    """An event with the document's two reasons."""

    transition_reason: str | None = "retry"
    abort_reason: str | None = None
    by: str = "ann"


def test_an_event_that_gives_a_canonical_reason_is_quoted() -> None:
    """In the document's two fields, and nowhere else."""
    born = create(machine, "oven", Oven(), 0, "plan")
    entry = journal("house/a", replace(born.transitions[0], event=Reasoned()))
    assert (entry.transition_reason, entry.abort_reason, entry.reason) == ("retry", None, "by ann")


def test_a_creation_comes_from_no_status() -> None:
    """Its reason is empty: the record is not repeated."""
    born = create(machine, "oven", Oven(Place.BAKING), 0, "plan")
    entry = journal("house/a", born.transitions[0])
    assert (entry.from_status, entry.to_status, entry.reason) == ("", "Baking", "")
    assert entry.metadata["event"] == "Created"


def test_an_entity_without_a_key_is_called_like_its_aggregate() -> None:
    """By the aggregate's key, or its name if it has none."""
    born = create(machine, "oven", Oven(), 0, "plan").transitions[0]
    assert journal("house/a", born).entity_id == "a"
    assert journal("house", born).entity_id == "house"


def test_every_entry_can_be_written() -> None:
    """A journal is for other programs."""
    entity = create(machine, "oven", Oven(Place.BAKING), 0, "plan").entity
    for event, slot in ((Baked(), "Bake"), (Doused(), "")):
        done = advance(machine, entity, Envelope("oven", event, 1, slot=slot, generation=1 if slot else 0))
        assert isinstance(done, EntityStep)
        entry = journal("house/a", done.transitions[0])
        assert msgspec.json.decode(encode(entry), type=LifecycleEvent) == entry


def test_an_event_is_described_by_what_it_says() -> None:
    """What speaks for itself as it is, everything else with its name; what is empty is not mentioned."""
    assert describe(Said("hello", 2)) == "hello, times 2"
    assert describe(Said("", 2)) == "times 2"
    assert describe(Doused()) == ""


def test_a_part_of_an_event_is_described_by_its_name_and_what_it_says() -> None:
    """As the documents write it: ``Error(exit status 1)``."""
    assert describe(session.SessionExited(session.Error("exit status 1"))) == "Error(exit status 1)"
    assert describe(session.SessionExited(session.Error("no key", TIMED_OUT))) == "Error(no key)", (
        "its reasons stand apart"
    )
    assert describe(task.Failed(1, "no key", TIMED_OUT)) == "epoch 1, no key"
    assert describe(session.SessionExited(session.Timeout())) == "Timeout"


def test_limits_are_described_by_the_names_of_those_that_are_not_as_usual() -> None:
    """A number without its name says nothing, and neither does a yes or no that has its default."""
    changed = LimitsChanged(session.Limits(session_timeout_ms=30_000, grace_ms=1))
    assert describe(changed) == "Limits(grace_ms 1, session_timeout_ms 30000)"
    assert describe(LimitsChanged()) == ""
    assert describe(session.SessionExited(session.Suspended(asked=True))) == "Suspended(asked True)"
    assert describe(session.SessionExited(session.Suspended(), is_total=True)) == "Suspended, is_total True"


def test_the_kernels_own_fields_are_not_described() -> None:
    """They mean something to the kernel only."""
    for event in (Created(Oven()), TimerFired("Cooled", 3), ActivityEnded("Bake", 2), RunnerRecovered(5)):
        assert describe(event) == ""


def test_a_description_is_one_line_and_not_a_long_one() -> None:
    """Of a text its first line; what is cut off shows."""
    assert describe(Said("\n  a b \n\n  c")) == "a b , times 1"
    assert describe(Said("x" * 151)) == "x" * 151 + ", times 1"
    long = describe(Said("x" * 500))
    assert (len(long), long[-1], long[:159]) == (160, "…", "x" * 159)
