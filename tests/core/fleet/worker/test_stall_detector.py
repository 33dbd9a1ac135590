"""Whether a session moves: the ladder for whom there is no evidence, its properties, and the worker it belongs to."""

from itertools import product
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregate_hand import Hand
from declared import Mutants, instead, must_be_found, must_hold, rebuilt
from fleet_worker import (
    BRIEF,
    cooling,
    exit_with,
    interrupting,
    next_task,
    preparing,
    prompt_of,
    running,
    start,
    states,
)
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, stall_detector
from lifefold.core.fleet.worker.stall_detector import (
    Limits,
    SessionOver,
    SessionRuns,
    Silent,
    StallDetector,
    State,
    Stirred,
)
from lifefold.core.kernel import Event, IllegalTransition, Machine, Refusal, Row, Step, replace, row
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.policy.ends import TIMED_OUT, Diagnosis, Program, by_status
from lifefold.effects import Begin, CancelSession, End, InterruptSession, RunSession, WarnOfSilence, WatchOutput
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.explain.status import agent_status
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

NUDGED: Final = Limits(warn_ms=60_000, nudge_ms=90_000, end_ms=120_000)
PLAIN: Final = Limits(warn_ms=60_000, end_ms=120_000)
BOTH: Final = (NUDGED, PLAIN)


def watched(limits: Limits = NUDGED) -> Hand:
    """Return a worker whose session is watched."""
    of = Hand(
        "worker/ann",
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(name="ann"),
            "stall_detector": StallDetector(limits=limits),
        },
    )
    of.report("session", "PrepareWorktree", session.WorktreeReady())
    return start(next_task(of))


def silent(of: Hand, silent_s: int) -> Hand:
    """Let the watch say for how long nothing was seen."""
    return of.report("stall_detector", "WatchOutput", Silent(silent_s * 1_000))


def stirred(of: Hand) -> Hand:
    """Let the watch say that something was seen."""
    return of.report("stall_detector", "WatchOutput", Stirred())


LADDER: Final = {
    NUDGED: {
        (State.FRESH, 60): State.WARNED,
        (State.FRESH, 90): State.WARNED,
        (State.FRESH, 120): State.WARNED,
        (State.WARNED, 90): State.NUDGED,
        (State.WARNED, 120): State.NUDGED,
        (State.NUDGED, 120): State.STALLED,
        (State.ANSWERED, 60): State.STALLED,
        (State.ANSWERED, 90): State.STALLED,
        (State.ANSWERED, 120): State.STALLED,
    },
    PLAIN: {
        (State.FRESH, 60): State.WARNED,
        (State.FRESH, 90): State.WARNED,
        (State.FRESH, 120): State.WARNED,
        (State.WARNED, 120): State.STALLED,
    },
}
OTHERS: Final[dict[tuple[State, type[Event]], State]] = {
    (State.UNWATCHED, SessionRuns): State.FRESH,
    (State.STALLED, SessionRuns): State.FRESH,
    (State.WARNED, Stirred): State.FRESH,
    (State.NUDGED, Stirred): State.ANSWERED,
    (State.FRESH, SessionOver): State.UNWATCHED,
    (State.WARNED, SessionOver): State.UNWATCHED,
    (State.NUDGED, SessionOver): State.UNWATCHED,
    (State.ANSWERED, SessionOver): State.UNWATCHED,
}


def target(record: StallDetector, event: Any) -> State | None:
    """Return where an event leads; None if it is refused."""
    step = stall_detector.machine.step(record, event)
    return None if isinstance(step, IllegalTransition) else step.record.state


@pytest.mark.parametrize("limits", BOTH, ids=["with a nudge", "without"])
def test_a_step_is_taken_when_its_silence_is_reached_and_not_before(limits: Limits) -> None:
    """Every state with silences at, between and right before the steps; who is not watched is not silent, either."""
    states_of = [each for each in State if each not in stall_detector.AFTER_NUDGE or limits is NUDGED]
    for state, silent_ms in product(states_of, (29_999, 30_000, 59_999, 60_000, 89_999, 90_000, 119_999, 120_000)):
        reached = max((each for each in (60, 90, 120) if each * 1_000 <= silent_ms), default=0)
        due = LADDER[limits].get((state, reached))
        if (state, silent_ms) in {(State.ANSWERED, 30_000), (State.ANSWERED, 59_999)}:
            due = State.STALLED
        assert target(StallDetector(state, limits), Silent(silent_ms)) is due, (state, silent_ms)


