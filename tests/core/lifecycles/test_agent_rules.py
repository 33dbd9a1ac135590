"""Agents beyond their table: heartbeats, silence, the time limit of a task, and the parent."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import (
    Entity,
    EntityStep,
    Envelope,
    Event,
    IllegalTransition,
    Machine,
    Refusal,
    Step,
    TimerFired,
    advance,
    create,
    replace,
)
from lifefold.core.lifecycles import agent
from lifefold.core.lifecycles.agent import (
    Agent,
    Heartbeat,
    Limits,
    Recycled,
    SpawnOverdue,
    State,
    TaskAssigned,
    TaskFinished,
    Watched,
    machine,
    spawned,
    supervised,
)
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import AbortSession, Effect, EscalateSilence, KillOverdue

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND


def begun(machine: Machine[Any], at_ms: int = 0) -> Entity[Any]:
    """Return a new agent's entity."""
    return create(machine, "agent", spawned("A1", at_ms, task="T1"), at_ms, "").entity


def told(
    machine: Machine[Any], entity: Entity[Any], event: Event, at_ms: int
) -> tuple[Entity[Any], tuple[Effect, ...]]:
    """Let an entity take an event, which must be accepted."""
    answer = advance(machine, entity, Envelope("agent", event, at_ms))
    assert isinstance(answer, EntityStep), answer
    return answer.entity, answer.effects


def working(at_ms: int = 0) -> Entity[Any]:
    """Return an agent that was heard of at ``at_ms``."""
    return told(machine, begun(machine, at_ms), Heartbeat(), at_ms)[0]


def watched(entity: Entity[Any], at_ms: int) -> tuple[Entity[Any], list[str]]:
    """Look at the clock, and return what is done about it, a word each."""
    now, effects = told(machine, entity, Watched(), at_ms)
    return now, [effect.tier if isinstance(effect, EscalateSilence) else "overdue" for effect in effects]


def test_every_step_of_the_ladder_is_taken_once_when_its_silence_is_reached() -> None:
    """60, 90, 120 and 150 seconds, each inclusive; looking more often does nothing more."""
    entity = working()
    seen: list[tuple[int, str]] = []
    for at_s in range(0, 200, 10):
        entity, steps = watched(entity, at_s * SECOND)
        seen += [(at_s, step) for step in steps]
    assert seen == [(60, "warn"), (90, "usr1"), (120, "term"), (150, "kill")]


def test_a_heartbeat_lets_the_ladder_start_again() -> None:
    """From the first step, measured from the heartbeat."""
    entity, steps = watched(working(), 95 * SECOND)
    assert steps == ["warn", "usr1"]
    entity, _ = told(machine, entity, Heartbeat(), 100 * SECOND)
    entity, steps = watched(entity, 159 * SECOND)
    assert steps == []
    assert watched(entity, 160 * SECOND)[1] == ["warn"]


def test_an_agent_that_was_never_heard_of_is_measured_from_its_start() -> None:
    """Not from the beginning of time, and not never (E31, E32)."""
    fresh = spawned("A1", 10 * MINUTE)
    assert agent.silent_ms(fresh, 10 * MINUTE) == 0
    assert agent.silent_ms(fresh, 11 * MINUTE) == MINUTE
    assert agent.silent_ms(replace(fresh, heartbeat_at_ms=12 * MINUTE), 13 * MINUTE) == MINUTE


def test_time_for_a_task_is_extended_while_the_agent_is_heard_of() -> None:
    """1800 s, and 600 s more each time, up to 5400 s in all; then it is ended, once."""
    entity = working()
    ended: list[int] = []
    for at_s in range(0, 7_200, 100):
        entity, _ = told(machine, entity, Heartbeat(), at_s * SECOND)
        entity, steps = watched(entity, at_s * SECOND)
        ended += [at_s for step in steps if step == "overdue"]
    assert ended == [5_400]


def test_time_for_a_task_is_not_extended_for_one_that_is_silent() -> None:
    """120 s of silence are enough, inclusive; 119.999 are not."""
    silent = replace(working().record, heartbeat_at_ms=1_680 * SECOND, at_ms=1_800 * SECOND, escalated=4)
    step = machine.step(silent, Watched())
    assert isinstance(step, Step)
    assert step.effects == (KillOverdue("A1", 1_800 * SECOND),)
    assert step.record.overdue
    heard = machine.step(replace(silent, heartbeat_at_ms=1_680 * SECOND + 1), Watched())
    assert isinstance(heard, Step)
    assert (heard.effects, heard.record.allowed_ms) == ((), 2_400 * SECOND)


def test_a_new_task_has_all_of_its_time() -> None:
    """What the one before took does not count."""
    entity, _ = told(machine, working(), TaskFinished(), 1_700 * SECOND)
    assert (entity.record.task, entity.record.overdue, entity.record.allowed_ms) == ("", False, 0)
    entity, _ = told(machine, entity, TaskAssigned("T2"), 1_750 * SECOND)
    assert watched(entity, 1_800 * SECOND)[1] == []


