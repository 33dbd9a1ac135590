"""Why a task is where it is: a sentence for every situation, the causes down to their roots, the story, the ways on."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from lifefold.core.fleet.board import budget, fleet_task, worker_slot
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.dispatch.task_index import TaskIndex, fold
from lifefold.core.fleet.worker import assignment, conversation, desired_state
from lifefold.core.fleet.worker.conversation_model import Conversation
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Entity,
    Envelope,
    Opened,
    PersistentMap,
    Reaction,
    Record,
    View,
    react,
)
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.amounts import Resource
from lifefold.core.lifecycles.session import Limits, Session
from lifefold.core.lifecycles.session import State as Agent
from lifefold.core.lifecycles.task import Stage, State
from lifefold.core.policy.reasons import AbortReason
from lifefold.core.policy.retry import RetryPolicy
from lifefold.interpreters.explain import why
from lifefold.interpreters.explain.why import phrases
from lifefold.interpreters.explain.why.now import SENTENCES
from lifefold.interpreters.explain.why.options import UNMET

NOW_MS = 200_000

ANN_IS_AT_T0 = worker_slot.WorkerSlot(worker_slot.State.WORKING, "T0")
BOB_IS_GONE = worker_slot.WorkerSlot(worker_slot.State.GONE, reason="no disk")


MACHINES = (fleet_task.machine, worker_slot.machine, budget.machine)
BOARD = AggregateType("board", machines=MACHINES, views={"work": View(TaskIndex(), fold)})
"""A board without rules: every task stays where it is put."""


def make(state: State = State.OPEN, name: str = "T1", *needs: str, **fields: Any) -> fleet_task.FleetTask:
    """Return a task."""
    return fleet_task.FleetTask(state=state, id=name, depends_on=needs, **fields)


PART_1, PART_2 = make(parts=2).parts_of_it()


def worker(name: str, **records: Record) -> Aggregate:
    """Return a worker with these records."""
    standard: dict[str, Record] = {
        "session": Session(Agent.RUNNING),
        "desired_state": desired_state.DesiredState(),
        "assignment": assignment.Assignment(assignment.State.WORKING),
    }
    entities = {ref: Entity(ref, record) for ref, record in (standard | records).items()}
    return Aggregate(f"worker/{name}", entities=PersistentMap(entities))


def scene(
    *tasks: fleet_task.FleetTask,
    worker_slots: Mapping[str, worker_slot.WorkerSlot] | None = None,
    workers: tuple[Aggregate, ...] = (),
    all_budgets: Mapping[str, budget.Budget] | None = None,
) -> why.FleetView:
    """Return the first of these tasks, looked at after a while; ann is at another one."""
    sat = {
        f"worker_slot:{name}": each
        for name, each in (worker_slots if worker_slots is not None else {"ann": ANN_IS_AT_T0}).items()
    }
    opened = Opened({f"task:{each.id}": each for each in tasks} | sat | dict(all_budgets or {}))
    answer = react(BOARD, BOARD.start("board"), Envelope("", opened, 0, "plan"))
    assert isinstance(answer, Reaction)
    return why.look({each.name: each for each in (answer.aggregate, *workers)}, tasks[0].id, NOW_MS)


def said(of: why.FleetView, told: why.Story | None = None) -> str:
    """Return the first sentence."""
    return why.explain(of, told or why.Story(of.name)).sentence


# The present state


OWNED: Final[dict[str, Any]] = {"owner": "ann", "epoch": 2}
ACCEPTED = "and that change is accepted: `lifefold plan FLEET.toml`."
SHORT = (budget.Line(Resource.MONEY, 10, Account(cap=5)), budget.Line(Resource.SESSIONS, 1, Account(cap=2)))
PAUSED = desired_state.DesiredState(desired_state.State.PAUSE, "lunch")
RESUMED = Conversation(conversation.State.BEGUN, task="T1", named="C1")
CHOSEN = Conversation(conversation.State.CHOSEN, task="T1", chosen="U1")
OF_ANOTHER = Conversation(conversation.State.BEGUN, task="T2", named="C1")


def _orphan(doing: assignment.State) -> why.FleetView:
    """Return a task whose session has died, and what is being done about it."""
    orphan = make(State.ORPHANED, **OWNED, reason="silent for 60 s", verify=(("make", "check"),))
    return scene(orphan, workers=(worker("ann", assignment=assignment.Assignment(doing)),))


SITUATIONS: dict[str, tuple[why.FleetView, str]] = {
    "planned": (scene(make(State.PLANNED)), "T1 is planned: it waits for an operator to approve the plan."),
    "waiting for others": (
        scene(
            make(State.OPEN, "T1", "T2", "T4", "T5"),
            make(State.CLOSED, "T2"),
            make(State.OPEN, "T4"),
            make(State.IN_PROGRESS, "T5", owner="ann", epoch=1),
        ),
        "T1 is not begun: it waits for T4 (not begun) and T5 (running).",
    ),
    "waiting for one that waits": (
        scene(make(State.OPEN, "T1", "T2"), make(State.OPEN, "T2", "T3"), make(State.PENDING_APPROVAL, "T3")),
        "T1 is not begun: it waits for T2 (not begun), in the end for T3 (waiting for approval).",
    ),
    "waiting in a circle": (
        scene(make(State.OPEN, "T1", "T2"), make(State.OPEN, "T2", "T1")),
        "T1 is not begun: it waits for T2 (not begun), in a circle: T1 and T2.",
    ),
    "waiting for what there is not": (
        scene(make(State.OPEN, "T1", "T9")),
        "T1 is not begun: it waits for T9 (unknown).",
    ),
    "waiting for a rival": (
        scene(
            make(files=("a.py",)),
            make(State.CLAIMED, "T2", files=("a.py",), owner="ann", epoch=1),
            worker_slots={"ann": worker_slot.WorkerSlot(worker_slot.State.WORKING, "T2")},
        ),
        "T1 is not begun: it waits for T2 (running), which changes the same files.",
    ),
    "waiting for rivals": (
        scene(
            make(files=("src",)),
            make(State.CLAIMED, "T2", files=("src/a",), owner="ann", epoch=1),
            make(State.DONE, "T3", files=("src/b",), owner="bob", epoch=1),
            worker_slots={},
        ),
        "T1 is not begun: it waits for T2 (running) and T3 (done, not merged), which change the same files.",
    ),
    "ready, no agent free": (
        scene(make(), worker_slots={"ann": ANN_IS_AT_T0, "bob": BOB_IS_GONE}),
        "T1 is not begun, and ready: no agent is free: ann is at T0 and bob has stopped (no disk).",
    ),
    "ready, and not the first": (
        scene(make(), make(State.OPEN, "T2", priority=1), make(State.OPEN, "T3", "T1")),
        "T1 is not begun, and ready, the 2nd of 2 ready tasks: no agent is free: ann is at T0.",
    ),
    "ready again": (
        scene(make(reason="no place:\nno disk.")),
        "T1 is not begun, and ready: no agent is free: ann is at T0. Its last attempt: no place: no disk.",
    ),
    "ready, no agent left": (
        scene(
            make(), worker_slots={"bob": BOB_IS_GONE}, workers=(worker("bob", session=Session(consecutive_errors=5)),)
        ),
        "T1 is not begun, and ready: no agent is left to take it: bob has stopped (5 errors in a row).",
    ),
    "ready, all agents stopped": (
        scene(
            make(),
            worker_slots={"bob": worker_slot.WorkerSlot(worker_slot.State.GONE, reason="no work is left")},
            workers=(worker("bob", desired_state=desired_state.DesiredState(desired_state.State.STOP)),),
        ),
        "T1 is not begun, and ready: no agent is left to take it: bob has stopped (no work is left).",
    ),
    "ready, without agents": (scene(make(), worker_slots={}), "T1 is not begun, and ready: there are no agents."),
    "ready, no money free": (
        scene(make(), all_budgets={budgets.FLEET: budget.Budget(budget.State.HELD)}),
        "T1 is not begun, and ready: all that is left of the fleet's budget is reserved for tasks in progress.",
    ),
    "ready, no money left": (
        scene(
            make(), all_budgets={budgets.of_task("T1"): budget.Budget(budget.State.SPENT, period_ms=NOW_MS + 7_200_000)}
        ),
        "T1 is not begun, and ready: its budget is spent, and is refilled in 2 h.",
    ),
    "ready, no agent able": (
        scene(make(role="writer")),
        "T1 is not begun, and ready: it needs an agent with the role writer, and there is none.",
    ),
    "ready, the able one busy": (
        scene(
            make(role="writer"),
            worker_slots={
                "ann": ANN_IS_AT_T0,
                "cid": worker_slot.WorkerSlot(worker_slot.State.WORKING, "T7", "", ("writer",)),
            },
        ),
        "T1 is not begun, and ready: no agent with the role writer is free: cid is at T7.",
    ),
    "ready, all rest": (
        scene(
            make(),
            worker_slots={name: worker_slot.WorkerSlot() for name in ("ann", "bob", "cid", "dan")},
            workers=(
                worker("ann", desired_state=PAUSED),
                worker("bob", desired_state=desired_state.DesiredState(desired_state.State.HOLD)),
                worker("cid", session=Session(Agent.COOLING_DOWN)),
                worker("dan"),
            ),
        ),
        (
            "T1 is not begun, and ready: no agent is free: ann is paused (lunch), bob is held until a runner is at "
            "work, cid pauses before its next session and dan waits for work."
        ),
    ),
    "claimed": (
        scene(make(State.CLAIMED, **OWNED), workers=(worker("ann"),)),
        "T1 is running: ann has had it for 3 min.",
    ),
    "claimed, not begun": (
        scene(
            make(State.CLAIMED, **OWNED),
            workers=(worker("ann", assignment=assignment.Assignment(assignment.State.PREPARING)),),
        ),
        "T1 is running: ann has had it for 3 min; its worktree is being prepared.",
    ),
    "worked at": (
        scene(make(State.IN_PROGRESS, **OWNED), workers=(worker("ann"),)),
        "T1 is running: ann began with it 3 min ago.",
    ),
    "worked at by one that rests": (
        scene(make(State.IN_PROGRESS, **OWNED), workers=(worker("ann", desired_state=PAUSED),)),
        "T1 is running: ann began with it 3 min ago; ann is paused (lunch).",
    ),
    "worked at by one that pauses": (
        scene(make(State.IN_PROGRESS, **OWNED), workers=(worker("ann", session=Session(Agent.COOLING_DOWN)),)),
        "T1 is running: ann began with it 3 min ago; ann pauses before its next session.",
    ),
    "worked at in a conversation": (
        scene(make(State.IN_PROGRESS, **OWNED), workers=(worker("ann", conversation=RESUMED),)),
        "T1 is running: ann began with it 3 min ago; ann resumes conversation C1.",
    ),
    "claimed by one that pauses before a new conversation": (
        scene(
            make(State.CLAIMED, **OWNED),
            workers=(worker("ann", session=Session(Agent.COOLING_DOWN), conversation=CHOSEN),),
        ),
        ("T1 is running: ann has had it for 3 min; ann pauses before its next session and begins conversation U1."),
    ),
    "worked at in a conversation of another task": (
        scene(make(State.IN_PROGRESS, **OWNED), workers=(worker("ann", conversation=OF_ANOTHER),)),
        "T1 is running: ann began with it 3 min ago.",
    ),
    "verified": (
        scene(
            make(State.DONE, verify=(("test", "-f", "x"), ("make",)), **OWNED),
            workers=(worker("ann", assignment=assignment.Assignment(assignment.State.VERIFYING)),),
        ),
        "T1 is done, not merged: it is being verified (`test -f x` and `make`) by ann, for 3 min.",
    ),
    "verified by nothing": (
        scene(
            make(State.DONE, **OWNED),
            workers=(worker("ann", assignment=assignment.Assignment(assignment.State.VERIFYING)),),
        ),
        "T1 is done, not merged: it is being verified by ann, for 3 min.",
    ),
    "merged": (
        scene(
            make(State.DONE, **OWNED),
            workers=(worker("ann", assignment=assignment.Assignment(assignment.State.MERGING)),),
        ),
        "T1 is done, not merged: it is being merged by ann, for 3 min.",
    ),
    "disputed": (
        scene(
            make(State.DONE, **OWNED),
            workers=(worker("ann", assignment=assignment.Assignment(assignment.State.DISPUTED)),),
        ),
        "T1 is done, not merged: an agent has moved the target branch, and the merge is held by ann, for 3 min.",
    ),
    "parked": (
        scene(
            make(State.DONE, **OWNED),
            workers=(worker("ann", assignment=assignment.Assignment(assignment.State.PARKING)),),
        ),
        "T1 is done, not merged: it is being parked by ann, for 3 min.",
    ),
    "done, between two steps": (
        scene(make(State.DONE, **OWNED)),
        "T1 is done, not merged: it is being finished by ann, for 3 min.",
    ),
    "agreed to": (
        scene(make(State.DONE, stage=Stage.MERGE)),
        "T1 is done, not merged: it is approved, and it waits for an agent to merge it.",
    ),
    "gathered": (
        scene(make(State.DONE, stage=Stage.VERIFY, reason="ann is gone")),
        "T1 is done, not merged: its parts are closed, and it waits for an agent to verify it: ann is gone.",
    ),
    "verified by other commands": (
        scene(make(State.DONE, stage=Stage.REVERIFY)),
        "T1 is done, not merged: its verification has changed, and it waits for an agent to verify it.",
    ),
    "closed": (scene(make(State.CLOSED, commit="c0ffee0123456789")), "T1 is closed: merged as c0ffee0123."),
    "closed without a commit": (scene(make(State.CLOSED)), "T1 is closed: it is done, and there was nothing to merge."),
    "failed for good": (
        scene(
            make(State.FAILED, retries=3, reason="The command `test -f x` exited with status 1. It printed nothing.")
        ),
        (
            "T1 has failed (The command `test -f x` exited with status 1. It printed nothing) "
            "and has no retries left (3 of 3 used)."
        ),
    ),
    "failed, never retried": (scene(make(State.FAILED, max_retries=0)), "T1 has failed and has no retries left."),
    "failed hopelessly": (
        scene(make(State.FAILED, limit=0, reason="permission denied")),
        "T1 has failed (permission denied) and is not tried again by itself: such a failure is permanent.",
    ),
    "failed, rests": (
        scene(make(State.FAILED, retries=2, reason="no")),
        "T1 has failed (no) and is tried again (retry 3 of 3).",
    ),
    "failed, rests longer": (
        scene(make(State.FAILED, retries=3, max_retries=9, limit=9)),
        "T1 has failed and is tried again in 40 s (retry 4 of 9).",
    ),
    "failed with a retry left, and no agent is": (
        scene(make(State.FAILED, retries=2, reason="no"), worker_slots={"bob": BOB_IS_GONE}),
        "T1 has failed (no), and no agent is left to try it again (2 of 3 retries used).",
    ),
    "blocked by an operator": (scene(make(State.BLOCKED, reason="no key")), "T1 is blocked: no key."),
    "blocked for want of a role": (
        scene(make(State.BLOCKED, blocked_by="role:reviewer", reason="needs the role reviewer, and no agent has it")),
        "T1 is blocked: needs the role reviewer, and no agent has it.",
    ),
    "blocked without a word": (scene(make(State.BLOCKED)), "T1 is blocked: no reason is recorded."),
    "blocked by a failure": (
        scene(make(State.BLOCKED, "T7", "T3", blocked_by="T3"), make(State.FAILED, "T3", reason="no", max_retries=0)),
        "T7 is blocked: it depends on T3, which has failed (no) and has no retries left.",
    ),
    "blocked by two": (
        scene(
            make(State.BLOCKED, "T7", "T3", "T4", blocked_by="T4"),
            make(State.FAILED, "T3", max_retries=0),
            make(State.CANCELLED, "T4", reason="not needed"),
        ),
        (
            "T7 is blocked: it depends on T4, which is cancelled (not needed); "
            "and T3, which has failed and has no retries left."
        ),
    ),
    "blocked by a chain": (
        scene(
            make(State.BLOCKED, "T9", "T7", blocked_by="T7"),
            make(State.BLOCKED, "T7", "T3", blocked_by="T3"),
            make(State.FAILED, "T3", reason="no", max_retries=0),
        ),
        (
            "T9 is blocked: it depends on T7, which is blocked, in the end because of T3, "
            "which has failed (no) and has no retries left."
        ),
    ),
    "blocked by what there is not": (
        scene(make(State.BLOCKED, "T7", "T3", blocked_by="T3")),
        "T7 is blocked: it depends on T3, which is unknown to the board.",
    ),
    "blocked by a part": (
        scene(
            make(State.BLOCKED, blocked_by=PART_1, parts=1, waits_for_parts=True),
            make(State.BLOCKED, PART_1, reason="no key"),
        ),
        "T1 is blocked: it needs its part T1+1, which is blocked (no key).",
    ),
    "waiting for parts": (
        scene(
            make(State.WAITING_FOR_SUBTASKS, parts=2, waits_for_parts=True),
            make(State.CLOSED, PART_1),
            make(State.PLANNED, PART_2),
        ),
        (
            "T1 is waiting for its parts: 1 of 2 closed, it waits for T1+2 (planned); "
            "it is blocked in 26 min if they are not."
        ),
    ),
    "waiting for no part": (
        scene(make(State.WAITING_FOR_SUBTASKS, subtasks_ms=NOW_MS)),
        "T1 is waiting for its parts: 0 of 0 closed.",
    ),
    "cancelled": (scene(make(State.CANCELLED, reason="not needed")), "T1 is cancelled: not needed."),
    "cancelled without a word": (scene(make(State.CANCELLED)), "T1 is cancelled: it is no longer wanted."),
    "orphaned": (
        scene(make(State.ORPHANED, **OWNED)),
        "T1 has lost its session: ann has died, and its worktree is not inspected yet.",
    ),
    "orphaned, and its session is being ended": (
        _orphan(assignment.State.ORPHANED),
        (
            "T1 has lost its session: that of ann has died (silent for 60 s), and is being ended; "
            "its worktree is inspected then."
        ),
    ),
    "orphaned, and inspected": (
        _orphan(assignment.State.INSPECTING),
        "T1 has lost its session: that of ann has died (silent for 60 s); its worktree is being inspected.",
    ),
    "orphaned, and verified": (
        _orphan(assignment.State.VERIFYING),
        ("T1 has lost its session: that of ann has died (silent for 60 s); its work is being verified (`make check`)."),
    ),
    "waiting for a person": (
        scene(make(State.PENDING_APPROVAL, approval_ms=NOW_MS + 3_600_000, verify=(("true",),))),
        (
            "T1 is waiting for approval: it is done and verified, and is merged after that; "
            "silence is a refusal, in 1 h."
        ),
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_situation_has_its_sentence(name: str) -> None:
    """What a person reads first: the state as the documents spell it, and why."""
    of, expected = SITUATIONS[name]
    assert said(of) == expected


def test_of_a_task_that_was_aborted_it_is_said_what_becomes_of_it() -> None:
    """If it is not over: it is cancelled when it is opened again."""
    doomed = fleet_task.Fate(aborted=AbortReason.SIBLING_ABORTED, why="T1+2 was aborted")
    assert said(scene(make(State.DONE, fate=doomed, **OWNED))).endswith(
        "If it is not done now, it is cancelled: it was aborted: T1+2 was aborted."
    )
    assert "cancelled" not in said(scene(make(State.CLOSED, fate=doomed)))


def test_every_state_of_a_task_has_a_sentence() -> None:
    """Those that few fleets come to, too."""
    assert set(SENTENCES) == set(State)
    assert {of.task.state for of, _ in SITUATIONS.values()} == set(State)


def test_a_reason_is_shortened_in_the_sentence_and_whole_beside_it() -> None:
    """A verification's output may be long."""
    reason = "it was so: " + "x" * 500
    told = why.explain(scene(make(State.FAILED, max_retries=0, reason=reason)), why.Story("T1"))
    assert len(told.sentence) < 300
    assert "…)" in told.sentence
    assert told.reason == reason