def test_all_else_is_as_the_table_says() -> None:
    """Every pair of a state and an event that is no silence."""
    kinds: tuple[type[Event], ...] = (SessionRuns, SessionOver, Stirred)
    for state, kind in product(State, kinds):
        assert target(StallDetector(state, NUDGED), kind()) is OTHERS.get((state, kind)), (state, kind)


def test_an_answer_to_a_nudge_is_no_progress_and_moving_on_after_it_is() -> None:
    """The session is nudged no second time: it moves for as long as the nudge has its time, or is ended."""
    answered = StallDetector(State.ANSWERED, NUDGED)
    assert NUDGED.answer_ms == 30_000
    assert target(StallDetector(State.NUDGED, NUDGED), Stirred(1_000)) is State.ANSWERED
    assert [target(answered, Stirred(each)) for each in (0, 29_999, 30_000)] == [None, None, State.FRESH]
    assert [target(answered, Silent(each)) for each in (29_999, 30_000)] == [None, State.STALLED]


DUE: Final[list[tuple[State, int, int, Event | int]]] = [
    (State.FRESH, 0, 5_000, 60_000),
    (State.FRESH, 59_999, 59_999, 1),
    (State.FRESH, 60_000, 60_000, Silent(60_000)),
    (State.FRESH, 3_600_000, 1_000, 59_000),
    (State.FRESH, 3_600_000, 60_000, Silent(60_000)),
    (State.WARNED, 60_500, 500, 29_500),
    (State.WARNED, 90_000, 29_000, 1_000),
    (State.WARNED, 90_000, 30_000, Silent(90_000)),
    (State.WARNED, 500, 2_000, Stirred(1_500)),
    (State.NUDGED, 500, 2_000, Stirred(1_500)),
    (State.NUDGED, 95_000, 5_000, 25_000),
    (State.NUDGED, 120_000, 30_000, Silent(120_000)),
    (State.ANSWERED, 1_000, 1_000, 29_000),
    (State.ANSWERED, 500, 30_400, 29_500),
    (State.ANSWERED, 500, 30_500, Stirred(30_000)),
    (State.ANSWERED, 30_000, 30_500, Silent(30_000)),
    (State.ANSWERED, 60_000, 90_000, Stirred(30_000)),
]
"""A state, the silence and the time in that state, in milliseconds: what the watch says, or when it looks again."""


@pytest.mark.parametrize(("state", "silent_ms", "on_step_ms", "said"), DUE)
def test_a_watch_says_what_is_due_and_its_detector_accepts_it(
    state: State, silent_ms: int, on_step_ms: int, said: Event | int
) -> None:
    """What is due is never refused, and leads on; before that the watch knows when to look."""
    p = StallDetector(state, NUDGED)
    found = stall_detector.due(p, silent_ms, on_step_ms)
    assert found == said
    if not isinstance(found, int):
        assert stall_detector.after(p, found).state is target(p, found) is not None


def test_what_a_stall_detector_refuses_leaves_it_as_it_is() -> None:
    """The watch says it again at its next look."""
    assert stall_detector.after(StallDetector(State.UNWATCHED), Silent(60_000)) == StallDetector(State.UNWATCHED)


@pytest.mark.parametrize("steps", [(0, None, 5), (5, None, 5), (5, 5, 9), (5, 9, 9), (9, 5, 12)])
def test_silences_that_do_not_grow_are_refused(steps: tuple[int, int | None, int]) -> None:
    """A step comes after the one before it, or people would be told of nothing."""
    with pytest.raises(ValueError, match="positive and grow"):
        Limits(*steps)


@pytest.mark.parametrize("limits", [Limits(2, 3, 4), Limits(2, None, 4)], ids=["with a nudge", "without"])
def test_a_stall_detector_has_all_its_properties(limits: Limits) -> None:
    """In all its states."""
    must_hold(stall_detector.machine.starting(StallDetector(limits=limits), "stall_detector"))


def test_both_ladders_together_use_every_row() -> None:
    """No row is there for nothing."""
    missing = [
        set(must_hold(stall_detector.machine.starting(StallDetector(limits=each), "stall_detector")).missing)
        for each in BOTH
    ]
    assert missing[0] & missing[1] == set()