def elapsed(entity: Entity[Any], at_ms: int) -> EntityStep | Refusal:
    """Let the one timer of an entity report."""
    timer = entity.running[0]
    return advance(supervised, entity, Envelope("agent", TimerFired(timer.slot, timer.generation), at_ms))


def test_a_launch_that_takes_too_long_fails_by_itself() -> None:
    """After 60 s, with the reason: no agent is shown as starting for ever (Untrivial-ai/agent-orchestrator#1187).

    What was launched is ended, not only given up: pytransitions/transitions#682.
    """
    entity = begun(supervised, 7)
    assert isinstance(elapsed(entity, 7 + MINUTE - 1), Refusal)
    answer = elapsed(entity, 7 + MINUTE)
    assert isinstance(answer, EntityStep)
    record = answer.entity.record
    assert (record.state, record.abort_reason) == (State.DEAD, AbortReason.TIMEOUT)
    assert record.reason == "not started within 60000 ms"
    assert [each for each in answer.effects if isinstance(each, AbortSession)] == [AbortSession("A1", "T1")]
    assert SpawnOverdue().abort_reason is AbortReason.TIMEOUT


def test_a_task_older_than_the_longest_time_is_overdue_at_the_first_look() -> None:
    """The watcher may have been away for long: such a task gets no more time, for all signs of life."""
    entity = working()
    entity, _ = told(machine, entity, Heartbeat(), 89 * MINUTE)
    _, early = watched(entity, 89 * MINUTE)
    assert early == []
    entity, _ = told(machine, entity, Heartbeat(), 90 * MINUTE)
    _, late = watched(entity, 90 * MINUTE)
    assert late == ["overdue"]


def test_an_idle_agent_is_recycled_by_itself() -> None:
    """After 300 s without a task, and its session with it; it is no abnormal end."""
    entity, _ = told(supervised, begun(supervised), Heartbeat(), 0)
    entity, _ = told(supervised, entity, TaskFinished(), MINUTE)
    answer = elapsed(entity, 6 * MINUTE)
    assert isinstance(answer, EntityStep)
    record = answer.entity.record
    assert (record.state, record.abort_reason, record.reason) == (State.DEAD, None, "idle for 300000 ms")
    assert [each for each in answer.effects if isinstance(each, AbortSession)] == [AbortSession("A1", "")]


def test_a_request_to_recycle_an_idle_agent_may_have_a_reason() -> None:
    """Then that is the reason; the table of the document asks for no effect."""
    idle = Agent(state=State.IDLE, id="A1")
    step = supervised.step(idle, Recycled("no work is left"))
    assert isinstance(step, Step)
    assert step.record.reason == "no work is left"
    assert AbortSession("A1", "") in step.effects
    plain = machine.step(idle, Recycled("no work is left"))
    assert isinstance(plain, Step)
    assert plain.effects == ()


BAD: Final[dict[str, dict[str, Any]]] = {
    "spawn_timeout_ms must be at least 1, not 0": {"spawn_timeout_ms": 0},
    "extension_ms must be at least 1, not -5": {"extension_ms": -5},
    "silence_ms must be positive and grow": {"silence_ms": (0, 1, 2, 3)},
    "silence_ms must be positive and grow from": {"silence_ms": (1, 3, 2, 4)},
    "silence_ms must be positive and grow from step": {"silence_ms": (1, 1, 2, 4)},
    "longest_ms must be at least wall_clock_ms, 1800000, not 1000": {"longest_ms": 1_000},
}


@pytest.mark.parametrize(("said", "fields"), BAD.items())
def test_limits_that_could_never_work_are_refused(said: str, fields: dict[str, Any]) -> None:
    """The message names the field."""
    with pytest.raises(ValueError, match=said):
        Limits(**fields)


EVENTS: Final = [example for kind in supervised.events for example in kind.examples()]


@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 100_000)), max_size=60))
def test_whatever_happens_the_ladder_is_climbed_in_order_and_ends_are_explained(
    moves: list[tuple[Event, int]],
) -> None:
    """No step is skipped, none is taken twice without a heartbeat between, and invariants hold."""
    record, climbed = supervised.initial, 0
    for event, later_ms in moves:
        record = replace(record, at_ms=record.at_ms + later_ms)
        step = supervised.step(record, event)
        if isinstance(step, IllegalTransition):
            continue
        tiers = [effect.tier for effect in step.effects if isinstance(effect, EscalateSilence)]
        assert tiers == list(agent.LADDER[climbed : climbed + len(tiers)])
        climbed = step.record.escalated
        assert climbed in {0, record.escalated + len(tiers)}
        assert all(holds(step.record) for holds in supervised.invariants)
        record = step.record
