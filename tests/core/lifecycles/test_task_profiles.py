"""Profiles of the task's table: one with four more edges, one with the same edges and more rules."""

from typing import Any, Final

import pytest

from document_tables import lines
from lifefold.core.kernel import (
    Entity,
    EntityStep,
    Envelope,
    Event,
    IllegalTransition,
    Refusal,
    Step,
    TimerFired,
    advance,
    create,
    replace,
)
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import (
    Blocked,
    Cancelled,
    Claimed,
    Completed,
    Decomposed,
    Failed,
    Orphaned,
    Released,
    Retried,
    Salvaged,
    Started,
    State,
)
from lifefold.core.lifecycles.task_profiles import (
    STRICTER,
    GivenUp,
    GovernedTask,
    LeaseExpired,
    bernstein_1_9,
    governed,
)
from lifefold.core.policy.retry import RetryPolicy
from lifefold.effects import AbortSession, Effect, KeepDeadLetter

MORE: Final = [(line.sources[0], line.targets[0]) for line in lines("task", "task-bernstein-1.9")]
"""The further edges of version 1.9 (E1)."""


@pytest.mark.parametrize("state", State, ids=str)
def test_only_a_task_without_work_can_be_given_up(state: State) -> None:
    """In the profile; the document's table knows nothing of it (E1)."""
    record = task.Task(state=state, owner="w")
    answer = bernstein_1_9.step(record, GivenUp("no budget"))
    assert isinstance(answer, Step) is ((state.value, "FAILED") in MORE)
    if isinstance(answer, Step):
        expected = replace(record, state=State.FAILED, owner="", reason="no budget", failure="no budget")
        assert answer.record == expected
    assert isinstance(task.machine.step(record, GivenUp()), IllegalTransition)


def test_the_governed_profile_ends_where_the_document_does() -> None:
    """``test_documents`` compares its edges: all thirty and no other."""
    assert governed.final == task.machine.final
    assert governed.detached == task.machine.detached


def test_every_stricter_row_has_taken_the_place_of_a_literal_one() -> None:
    """None is lost, and none stands beside the one that it replaces."""
    replaced = {(row.sources, row.event) for row in STRICTER}
    assert [row for row in governed.rows if (row.sources, row.event) in replaced] == list(STRICTER)


SECOND: Final = 1_000


def opened(**fields: Any) -> Entity[Any]:
    """Return an open task's entity."""
    return create(governed, "task", GovernedTask(state=State.OPEN, id="T1", **fields), 0, "").entity


def say(entity: Entity[Any], event: Event, at_ms: int = 0) -> EntityStep | Refusal:
    """Let an entity take an event."""
    return advance(governed, entity, Envelope("task", event, at_ms))


def told(entity: Entity[Any], *events: Event, at_ms: int = 0) -> tuple[Entity[Any], tuple[Effect, ...]]:
    """Let an entity take events, all accepted; return the last one's own effects."""
    effects: tuple[Effect, ...] = ()
    for event in events:
        answer = say(entity, event, at_ms)
        assert isinstance(answer, EntityStep), answer
        entity, effects = answer.entity, answer.effects
    own = tuple(effect for effect in effects if isinstance(effect, AbortSession | KeepDeadLetter))
    return entity, own


def elapsed(entity: Entity[Any], at_ms: int) -> Entity[Any]:
    """Let the one timer of an entity happen; it must not be early."""
    timer = entity.running[0]
    assert isinstance(say(entity, TimerFired(timer.slot, timer.generation), at_ms - 1), Refusal)
    return told(entity, TimerFired(timer.slot, timer.generation), at_ms=at_ms)[0]


def test_a_task_rests_before_it_is_claimed_again() -> None:
    """30 s after the first failure, 60 s after the second: enforced, not advised (E6)."""
    entity, _ = told(opened(), Claimed("w"), Failed(1, "tests fail"), Retried(), at_ms=SECOND)
    assert entity.record.not_before_ms == 31 * SECOND
    assert isinstance(say(entity, Claimed("v"), 31 * SECOND - 1), Refusal)
    entity, _ = told(entity, Claimed("v"), Failed(2, "tests fail"), Retried(), at_ms=31 * SECOND)
    assert entity.record.not_before_ms == 91 * SECOND
    assert (entity.record.retries, entity.record.failure) == (2, "tests fail")


def test_a_task_that_never_failed_is_claimed_at_once() -> None:
    """Also after it was given back: that was no failure (E6)."""
    entity, _ = told(opened(), Claimed("w"), Released(1, "busy"), Claimed("v"))
    assert entity.record.owner == "v"


def test_a_task_can_wait_for_the_hour_at_which_a_quota_is_reset() -> None:
    """The plan sets the time from which it may be claimed; until then no worker has it.

    anthropics/claude-code#1314, smtg-ai/claude-squad#114: what is to be done after the reset cannot be queued.
    """
    reset_ms = 5 * 3_600 * SECOND
    entity = opened(not_before_ms=reset_ms)
    assert isinstance(say(entity, Claimed("w"), reset_ms - 1), Refusal)
    assert told(entity, Claimed("w"), at_ms=reset_ms)[0].record.owner == "w"


def test_a_failure_that_cannot_pass_is_not_retried() -> None:
    """Others are, three times, on the same id (E5)."""
    entity, _ = told(opened(), Claimed("w"), Failed(1, "permission denied"))
    assert isinstance(say(entity, Retried()), Refusal)
    assert task.settled(entity.record)
    patient = opened(retry_policy=RetryPolicy(backoff_base_ms=0))
    for attempt in (1, 2, 3, 4):
        patient, _ = told(patient, Claimed("w"), Failed(attempt, "tests fail"))
        assert isinstance(say(patient, Retried()), EntityStep) is (attempt < 4)
        assert task.settled(patient.record) is (attempt == 4)
        patient = told(patient, Retried())[0] if attempt < 4 else patient
    assert patient.record.id == "T1"