def test_of_many_things_some_are_named() -> None:
    """The others are counted."""
    needs = tuple(f"T{n}" for n in range(2, 12))
    waits = said(scene(make(State.OPEN, "T1", *needs), *(make(State.PLANNED, each) for each in needs)))
    assert waits.endswith("T6 (planned) and 5 more.")


@pytest.mark.parametrize(
    ("duration_ms", "words"),
    [(-5, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (3_600_000, "1 h"), (7_860_000, "2 h 11 min"),
     (172_800_000, "2 days")],
)  # fmt: skip
def test_durations_are_shown_in_words(duration_ms: int, words: str) -> None:
    """As coarse as they are long."""
    assert phrases.duration(duration_ms) == words


def test_work_without_a_verification_is_not_said_to_be_verified() -> None:
    """It waits for its approval all the same, and nothing has looked at it."""
    told = said(scene(make(State.PENDING_APPROVAL)))
    assert told == (
        "T1 is waiting for approval: it is done, not verified because it has no verify, and is merged after that."
    )


@pytest.mark.parametrize("late_ms", [0, 60_000])
def test_an_overdue_event_waits_for_a_runner(late_ms: int) -> None:
    """A runner that is at work lets nothing wait, so what is overdue waits for one."""
    rested = scene(make(State.FAILED, retry=RetryPolicy(backoff_base_ms=NOW_MS - late_ms)))
    assert why.explain(rested, why.Story("T1")).onward == (
        "T1 is tried again by itself, as soon as a runner is at work."
    )
    silent = scene(make(State.PENDING_APPROVAL, approval_ms=NOW_MS - late_ms))
    assert said(silent).endswith("; silence is a refusal, as soon as a runner is at work.")


def test_numbers_have_their_endings() -> None:
    """Also those that are exceptions."""
    assert [phrases.ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 111)] == (
        "1st 2nd 3rd 4th 11th 12th 13th 21st 111th".split()
    )
    assert (phrases.count(1, "retry"), phrases.count(2, "retry"), phrases.count(0, "part")) == (
        "1 retry", "2 retries", "0 parts",
    )  # fmt: skip