@given(st.lists(st.one_of(st.just(None), st.integers(0, 200)), max_size=30), st.sampled_from(BOTH))
def test_a_session_with_progress_is_never_ended_and_each_step_is_taken_once_in_a_silence(
    said: list[int | None], limits: Limits
) -> None:
    """Whatever is said in whatever order: None is a sign of progress, a number a silence in seconds."""
    record, taken = StallDetector(State.FRESH, limits), 0
    for each in said:
        step = stall_detector.machine.step(record, Stirred(30_000) if each is None else Silent(each * 1_000))
        if isinstance(step, IllegalTransition):
            continue
        answers = record.state is State.NUDGED and each is None
        least_ms = limits.answer_ms if record.state is State.ANSWERED else 0
        record, taken = step.record, taken if answers else 0 if each is None else taken + 1
        assert taken == record.steps_taken
        assert (record.state is State.ANSWERED) == answers
        if each is not None:
            assert each * 1_000 >= (least_ms or limits.steps_ms[taken - 1])
        assert len([e for e in step.effects if isinstance(e, WarnOfSilence)]) == (taken == 1)


def _small(machine: Machine[Any]) -> Machine[Any]:
    return machine.starting(StallDetector(limits=Limits(2, 3, 4)), "stall_detector")


def _patient(p: StallDetector, e: Silent) -> bool:
    """Take a step for any silence."""
    del p, e
    return True


def _unheard(p: StallDetector, _e: Silent) -> Step[StallDetector, Any]:
    """Take a step without a warning."""
    return Step(p)


def _never(p: StallDetector, e: Silent) -> bool:
    """Take no step for any silence."""
    del p, e
    return False


def _no_session(p: StallDetector, e: SessionRuns) -> bool:
    """Watch no session."""
    del p, e
    return False


def _without(event: type[Any], *sources: State) -> Machine[Any]:
    """Return the machine without what it does about an event in some states."""
    rows: list[Row[Any]] = []
    for each in stall_detector.machine.rows:
        left = (
            stall_detector.machine.sources(each) - set(sources)
            if each.event is event
            else stall_detector.machine.sources(each)
        )
        rows += [replace(each, sources=left)] if left else []
    return _small(rebuilt(stall_detector.machine, rows=rows))


def _with(new: Any, when: Any = None) -> Machine[Any]:
    return _small(instead(stall_detector.machine, new, when))


MUTANTS: Final[Mutants] = {
    "no session is warned of": (
        "Fresh exits on Silent",
        lambda: _with(row(State.FRESH, Silent, State.WARNED, stall_detector.warn, when=_never)),
    ),
    "no session is given up": (
        "given up at last",
        lambda: _with(
            row((State.WARNED, State.NUDGED), Silent, State.STALLED, when=_never), stall_detector.is_due_to_end
        ),
    ),
    "no nudged session is given up": ("given up at last", lambda: _without(Silent, State.NUDGED)),
    "an answer is taken for progress": (
        "an answer to a nudge is no progress",
        lambda: _small(
            stall_detector.machine.with_rows(row(State.NUDGED, Stirred, State.FRESH, when=stall_detector.has_moved_on))
        ),
    ),
    "a sign at once after an answer is taken for progress": (
        "an answer to a nudge is no progress",
        lambda: _with(row(State.ANSWERED, Stirred, State.FRESH), stall_detector.has_moved_on),
    ),
    "no answered session is given up": ("given up at last", lambda: _without(Silent, State.ANSWERED)),
    "a sign of progress is not heard": ("are accepted on every step", lambda: _without(Stirred, State.WARNED)),
    "a session that is over stays watched": ("are accepted on every step", lambda: _without(SessionOver, State.FRESH)),
    "after a stall no session is watched": (
        "are accepted on every step",
        lambda: _with(row(State.STALLED, SessionRuns, State.FRESH, when=_no_session)),
    ),
    "a step is taken before its silence": (
        "no step of the ladder is taken before its silence is long enough",
        lambda: _with(row(State.NUDGED, Silent, State.STALLED, when=_patient)),
    ),
    "a step is left out": (
        "each once in a silence",
        lambda: _small(
            stall_detector.machine.with_rows(row(State.FRESH, Silent, State.STALLED, when=stall_detector.is_due_to_end))
        ),
    ),
    "the nudge is left out": (
        "is nudged before it is given up",
        lambda: _small(
            stall_detector.machine.with_rows(
                row(State.WARNED, Silent, State.STALLED, when=stall_detector.is_due_to_end)
            )
        ),
    ),
    "the operator is not warned": (
        "each step requests its effect",
        lambda: _with(row(State.FRESH, Silent, State.WARNED, _unheard, when=stall_detector.is_due_to_warn)),
    ),
    "a session with progress stays on the ladder": (
        "lead to the foot of the ladder",
        lambda: _with(row(State.WARNED, Stirred, State.NUDGED)),
    ),
    "a nudged session is nudged again and again": (
        "a silence climbs one step",
        lambda: _with(row(State.NUDGED, Silent, State.NUDGED, stall_detector.nudge, when=stall_detector.is_due_to_end)),
    ),
    "there is no watch": ("WatchOutput runs in", lambda: _small(rebuilt(stall_detector.machine, during={}))),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_in_the_ladder_breaks_a_property(name: str) -> None:
    """A row that is lost, or is another one, is found."""
    must_be_found(MUTANTS[name])


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["keep_watch", "give_up"])
def test_a_rule_that_is_lost_breaks_a_property(name: str) -> None:
    """A running session is watched, and a stalled one ends."""
    report = check(without(name), opening=named("fleet-stalling").opening, bounds=Bounds(states=2_000, compared=0))
    assert "a session is watched exactly while it runs" in str([each.name for each in report.broken()])