def test_a_claim_without_work_expires() -> None:
    """Back to OPEN: a dead agent's claim wedges nothing (E11, sipyourdrink-ltd/bernstein#4453)."""
    entity, _ = told(opened(), Claimed("w"))
    entity = elapsed(entity, 900 * SECOND)
    assert (entity.state, entity.record.owner) == (State.OPEN, "")
    assert entity.record.reason == "w has not begun within its lease"


def test_only_a_claim_that_was_not_begun_runs_out() -> None:
    """An owner that has begun is watched by its heartbeats, and is orphaned under its own claim's number (E11, E12)."""
    entity, _ = told(opened(), Claimed("w"), Started(1))
    assert entity.running == ()
    for state in set(State) - {State.CLAIMED}:
        assert isinstance(governed.step(GovernedTask(state=state), LeaseExpired()), IllegalTransition)
    assert isinstance(say(entity, Orphaned(2)), Refusal)
    assert told(entity, Orphaned(1))[0].state is State.ORPHANED


def orphaned() -> Entity[Any]:
    """Return a task whose owner w was given up for dead while it worked."""
    return told(opened(), Claimed("w"), Started(1), Orphaned(1))[0]


ORPHANS: Final = (Started(1), Completed(1), Failed(1, "x"), Released(1, "x"), Decomposed(1), Blocked("x", 1))


@pytest.mark.parametrize("report", ORPHANS, ids=lambda event: type(event).__name__)
def test_the_word_of_an_owner_that_was_given_up_for_dead_is_kept_and_changes_nothing(report: Event) -> None:
    """Neither its success nor its failure: the work belongs to its recovery (E12; majiayu000/harness#1878)."""
    now, effects = told(orphaned(), report)
    assert now.record == orphaned().record
    assert effects == (KeepDeadLetter("T1", type(report).__name__, 1, 2),)


@pytest.mark.parametrize("way", [Salvaged(2), Failed(2, "lost"), Released(2, "again")], ids=str)
def test_the_recovery_of_orphaned_work_reports_under_the_next_epoch(way: Event) -> None:
    """All three ways out of ORPHANED are its own (E12, E40)."""
    entity, _ = told(orphaned(), way)
    assert entity.state in {State.DONE, State.FAILED, State.OPEN}
    assert isinstance(say(orphaned(), Salvaged(1)), Refusal)


def test_subtasks_have_a_limit_of_time() -> None:
    """After 30 min the parent is blocked (E9)."""
    entity, _ = told(opened(), Decomposed(0))
    assert elapsed(entity, 1_800 * SECOND).state is State.BLOCKED


def test_a_lost_subtask_blocks_its_parent_with_the_reason() -> None:
    """At once (E7)."""
    assert isinstance(say(told(opened(), Decomposed(0))[0], Blocked("S1 is FAILED", 1)), Refusal)
    entity, _ = told(opened(), Decomposed(0), Blocked("S1 is FAILED"))
    assert (entity.state, entity.record.reason, entity.running) == (State.BLOCKED, "S1 is FAILED", ())


@pytest.mark.parametrize("events", [(Claimed("w"),), (Claimed("w"), Started(1))], ids=["claimed", "in progress"])
def test_cancelling_a_task_ends_the_session_that_works_at_it(events: tuple[Event, ...]) -> None:
    """No session runs on for a task that is not wanted (E20, NousResearch/hermes-agent#57596)."""
    entity, effects = told(opened(), *events, Cancelled("no"))
    assert effects == (AbortSession("w", "T1"),)
    assert (entity.state, entity.record.owner) == (State.CANCELLED, "")
    assert told(opened(), Cancelled("no"))[1] == ()


LATE: Final = (Started(1), Completed(1), Failed(1, "x"), Released(1, "x"), Decomposed(1), Blocked("x", 1))


@pytest.mark.parametrize("report", LATE, ids=lambda event: type(event).__name__)
def test_a_report_of_a_claim_that_is_over_changes_nothing_and_is_kept(report: Event) -> None:
    """The former owner's report is neither obeyed nor lost, and takes nothing from the next one.

    E12; majiayu000/harness#1878, aegra/aegra#502, aegra/aegra#547.
    """
    entity, _ = told(opened(), Claimed("w"), Released(1, "slow"), Claimed("v"), Started(2))
    now, effects = told(entity, report)
    assert now.record == entity.record
    assert effects == (KeepDeadLetter("T1", type(report).__name__, 1, 2),)


def test_a_report_of_a_claim_that_never_was_is_refused() -> None:
    """There is no claim that the report could be about (E12)."""
    entity, _ = told(opened(), Claimed("w"))
    assert isinstance(say(entity, Completed(2)), Refusal)
    assert isinstance(say(entity, Completed(0)), Refusal)
    assert isinstance(say(opened(), Completed(1)), Refusal)
    assert isinstance(say(opened(), Completed(0)), Refusal)


LIMITS: Final[list[dict[str, Any]]] = [{"lease_ms": 0}, {"subtasks_ms": 0}]


@pytest.mark.parametrize("fields", LIMITS, ids=str)
def test_limits_that_could_never_work_are_refused(fields: dict[str, Any]) -> None:
    """The message names the field."""
    with pytest.raises(ValueError, match=f"{next(iter(fields))} must be at least 1, not 0"):
        GovernedTask(**fields)