# The causes


def test_causes_are_followed_to_their_roots_each_once_nearest_first() -> None:
    """T9 is blocked by T7, T7 by T3, which has failed."""
    of = scene(
        make(State.BLOCKED, "T9", "T7", "T3", blocked_by="T7"),
        make(State.BLOCKED, "T7", "T3", blocked_by="T3"),
        make(State.FAILED, "T3", reason="no", max_retries=0),
    )
    causes = why.explain(of, why.Story("T9")).causes
    assert [(each.task, each.state, each.because_of) for each in causes] == [
        ("T9", "BLOCKED", ("T7", "T3")), ("T7", "BLOCKED", ("T3",)), ("T3", "FAILED", ()),
    ]  # fmt: skip
    assert causes[-1].said == "T3 has failed (no) and has no retries left"
    assert why.roots(why.chain(of)) == ("T3",)


def test_a_circle_of_causes_ends() -> None:
    """A plan with one is refused, but a log is taken as it is."""
    of = scene(make(State.OPEN, "T1", "T2"), make(State.OPEN, "T2", "T3"), make(State.OPEN, "T3", "T1"))
    told = why.explain(of, why.Story("T1"))
    assert [each.task for each in told.causes] == ["T1", "T2", "T3"]
    assert told.onward == "Nothing: the tasks wait for each other in a circle."