# The worker


def test_a_session_is_watched_from_its_start_to_its_end() -> None:
    """Not before it runs, and not when it has ended."""
    of = watched()
    (begun,) = [e for e in of.effects(Begin) if isinstance(e, Begin) and isinstance(e.activity, WatchOutput)]
    assert begun.activity == WatchOutput((60_000, 90_000, 120_000))
    assert of.state("stall_detector") == "Fresh"
    exit_with(of, session.Success())
    assert of.state("stall_detector") == "Unwatched"
    assert [e.slot for e in of.effects(End) if isinstance(e, End)] == ["WatchOutput"]


def test_a_worker_that_is_not_to_be_watched_has_no_stall_detector() -> None:
    """A fleet that does not ask for it is as it was."""
    plan = Plan("f", (AgentPlan("ann"), AgentPlan("ben", stall=PLAIN)), (TaskPlan("T1", "do it"),))
    records = {name: set(envelope.event.records) for name, envelope in opening(plan, 0)}  # type: ignore[attr-defined]
    assert "stall_detector" not in records["worker/ann"]
    assert "stall_detector" in records["worker/ben"]
    assert running().entity("session").state is session.State.RUNNING


def test_a_silent_session_is_warned_of_nudged_and_ended_which_is_an_error() -> None:
    """The session is ended as one that is stopped, and the board hears why its work has failed."""
    of = silent(watched(), 61)
    assert of.effects(WarnOfSilence) == [WarnOfSilence(61_000, 120_000)]
    silent(of, 90)
    assert of.effects(InterruptSession) == [InterruptSession(90_000)]
    silent(of, 121)
    assert (states(of), of.state("stall_detector")) == (("CoolingDown", "Idle"), "Stalled")
    assert {e.slot for e in of.effects(End) if isinstance(e, End)} == {"RunSession", "WatchOutput"}
    assert of.effects(CancelSession) == []
    said = "silent for 121 s (interrupted after 90 s of silence)"
    assert of.told() == [("board", "task:T1", task.Failed(BRIEF.epoch, said, TIMED_OUT))]
    assert (of.record("session").consecutive_errors, of.record("session").total_errors) == (1, 1)


def test_a_session_that_has_answered_its_nudge_is_said_to_have_been_interrupted_before() -> None:
    """Its last silence alone is shorter than what a session may be silent for."""
    of = silent(stirred(silent(silent(watched(), 61), 90)), 31)
    said = "silent for 31 s (interrupted after 90 s of silence)"
    assert of.told() == [("board", "task:T1", task.Failed(BRIEF.epoch, said, TIMED_OUT))]


