"""How a task came to where it is: what concerns it is told in words, oldest first, and what repeats itself once."""

import pytest

from fleet_driver import Driver
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system.plan_enforcement import continue_with_new_terms
from lifefold.core.fleet.worker import assignment, desired_state, mailbox
from lifefold.core.kernel import (
    Created,
    Entity,
    Event,
    Record,
    Transition,
    replace,
)
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.session import Session, Usage
from lifefold.core.lifecycles.session import State as Agent
from lifefold.core.lifecycles.task import KeptConversation, Stage, State
from lifefold.core.policy.abort import AbortScope
from lifefold.core.policy.ends import TIMED_OUT, Diagnosis, Trouble, by_status
from lifefold.effects import Effect
from lifefold.interpreters.explain import why
from lifefold.interpreters.explain.why import event_words


class Recorder:
    """Folds stories of all tasks while a fleet is driven."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.stories = {each.id: why.Story(each.id) for each in driver.plan.tasks}
        driver.watch = self._watch
        self._watch("board", None)

    def _watch(self, name: str, reaction: object) -> None:
        for transition in getattr(reaction, "transitions", ()):
            self.stories = {each: why.tell(known, name, transition) for each, known in self.stories.items()}

    def told(self, name: str) -> list[str]:
        """Return what has been told of a task: by whom, and what."""
        return [f"{line.by}: {line.words()}" for line in self.stories[name].lines]


def drive(*tasks: TaskPlan, script: tuple[int, ...] = ()) -> Recorder:
    """Return a fleet of one that is about to begin."""
    return Recorder(Driver(Plan("plan", (AgentPlan("ann"),), tasks), script))


def test_a_story_has_what_concerns_the_task_and_nothing_else() -> None:
    """What it goes through itself, and its owner while it has it."""
    proven = (("true",),)
    of = drive(TaskPlan("T1", "do it", verify=proven), TaskPlan("T2", "do that", verify=proven))
    of.driver.run()
    assert of.told("T1") == of.told("T2") == [
        "plan: put on the board",
        "the fleet: given to ann",
        "ann: began a session",
        "ann: its verification succeeded",
        "ann: the work is done, and is to be verified",
        "ann: merged as c0ffee",
    ]  # fmt: skip
    assert (of.stories["T1"].owner, of.stories["T1"].sessions) == ("", 1)


def test_work_without_a_verification_command_is_not_said_to_be_verified() -> None:
    """Nothing was verified, and the story tells so."""
    of = drive(TaskPlan("T1", "do it"))
    of.driver.run()
    assert of.told("T1")[3:] == [
        "ann: the work is accepted without verification, because the task has no verify",
        "ann: the work is done",
        "ann: merged as c0ffee",
    ]


def stepped(
    event: Event,
    *,
    machine: str = "task",
    ref: str = "task:T1",
    record: Record | None = None,
    before: Record | None = None,
) -> Transition:
    """Return a transition with this event."""
    record = record or fleet_task.FleetTask(id="T1", stage=Stage.MERGE)
    start = None if before is None else Entity(ref, before)
    effects: tuple[Effect, ...] = ()
    return Transition(machine, start, Entity(ref, record), event, 5, "operator", effects)


def in_hand() -> why.Story:
    """Return the story of a task that ann has in hand."""
    given = stepped(assignment.Assigned(task.Brief("T1")), machine="assignment", ref="assignment")
    return why.tell(why.Story("T1"), "worker/ann", given)


def lines(of: why.Story) -> list[str]:
    """Return what was told, and by whom."""
    return [f"{line.by}: {line.words()}" for line in of.lines]


OF_TASK: dict[str, tuple[Event, str]] = {
    "a reason": (task.Released(1, "no\nroom."), "given back: no room"),
    "no reason": (task.Released(1), "given back"),
    "a commit": (task.Verified(1, "c0ffee0123456789"), "merged as c0ffee0123"),
    "no commit": (task.Verified(1), "closed; there was nothing to merge"),
    "an owner": (task.Claimed("ann"), "given to ann"),
    "a new owner": (fleet_task.Handed("ann"), "handed over to be merged, to ann"),
    "parts": (fleet_task.Split(1, (fleet_task.Subtask(), fleet_task.Subtask())), "split into 2 parts"),
    "a part": (fleet_task.Split(1, (fleet_task.Subtask(),)), "split into 1 part"),
    "a budget that is there": (
        fleet_task.DependencyBack("budget:fleet"),
        "unblocked: the budget of the fleet suffices again",
    ),
    "a budget of an agent": (
        fleet_task.DependencyBack("budget:agent/a"),
        "unblocked: the budget of agent a suffices again",
    ),
    "a cause that is gone": (fleet_task.DependencyBack("T3"), "unblocked: T3 may be done after all"),
    "a task that is planned again": (fleet_task.DependencyBack(fleet_task.PLAN), "unblocked: it is in the plan again"),
    "a role that is there": (fleet_task.DependencyBack("role:tester"), "unblocked: an agent has the role tester"),
    "a change of the plan": (fleet_task.Replanned(what="its prompt"), "its prompt changed in the fleet file"),
    "a plan that has it again": (fleet_task.Replanned(what="it is planned again"), "it is planned again"),
    "a failure": (task.Failed(1, "tests fail", Diagnosis()), "failed: tests fail"),
    "a failure without a diagnosis": (task.Failed(1), "failed"),
    "a failure with a reason of the document": (task.Failed(1, "Timeout", TIMED_OUT), "failed (timeout): Timeout"),
    "a session that was killed, for a cause that its status does not tell": (
        task.Failed(1, "Error(Killed (signal 9))", by_status(-9)),
        "failed: Killed (signal 9)",
    ),
    "a session that has died": (task.Orphaned(1, "exit 1"), "its session has died: exit 1"),
    "an owner who has died": (task.Orphaned(1), "its owner has died"),
    "a tool": (
        fleet_task.ToolAborted(1, "browser", "lost"),
        "its tool browser was aborted, and its session goes on: lost",
    ),
    "its siblings": (
        fleet_task.AbortWanted(AbortScope.SIBLING, "enough"),
        "aborted its siblings, with all that is below them: enough",
    ),
    "itself": (fleet_task.AbortWanted(AbortScope.SESSION), "aborted it, with all that is below it"),
    "an abort that has to wait": (
        fleet_task.Aborted(reason="no more"),
        "aborted, as soon as it would be opened again: no more",
    ),
    "unknown": (desired_state.StopWanted("why not"), "StopWanted: why not"),
    "unknown and silent": (desired_state.RunWanted(), "RunWanted"),
}


@pytest.mark.parametrize("name", OF_TASK)
def test_events_of_a_task_are_told_in_words(name: str) -> None:
    """With its reason in a line; what has no words is told by its name."""
    event, words = OF_TASK[name]
    assert lines(why.tell(why.Story("T1"), "board", stepped(event))) == [f"operator: {words}"]


def test_an_abort_that_ends_a_task_is_told_without_a_condition() -> None:
    """It is cancelled at once."""
    before, after = (
        fleet_task.FleetTask(State.OPEN, "T1", fate=fleet_task.Fate()),
        fleet_task.FleetTask(State.CANCELLED, "T1", fate=fleet_task.Fate()),
    )
    ended = stepped(fleet_task.Aborted(reason="no more"), record=after, before=before)
    assert lines(why.tell(why.Story("T1"), "board", ended)) == ["operator: aborted: no more"]


@pytest.mark.parametrize("by", ["T3", "budget:fleet", "role:tester"])
def test_a_change_of_the_plan_does_not_claim_that_a_blocker_is_gone(by: str) -> None:
    """The rule unblocks every changed task, and others decide what still blocks it."""
    given = replace(stepped(fleet_task.DependencyBack(by)), actor=f"rule:{continue_with_new_terms.name}")
    told = lines(why.tell(why.Story("T1"), "board", given))
    assert told == ["the fleet: unblocked, to be decided anew by the changed plan"]


def test_every_event_of_a_task_has_words() -> None:
    """A row that is added to its table has to be told, too."""
    assert {each.event for each in fleet_task.machine.rows} <= set(event_words.OF_TASK)


def test_a_story_has_each_conversation_once() -> None:
    """Its beginning and its loss; new charges are no news."""
    begun = KeptConversation("ann", "C1", Usage(1))
    later = replace(begun, charged=Usage(2))
    for before, after, said in (
        (None, begun, ["operator: began conversation C1"]),
        (begun, later, []),
        (later, replace(begun, id="C2"), ["operator: began conversation C2"]),
        (later, None, ["operator: lost conversation C1"]),
        (None, None, []),
    ):
        event = fleet_task.ConversationKept(1, "ann", after)
        was = fleet_task.FleetTask(State.CLAIMED, "T1", conversation=before)
        told = stepped(event, record=replace(was, conversation=after), before=was)
        assert lines(why.tell(why.Story("T1"), "board", told)) == said


def test_a_task_begins_its_story_as_what_it_is() -> None:
    """A part says of what it is one; one that is handed over to be verified is no merge."""
    part = fleet_task.FleetTask(State.OPEN, "T1", parent="T0")
    born = stepped(Created(part), record=part)
    assert lines(why.tell(why.Story("T1"), "board", born)) == ["operator: put on the board, a part of T0"]
    handed = stepped(fleet_task.Handed("ann"), record=fleet_task.FleetTask(stage=Stage.VERIFY))
    assert lines(why.tell(why.Story("T1"), "board", handed)) == ["operator: handed over to be verified, to ann"]


SUSPENDED = session.SessionExited(session.Suspended())
OF_OWNER: dict[str, tuple[Event, str, str]] = {
    "suspends itself": (SUSPENDED, "session", "ann: its session has suspended itself"),
    "is suspended": (
        session.SessionExited(session.Suspended(asked=True)),
        "session",
        "ann: its session was suspended",
    ),
    "urgent message": (
        mailbox.OperatorMessageArrived("look"),
        "mailbox",
        "operator: wrote to its agent, urgently: look",
    ),
    "message": (mailbox.OperatorMessageArrived("look", urgent=False), "mailbox", "operator: wrote to its agent: look"),
    "paused": (desired_state.PauseWanted("lunch"), "desired_state", "operator: paused its agent: lunch"),
    "resumed": (desired_state.ResumeWanted(), "desired_state", "operator: let its agent go on"),
    "drained": (
        desired_state.DrainWanted("enough"),
        "desired_state",
        "operator: had its agent finish what it has, and stop: enough",
    ),
    "killed": (desired_state.KillWanted("at once"), "desired_state", "operator: killed its agent: at once"),
}


@pytest.mark.parametrize("name", OF_OWNER)
def test_events_of_the_owner_are_told_while_it_has_the_task(name: str) -> None:
    """And of no other worker, nor of one with another task."""
    event, machine, told = OF_OWNER[name]
    happened = stepped(event, machine=machine, ref=machine)
    assert lines(why.tell(in_hand(), "worker/ann", happened)) == [told]
    assert lines(why.tell(in_hand(), "worker/bob", happened)) == []
    assert lines(why.tell(why.Story("T1"), "worker/ann", happened)) == []


def test_every_command_to_an_agent_is_told_of_the_task_that_it_has() -> None:
    """Whichever actor gave it: ``why`` is asked for what happened to a task because of it."""
    assert set(desired_state.COMMANDS) <= set(event_words.OF_OWNER)


def test_an_end_of_a_session_is_told_if_the_board_does_not_hear_of_it() -> None:
    """One that was interrupted is; of success and failure the board tells."""
    exited = session.SessionExited(session.Error("no"))
    for before, told in ((Agent.RUNNING, []), (Agent.INTERRUPTING, ["ann: its session was interrupted"])):
        end = stepped(exited, machine="session", ref="session", before=Session(before), record=Session())
        assert lines(why.tell(in_hand(), "worker/ann", end)) == told


def test_each_loss_of_a_conversation_is_told() -> None:
    """The first one costs no retry, so the board does not hear of it."""
    lost = session.SessionExited(session.Error("no conversation found", Diagnosis(trouble=Trouble.LOST)))
    end = stepped(lost, machine="session", ref="session", before=Session(Agent.RUNNING), record=Session())
    assert lines(why.tell(in_hand(), "worker/ann", end)) == ["ann: its session found its conversation lost"]


def test_work_of_a_session_is_told_only_if_the_session_is_dead() -> None:
    """Work of a session that has succeeded is nothing unexpected."""
    for is_dead, told in ((True, ["ann: found work of the dead session, and verifies it"]), (False, [])):
        of = assignment.Assignment(assignment.State.INSPECTING, is_orphan=is_dead)
        found = stepped(
            assignment.Inspected(differs=True), machine="assignment", ref="assignment", before=of, record=of
        )
        assert lines(why.tell(in_hand(), "worker/ann", found)) == told


def test_an_assignment_of_another_task_ends_ownership_for_that_worker_only() -> None:
    """Assignments decide which worker has a task."""
    other = stepped(assignment.Assigned(task.Brief("T2")), machine="assignment", ref="assignment")
    assert why.tell(in_hand(), "worker/ann", other).owner == ""
    assert why.tell(in_hand(), "worker/bob", other).owner == "worker/ann"


def test_the_sessions_of_the_present_claim_are_counted() -> None:
    """Those of an earlier one are not."""
    began = stepped(session.SessionStarted(0), machine="session", ref="session")
    of = why.tell(why.tell(in_hand(), "worker/ann", began), "worker/ann", began)
    assert of.sessions == 2
    assert why.tell(of, "board", stepped(task.Claimed("bob"))).sessions == 0
    assert why.tell(of, "board", stepped(task.Claimed("bob"), ref="task:T2")) == of


def test_a_night_without_a_runner_is_told_of_tasks_that_were_there() -> None:
    """Nothing happened without a runner."""
    begun = why.tell(why.Story("T1"), "board", stepped(task.Unblocked()))
    assert lines(why.resumed(begun, 9))[1:] == ["runner: goes on, after a time without a runner"]
    assert not why.resumed(why.Story("T1"), 9).lines


# Repetitions


def passage(*words: str, by: str = "ann") -> tuple[why.Line, ...]:
    """Return lines, a millisecond apart."""
    return tuple(why.Line(at_ms, by, each) for at_ms, each in enumerate(words))


@pytest.mark.parametrize(
    ("words", "folded"),
    [
        ("", ""),
        ("a", "1a"),
        ("aaa", "3a"),
        ("abab", "2ab"),
        ("oabababx", "1o 3ab 1x"),
        ("aab", "2a 1b"),
        ("aabaab", "2aab"),
        ("abcabcabd", "2abc 1a 1b 1d"),
        ("abcdefghijklmabcdefghijklm", " ".join(f"1{each}" for each in "abcdefghijklm" * 2)),
    ],
)
def test_repetitions_are_folded(words: str, folded: str) -> None:
    """One line or several in a row; nothing is lost, and the times of the first and the last are kept."""
    told = why.chapters(passage(*words))
    assert " ".join(f"{each.times}{''.join(line.said for line in each.lines)}" for each in told) == folded
    assert "".join("".join(line.said for line in each.lines) * each.times for each in told) == words
    assert [each.from_ms for each in told[1:]] == [each.to_ms + 1 for each in told[:-1]]


def test_a_chapter_names_all_its_actors() -> None:
    """Claimed three times, by two agents, and given back each time."""
    given = [why.Line(n, "rule match", "given to", to) for n, to in enumerate(("ann", "bob", "ann"))]
    back = [why.Line(n, to, "given back: no disk") for n, to in enumerate(("ann", "bob", "ann"))]
    told = tuple(line for pair in zip(given, back, strict=True) for line in pair)
    (chapter,) = why.chapters(told)
    assert chapter == why.Chapter(
        3, 0, 2, (why.Line(0, "rule match", "given to", "ann, bob"), why.Line(0, "ann, bob", "given back: no disk"))
    )
    assert chapter.lines[0].words() == "given to ann, bob"


def test_a_task_that_failed_again_and_again_is_told_in_a_chapter() -> None:
    """With a real fleet: each attempt is the same story, and the rest between them belongs to it."""
    of = drive(TaskPlan("T1", "do it", max_retries=3))
    of.driver.broken.add("ann")
    of.driver.run()
    told = why.chapters(of.stories["T1"].lines)
    assert [each.times for each in told if len(each.lines) > 1] == [5]