# What moves it on

ONWARD: dict[str, tuple[why.FleetView, str, list[tuple[str, str]]]] = {
    "planned": (
        scene(make(State.PLANNED)),
        "T1 goes on when an operator approves it.",
        [("approve", "T1"), ("reject", "T1")],
    ),
    "open": (
        scene(
            make(),
            worker_slots={"ann": worker_slot.WorkerSlot(), "bob": worker_slot.WorkerSlot()},
            workers=(worker("bob", desired_state=PAUSED),),
        ),
        "T1 is given to the next agent that is free and may take it.",
        [("resume", "bob"), ("cancel", "T1")],
    ),
    "open, all paused": (
        scene(
            make(),
            worker_slots={"ann": worker_slot.WorkerSlot(), "bob": worker_slot.WorkerSlot()},
            workers=(worker("ann", desired_state=PAUSED), worker("bob", desired_state=PAUSED)),
        ),
        "T1 goes on when an operator resumes ann or bob.",
        [("resume", "ann"), ("resume", "bob"), ("cancel", "T1")],
    ),
    "open, the fleet's budget spent": (
        scene(make(), all_budgets={budgets.FLEET: budget.Budget(budget.State.SPENT, period_ms=NOW_MS + 7_200_000)}),
        "T1 goes on when the fleet's budget is refilled, in 2 h, or when an operator raises it.",
        [("budget", "--add-sessions ..."), ("cancel", "T1")],
    ),
    "open, its budget set aside": (
        scene(make(), all_budgets={budgets.of_task("T1"): budget.Budget(budget.State.HELD, lines=SHORT)}),
        (
            "T1 goes on when the reservations of the budget of T1 are settled, and something is left,"
            " or when an operator raises it."
        ),
        [("budget", "--task T1 --add-usd ..."), ("cancel", "T1")],
    ),
    "open, one paused and one without money": (
        scene(
            make(),
            worker_slots={"ann": worker_slot.WorkerSlot(), "bob": worker_slot.WorkerSlot()},
            workers=(worker("ann", desired_state=PAUSED),),
            all_budgets={budgets.of_agent("bob"): budget.Budget(budget.State.SPENT, period_ms=NOW_MS + 60_000)},
        ),
        (
            "T1 goes on when an operator resumes ann, or when the budget of bob is refilled, in 1 min,"
            " or when an operator raises it."
        ),
        [("resume", "ann"), ("budget", "--agent bob --add-sessions ..."), ("cancel", "T1")],
    ),
    "done, on a branch that an agent has moved": (
        scene(
            make(State.DONE, **OWNED),
            workers=(worker("ann", assignment=assignment.Assignment(assignment.State.DISPUTED)),),
        ),
        "T1 is merged when the target branch is set back, or an operator accepts it as it is.",
        [("branch", "--accept")],
    ),
    "done, and all paused": (
        scene(
            make(State.DONE, stage=Stage.MERGE),
            worker_slots={"ann": worker_slot.WorkerSlot()},
            workers=(worker("ann", desired_state=PAUSED),),
        ),
        "T1 goes on when an operator resumes ann.",
        [("resume", "ann")],
    ),
    "done, and the budget spent": (
        scene(make(State.DONE, stage=Stage.MERGE), all_budgets={budgets.FLEET: budget.Budget(budget.State.SPENT)}),
        "T1 is given to the next agent that is free, to merge it.",
        [],
    ),
    "worked at, within a time": (
        scene(
            make(State.IN_PROGRESS, **OWNED),
            workers=(worker("ann", session=Session(limits=Limits(session_timeout_ms=60_000))),),
        ),
        "T1 goes on when a session of ann has ended; each is ended after 1 min at the latest.",
        [("send", "ann"), ("stop", "ann"), ("cancel", "T1")],
    ),
    "worked at by an agent that is held": (
        scene(
            make(State.IN_PROGRESS, **OWNED),
            workers=(
                worker(
                    "ann",
                    session=Session(Agent.BUILDING_PROMPT),
                    desired_state=desired_state.DesiredState(desired_state.State.HOLD),
                ),
            ),
        ),
        "T1 goes on when a runner is at work: ann is held until then.",
        [("send", "ann"), ("stop", "ann"), ("cancel", "T1")],
    ),
    "worked at by an agent that has stopped": (
        scene(
            make(State.IN_PROGRESS, **OWNED),
            workers=(
                worker(
                    "ann",
                    session=Session(Agent.STOPPED),
                    desired_state=desired_state.DesiredState(desired_state.State.STOP),
                ),
            ),
        ),
        "T1 is given back when a runner is at work: ann has stopped.",
        [("cancel", "T1")],
    ),
    "worked at by an agent that is to stop": (
        scene(
            make(State.IN_PROGRESS, **OWNED),
            workers=(worker("ann", desired_state=desired_state.DesiredState(desired_state.State.STOP)),),
        ),
        "T1 is given back when the session of ann has ended: ann is to stop.",
        [("cancel", "T1")],
    ),
    "blocked, the fleet's budget spent": (
        scene(
            make(State.BLOCKED, blocked_by=budgets.FLEET),
            make(State.OPEN, "T0"),
            all_budgets={budgets.FLEET: budget.Budget(budget.State.SPENT, lines=SHORT)},
        ),
        "T1 goes on when an operator raises the budget.",
        [("budget", "--add-usd ..."), ("cancel", "T1")],
    ),
    "open, no agent left that may take it": (
        scene(
            make(role="cook"),
            worker_slots={"ann": ANN_IS_AT_T0, "bob": worker_slot.WorkerSlot(worker_slot.State.GONE, roles=("cook",))},
        ),
        "Nothing moves T1 on: no agent is left that may take it.",
        [("cancel", "T1")],
    ),
    "waiting for two": (
        scene(
            make(State.OPEN, "T1", "T2", "T3", "T9"),
            make(State.PENDING_APPROVAL, "T2"),
            make(State.FAILED, "T3", max_retries=0),
        ),
        (
            "T2 is merged when an operator approves it. T3 is tried again only when an operator grants a retry. "
            "The board has no task T9."
        ),
        [("approve", "T2"), ("reject", "T2"), ("retry", "T3"), ("cancel", "T1")],
    ),
    "claimed": (
        scene(make(State.CLAIMED, **OWNED)),
        "T1 goes on when a session of ann has ended.",
        [("send", "ann"), ("stop", "ann"), ("cancel", "T1")],
    ),
    "worked at": (
        scene(
            make(State.IN_PROGRESS, **OWNED),
            workers=(worker("ann", desired_state=PAUSED, session=Session(limits=Limits(session_timeout_ms=60_000))),),
        ),
        "T1 goes on when an operator resumes ann.",
        [("resume", "ann"), ("send", "ann"), ("stop", "ann"), ("cancel", "T1")],
    ),
    "done": (
        scene(make(State.DONE, **OWNED)),
        "T1 goes on by itself when ann has finished its verification or merge.",
        [],
    ),
    "to be merged": (
        scene(make(State.DONE, stage=Stage.MERGE)),
        "T1 is given to the next agent that is free, to merge it.",
        [],
    ),
    "to be verified": (
        scene(make(State.DONE, stage=Stage.VERIFY)),
        "T1 is given to the next agent that is free, to verify it.",
        [],
    ),
    "closed": (scene(make(State.CLOSED)), "Nothing: T1 is closed, and stays so.", []),
    "cancelled": (scene(make(State.CANCELLED)), "Nothing: T1 is cancelled, and stays so.", []),
    "blocked by a cancelled task, at first or second hand": (
        scene(
            make(State.BLOCKED, "T1", "T2", blocked_by="T2"),
            make(State.BLOCKED, "T2", "T3", blocked_by="T3"),
            make(State.CANCELLED, "T3"),
            make(State.OPEN, "T0"),
        ),
        f"T3 is cancelled, and stays so. T2 goes on when the fleet file has it without that dependency, {ACCEPTED}",
        [("cancel", "T1")],
    ),
    "resting": (
        scene(make(State.FAILED, retries=3, max_retries=9, limit=9)),
        "T1 is tried again by itself, in 40 s.",
        [("retry", "T1")],
    ),
    "failed for good, with a verification that may be wrong": (
        scene(
            make(State.FAILED, max_retries=0, verify=(("test", "-s", "x"),), failure=f"{UNMET}test -s x` exited"),
            make(State.OPEN, "T0"),
        ),
        "T1 is tried again only when an operator grants a retry.",
        [("retry", "T1"), ("edit", "T1 --verify ...")],
    ),
    "blocked": (
        scene(make(State.BLOCKED), make(State.OPEN, "T0")),
        "T1 goes on when an operator confirms that its blocker is gone.",
        [("retry", "T1"), ("cancel", "T1")],
    ),
    "blocked for want of a role": (
        scene(make(State.BLOCKED, blocked_by="role:reviewer"), make(State.OPEN, "T0")),
        f"T1 goes on when the fleet file has an agent that may take it, {ACCEPTED}",
        [("cancel", "T1")],
    ),
    "blocked, because it was removed from the plan": (
        scene(make(State.BLOCKED, blocked_by=fleet_task.PLAN, removed=True), make(State.OPEN, "T0")),
        f"T1 goes on when the fleet file has it again, {ACCEPTED}",
        [("cancel", "T1")],
    ),
    "failed, and removed from the plan": (
        scene(make(State.FAILED, retries=3, blocked_by=fleet_task.PLAN, removed=True), make(State.OPEN, "T0")),
        f"T1 goes on when the fleet file has it again, {ACCEPTED}",
        [],
    ),
    "blocked for want of money": (
        scene(make(State.BLOCKED, blocked_by=f"{fleet_task.BUDGET}agent/ann"), make(State.OPEN, "T0")),
        "T1 goes on when an operator raises the budget.",
        [("budget", "--agent ann"), ("cancel", "T1")],
    ),
    "waiting for no part": (
        scene(make(State.WAITING_FOR_SUBTASKS)),
        "T1 goes on when all its subtasks are closed.",
        [("cancel", "T1")],
    ),
    "orphaned": (
        scene(make(State.ORPHANED, **OWNED)),
        "T1 goes on when the worktree of ann has been inspected.",
        [],
    ),
}