def test_a_failure_after_a_silence_is_not_said_to_come_of_it() -> None:
    """The next session of the agent has not even begun."""
    of = silent(silent(silent(watched(), 61), 90), 121)
    of.confirm("session", "RunSession").confirm("stall_detector", "WatchOutput").elapse("session", "BackoffElapsed")
    assert (
        stall_detector.nudged_reason(of.aggregate, session_profiles.PromptFailed("no place"), "no place") == "no place"
    )


def test_the_last_error_that_an_agent_may_have_may_be_a_silence() -> None:
    """Then it stops, and says why."""
    of = watched(PLAIN)
    of.aggregate = replace(
        of.aggregate,
        entities=of.aggregate.entities.set(
            "session",
            replace(of.entity("session"), record=replace(of.record("session"), consecutive_errors=4)),
        ),
    )
    silent(silent(of, 60), 120)
    assert states(of) == ("Stopped", "Idle")
    assert "silent for 120 s" in str(of.effects())


def test_a_session_that_moves_again_begins_at_the_foot_of_the_ladder() -> None:
    """Each step can be taken again in the next silence, and none is by what was before."""
    of = stirred(silent(silent(watched(), 60), 90))
    assert of.state("stall_detector") == "Answered"
    of.report("stall_detector", "WatchOutput", Stirred(30_000))
    assert of.state("stall_detector") == "Fresh"
    assert isinstance(of.offer(replace(_said(of, Silent(59_000)))), Refusal)
    silent(of, 60)
    assert of.effects(WarnOfSilence) == [WarnOfSilence(60_000, 120_000)]


def _said(of: Hand, event: Any) -> Any:
    """Return what the watch would say."""
    part = of.part("stall_detector", "WatchOutput")
    envelope = of.message("another", "stall_detector", event)
    return replace(envelope, slot="WatchOutput", generation=part.generation, sender="", ordinal=0)


def test_a_word_of_the_watch_of_a_session_that_has_ended_is_stale() -> None:
    """Nothing is signalled after the end, by no word however late, and the next session is not hurt by it."""
    of = silent(watched(), 60)
    late = _said(of, Silent(500_000))
    exit_with(of, session.Error("exit status 1"))
    answer = of.offer(late)
    assert isinstance(answer, Refusal)
    assert answer.kind == "stale"
    of.confirm("stall_detector", "WatchOutput")
    of.elapse("session", "BackoffElapsed")
    start(next_task(of))
    answer = of.offer(late)
    assert isinstance(answer, Refusal)
    assert (answer.kind, of.state("stall_detector")) == ("stale", "Fresh")


def test_an_interrupted_session_is_not_watched() -> None:
    """It has its grace, and what comes of it is no error; a session that is interrupted at its start never is."""
    of = silent(watched(), 60)
    of.give("mailbox", mailbox.OperatorMessageArrived("look"))
    assert (states(of)[0], of.state("stall_detector")) == ("Interrupting", "Unwatched")
    assert states(interrupting())[0] == "Interrupting"
    of = watched()
    exit_with(of, session.Success())
    of.report("assignment", "VerifyWork", assignment.Verified())
    of.report("assignment", "MergeWork", assignment.Merged("abc"))
    of.confirm("stall_detector", "WatchOutput")
    next_task(of)
    of.give("mailbox", mailbox.OperatorMessageArrived("wait"))
    start(of)
    assert (states(of)[0], of.state("stall_detector")) == ("Interrupting", "Unwatched")


def test_no_other_work_is_asked_for_before_the_watch_and_the_session_are_gone() -> None:
    """Of what has stalled nothing is left when the next one begins, and then it does (D13)."""
    of = silent(silent(watched(PLAIN), 60), 120)
    of.elapse("session", "BackoffElapsed")
    assert states(of) == ("BuildingPrompt", "Idle")
    of.confirm("session", "RunSession")
    assert states(of) == ("BuildingPrompt", "Idle")
    of.confirm("stall_detector", "WatchOutput")
    assert states(of) == ("BuildingPrompt", "Wanting")
    next_task(of)
    assert [e.activity.prompt for e in of.effects(Begin) if isinstance(e, Begin) and isinstance(e.activity, RunSession)]
    assert prompt_of(of).startswith("do it")
    assert preparing().state("assignment") == "Preparing"