def test_an_agent_that_has_spent_its_budget_is_not_said_to_wait_for_work() -> None:
    """It waits for money."""
    of, _, _ = ONWARD["open, one paused and one without money"]
    assert said(of).endswith("ann is paused (lunch) and bob's own budget is spent, and is refilled in 1 min.")


@pytest.mark.parametrize("name", ONWARD)
def test_a_task_is_moved_on_at_its_root_causes(name: str) -> None:
    """By itself, and by an operator's commands: a task that only waits has no retry."""
    of, onward, commands = ONWARD[name]
    told = why.explain(of, why.Story(of.name))
    assert told.onward == onward
    assert [(option.command, option.to) for option in told.options] == commands


ANEW = "To have it done, run the fleet file that has it with --again: that begins a new log."
HOME = {"ann": worker_slot.WorkerSlot(worker_slot.State.GONE, reason="no work is left")}

OVER: dict[str, tuple[why.FleetView, str, list[tuple[str, str]]]] = {
    "everything is settled, and one has failed": (
        scene(
            make(State.BLOCKED, "T1", "T2", blocked_by="T2"), make(State.FAILED, "T2", max_retries=0), worker_slots=HOME
        ),
        f"Nothing moves T2 on: the fleet is finished. {ANEW}",
        [("cancel", "T1")],
    ),
    "everything is settled, and they are about to go": (
        scene(make(State.FAILED, max_retries=0)),
        f"Nothing moves T1 on: the fleet is finished. {ANEW}",
        [],
    ),
    "no agent is left, and one would be open": (
        scene(make(), worker_slots={"bob": BOB_IS_GONE}),
        f"Nothing moves T1 on: all agents have stopped for good. {ANEW}",
        [("cancel", "T1")],
    ),
    "no agent is left, and two wait for an operator": (
        scene(
            make(State.OPEN, "T1", "T2", "T3"),
            make(State.PLANNED, "T2"),
            make(State.PENDING_APPROVAL, "T3"),
            worker_slots={"bob": BOB_IS_GONE},
        ),
        (
            "Nothing moves T2 and T3 on: all agents have stopped for good. "
            "To have them done, run the fleet file that has them with --again: that begins a new log."
        ),
        [("cancel", "T1")],
    ),
    "no agent is left, and it is closed": (
        scene(make(State.CLOSED), worker_slots=HOME),
        "Nothing: T1 is closed, and stays so.",
        [],
    ),
}


@pytest.mark.parametrize("name", OVER)
def test_no_command_is_offered_where_all_agents_have_stopped(name: str) -> None:
    """No command moves a task on without agents, and none is offered: the explanation says so."""
    of, onward, commands = OVER[name]
    told = why.explain(of, why.Story(of.name))
    assert told.onward == onward
    assert [(option.command, option.to) for option in told.options] == commands


def test_the_session_of_the_claim_is_said_where_the_story_knows_it() -> None:
    """It counts from the claim on."""
    of = scene(make(State.IN_PROGRESS, **OWNED), workers=(worker("ann"),))
    assert "3 min ago, in session 2 of attempt 2." in said(of, why.Story("T1", sessions=2, attempts=2))