def test_a_session_ended_by_its_nudge_has_failed_because_of_its_silence() -> None:
    """The next one hears of both: how it ended, and what it hung in for how long."""
    of = exit_with(silent(silent(watched(), 60), 90), session.Error("Interrupt (signal 2)"))
    said = "Error(Interrupt (signal 2)) (interrupted after 90 s of silence)"
    assert of.told() == [("board", "task:T1", task.Failed(BRIEF.epoch, said, Diagnosis()))]
    assert cooling().told() == [("board", "task:T1", task.Failed(BRIEF.epoch, "Error(exit status 1)", Diagnosis()))]


@pytest.mark.parametrize("silences", [(), (60,), (60, 90), (60, 90, 0)], ids=["fresh", "warned", "nudged", "answered"])
def test_a_crash_of_the_runner_neither_loses_nor_repeats_a_step(silences: tuple[int, ...]) -> None:
    """The watch goes on where it was, as the same one, and there is no second warning or signal."""
    of = watched()
    for each in silences:
        silent(of, each) if each else stirred(of)
    before, generation = of.state("stall_detector"), of.part("stall_detector", "WatchOutput").generation
    of.crash()
    assert of.effects(WarnOfSilence) == of.effects(InterruptSession) == []
    assert (of.state("stall_detector"), of.part("stall_detector", "WatchOutput").generation) == (before, generation)
    resumed = [e for e in of.effects(Begin) if isinstance(e, Begin) and e.slot == "WatchOutput"]
    assert [each.resumed for each in resumed] == [True]


def test_the_status_says_since_when_a_session_on_the_ladder_is_silent() -> None:
    """As far as the log knows; of one that moves, or is not watched, it says that."""
    of = watched()
    of.now_ms = 1_000_000
    assert (agent_status(of.aggregate).stall_detector, agent_status(of.aggregate).silent_since_ms) == ("Fresh", 0)
    silent(of, 60)
    assert (agent_status(of.aggregate).stall_detector, agent_status(of.aggregate).silent_since_ms) == (
        "Warned",
        940_000,
    )
    of.now_ms += 30_000
    silent(of, 90)
    assert (agent_status(of.aggregate).stall_detector, agent_status(of.aggregate).silent_since_ms) == (
        "Nudged",
        940_000,
    )
    of.now_ms += 5_000
    stirred(of)
    assert (agent_status(of.aggregate).stall_detector, agent_status(of.aggregate).silent_since_ms) == (
        "Answered",
        of.now_ms,
    )
    assert (agent_status(running().aggregate).stall_detector, agent_status(running().aggregate).silent_since_ms) == (
        "",
        0,
    )


def test_a_reason_is_said_only_of_what_makes_a_session_fail() -> None:
    """Anything else says none."""
    assert session_profiles.failure_reason(session.OperatorStop()) == ""
    assert stall_detector.nudged_reason(watched().aggregate, session.OperatorStop(), "") == ""
    assert (
        worker.agent.step(session_profiles.SupervisedSession(state=session.State.SPAWNING), session_profiles.Stalled())
        is not None
    )


@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("by", [by_status(-2), by_status(130), by_status(130, Program.CLAUDE)])
def test_a_session_that_ends_by_its_nudge_has_timed_out_and_may_be_tried_again(by: Diagnosis, *, answers: bool) -> None:
    """The fleet has sent the SIGINT, so its own cause wins over the status (E39)."""
    of = silent(silent(watched(), 61), 90)
    if answers:
        of.report("stall_detector", "WatchOutput", Stirred())
    exit_with(of, session.Error("exit status 130", by))
    ((_, _, failed),) = of.told()
    assert isinstance(failed, task.Failed)
    assert failed.diagnosis == TIMED_OUT


def test_an_end_of_another_cause_is_judged_by_that_also_after_a_nudge() -> None:
    """A login failure does not pass; and who was not nudged has not ended by a nudge."""
    denied = by_status(126)
    of = silent(silent(watched(), 61), 90)
    exit_with(of, session.Error("exit status 126", denied))
    assert [message.diagnosis for _, _, message in of.told() if isinstance(message, task.Failed)] == [denied]
    assert stall_detector.nudged_diagnosis(silent(watched(), 61).aggregate, by_status(-2)) == by_status(-2)
    assert stall_detector.nudged_diagnosis(running().aggregate, by_status(-2)) == by_status(-2)
