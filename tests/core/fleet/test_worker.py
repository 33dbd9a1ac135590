"""A worker: how a session, an assignment, a mailbox and an intent come together."""

from collections.abc import Callable

import pytest

from aggregate_hand import Hand
from lifefold.core import session, task
from lifefold.core.fleet import assignment, intent, mailbox, seat, worker
from lifefold.core.kernel import Phase
from lifefold.effects import Begin, CancelSession, End, RunSession

BRIEF = task.Brief("T1", 2, "do it", (("true",),), "")
NAME = "worker/ann"


def opened(limits: session.Limits | None = None) -> Hand:
    """Return a worker whose worktree is being made."""
    return Hand(
        NAME,
        {
            "intent": intent.Intent(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session.Session(name="ann", limits=limits or session.Limits()),
        },
    )


def wanting() -> Hand:
    """Return a worker that has asked for work."""
    return opened().report("session", "PrepareWorktree", session.WorktreeReady())


def preparing() -> Hand:
    """Return a worker that was given a task."""
    return wanting().hear("board", "assignment", assignment.Assigned(BRIEF))


def spawning() -> Hand:
    """Return a worker whose session is being spawned."""
    return preparing().report("assignment", "CheckOutWork", assignment.CheckedOut())


def start(of: Hand) -> Hand:
    """Let the session start."""
    return of.report("session", "RunSession", session.SessionStarted(of.record("session").session_seq))


def exit_with(of: Hand, outcome: session.Success | session.Error | session.Timeout) -> Hand:
    """Let the session end."""
    return of.report("session", "RunSession", session.SessionExited(outcome))


def running() -> Hand:
    """Return a worker whose session runs."""
    return start(spawning())


def interrupting() -> Hand:
    """Return a worker whose session was asked to end."""
    return running().give("mailbox", mailbox.LetterArrived("look"))


def verifying() -> Hand:
    """Return a worker whose work is being verified."""
    return exit_with(running(), session.Success())


def merging() -> Hand:
    """Return a worker whose work is being merged."""
    return verifying().report("assignment", "VerifyWork", assignment.Verified())


def cooling() -> Hand:
    """Return a worker whose session failed."""
    return exit_with(running(), session.Error("exit status 1"))


def states(of: Hand) -> tuple[str, str]:
    """Return the states of session and assignment."""
    return of.state("session"), of.state("assignment")


def prompt_of(of: Hand) -> str:
    """Return the prompt of the session that the last reaction began."""
    (begin,) = [e for e in of.effects(Begin) if isinstance(e, Begin) and isinstance(e.activity, RunSession)]
    assert isinstance(begin.activity, RunSession)
    return begin.activity.prompt


# The round


def test_a_worker_asks_for_work_when_its_worktree_is_ready() -> None:
    """Its seat on the board begins to wait."""
    of = opened().report("session", "PrepareWorktree", session.WorktreeReady())
    assert states(of) == ("BuildingPrompt", "Wanting")
    assert of.told() == [("board", "seat:ann", seat.WorkWanted())]


def test_a_task_is_checked_out_before_its_prompt_is_written() -> None:
    """The session waits in BuildingPrompt meanwhile."""
    of = preparing()
    assert (states(of), of.begun()) == (("BuildingPrompt", "Preparing"), ["CheckOutWork"])
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    assert (states(of), of.begun()) == (("Spawning", "Working"), ["RunSession"])
    assert prompt_of(of) == "do it"
    assert of.record("assignment").sessions == 1


def test_the_board_hears_once_for_each_claim_that_work_has_begun() -> None:
    """Not again after an interruption."""
    of = running()
    assert of.told() == [("board", "task:T1", task.Started(2))]
    of.give("mailbox", mailbox.LetterArrived("look"))
    exit_with(of, session.Success())
    start(of)
    assert (of.state("session"), of.told()) == ("Running", [])


def test_finished_work_is_verified_merged_and_then_the_next_round_begins() -> None:
    """The board hears Completed and Verified under the epoch of the claim, and then that more is wanted."""
    of = verifying()
    assert (states(of), of.begun()) == (("SessionComplete", "Verifying"), ["VerifyWork"])
    assert of.told() == [("board", "task:T1", task.Completed(2))]
    of.report("assignment", "VerifyWork", assignment.Verified())
    assert (states(of), of.begun(), of.told()) == (("SessionComplete", "Merging"), ["MergeWork"], [])
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee"))
    assert states(of) == ("BuildingPrompt", "Wanting")
    assert of.told() == [("board", "task:T1", task.Verified(2, "c0ffee")), ("board", "seat:ann", seat.WorkWanted())]
    assert of.record("session").session_seq == 1


def test_work_that_is_rejected_is_reported_and_the_worker_goes_on() -> None:
    """By verification or by the merge."""
    refused = verifying().report("assignment", "VerifyWork", assignment.Rejected("tests fail"))
    conflict = merging().report("assignment", "MergeWork", assignment.Conflicted("both changed it"))
    for of, reason in ((refused, "tests fail"), (conflict, "both changed it")):
        assert of.told() == [("board", "task:T1", task.Rejected(2, reason)), ("board", "seat:ann", seat.WorkWanted())]
        assert states(of) == ("BuildingPrompt", "Wanting")


def test_a_place_that_cannot_be_made_is_a_failure_of_the_task() -> None:
    """The worker asks for other work at once."""
    of = preparing().report("assignment", "CheckOutWork", assignment.CheckoutFailed("no branch"))
    assert of.told() == [("board", "task:T1", task.Failed(2, "no branch")), ("board", "seat:ann", seat.WorkWanted())]


def test_a_session_that_fails_gives_the_task_back_and_cools_down() -> None:
    """Only after the pause does the worker ask again."""
    of = cooling()
    assert states(of) == ("CoolingDown", "Idle")
    assert of.told() == [("board", "task:T1", task.Failed(2, "Error(exit status 1)"))]
    of.elapse("session", "BackoffElapsed")
    assert of.told() == [("board", "seat:ann", seat.WorkWanted())]
    assert states(of) == ("BuildingPrompt", "Wanting")


def test_a_session_that_fails_before_it_starts_fails_the_task_that_was_never_begun() -> None:
    """The board has heard nothing of Started."""
    of = exit_with(spawning(), session.Timeout())
    assert of.told() == [("board", "task:T1", task.Failed(2, "Timeout"))]


def test_an_agent_that_reached_a_threshold_fails_its_task_and_is_gone() -> None:
    """In this order, so that nobody has to take the task from it."""
    of = opened(session.Limits(max_consecutive_errors=1)).report("session", "PrepareWorktree", session.WorktreeReady())
    of.hear("board", "assignment", assignment.Assigned(BRIEF))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    exit_with(of, session.Error("x"))
    assert of.told() == [
        ("board", "task:T1", task.Failed(2, "Error(x)")),
        ("board", "seat:ann", seat.WorkerGone("its session has stopped")),
    ]
    assert of.state("mailbox") == "Closed"


def test_a_worktree_that_cannot_be_made_is_the_end_of_the_worker() -> None:
    """It goes with nothing in hand."""
    of = opened().report("session", "PrepareWorktree", session.FatalError("no repository"))
    assert of.told() == [("board", "seat:ann", seat.WorkerGone("its session has stopped"))]


# Letters


def test_an_urgent_letter_interrupts_and_comes_with_the_next_prompt() -> None:
    """The work is not given back: the agent goes on from where it was (D14)."""
    of = running().give("mailbox", mailbox.LetterArrived("look"))
    assert states(of) == ("Interrupting", "Working")
    assert of.effects(CancelSession) == [CancelSession()]
    exit_with(of, session.Error("cancelled"))
    assert states(of) == ("Spawning", "Working")
    text = prompt_of(of)
    assert text.startswith("do it")
    assert "Your last session was interrupted." in text
    assert text.endswith("You have messages:\n- look")
    assert (of.state("mailbox"), of.record("mailbox").letters) == ("Empty", ())


def test_a_letter_that_can_wait_interrupts_nobody() -> None:
    """It comes with the next prompt, whenever that is written."""
    of = running().give("mailbox", mailbox.LetterArrived("by the way", urgent=False))
    assert states(of) == ("Running", "Working")
    assert of.record("mailbox").letters == ("by the way",)


def test_an_urgent_letter_while_spawning_interrupts_right_after_the_start() -> None:
    """Once, however many letters come (D14)."""
    of = spawning()
    for text in ("one", "two", "three"):
        of.give("mailbox", mailbox.LetterArrived(text))
    assert states(of) == ("Spawning", "Working")
    start(of)
    assert of.state("session") == "Interrupting"
    exit_with(of, session.Success())
    assert prompt_of(of).endswith("- one\n- two\n- three")


@pytest.mark.parametrize("make", [opened, wanting, preparing, interrupting, verifying, merging, cooling])
def test_an_urgent_letter_where_nothing_runs_waits_in_the_mailbox(make: Callable[[], Hand]) -> None:
    """Nothing else changes: CoolingDown keeps its backoff, a merge goes on (D14)."""
    of = make()
    before = states(of)
    of.give("mailbox", mailbox.LetterArrived("later"))
    assert states(of) == before
    assert of.record("mailbox").letters[-1] == "later"


def test_a_letter_that_came_before_the_task_is_in_its_first_prompt() -> None:
    """Nothing that was said is lost, and nothing is said twice."""
    of = preparing().give("mailbox", mailbox.LetterArrived("be quick"))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    assert prompt_of(of) == "do it\n\nYou have messages:\n- be quick"
    start(of)
    exit_with(of, session.Success())
    assert of.record("mailbox").letters == ()


def test_a_stopped_workers_mailbox_is_closed_and_senders_are_told() -> None:
    """A letter that nobody will read is refused (D14)."""
    of = running().give("mailbox", mailbox.LetterArrived("by the way", urgent=False))
    of.give("intent", intent.StopWanted("enough"))
    assert (of.state("mailbox"), of.record("mailbox").letters) == ("Closed", ())
    assert of.refuse("mailbox", mailbox.LetterArrived("hello?")).kind == "illegal"


# Hold and resume


def test_a_hold_interrupts_what_runs_and_starts_nothing_new() -> None:
    """It is no error; the worker goes on where it was when it is resumed."""
    of = running().give("intent", intent.HoldWanted())
    assert states(of) == ("Interrupting", "Working")
    exit_with(of, session.Error("cancelled"))
    assert states(of) == ("BuildingPrompt", "Working")
    assert worker.quiet(of.aggregate)
    assert of.record("session").total_errors == 0
    of.give("intent", intent.RunWanted())
    assert states(of) == ("Spawning", "Working")
    assert "Your last session was interrupted." in prompt_of(of)


def test_a_hold_while_spawning_interrupts_as_soon_as_the_session_runs() -> None:
    """The process is there already, but no work is done in it."""
    of = spawning().give("intent", intent.HoldWanted())
    assert of.state("session") == "Spawning"
    start(of)
    assert of.state("session") == "Interrupting"


def test_a_hold_and_a_letter_while_spawning_interrupt_once() -> None:
    """One interruption is enough for everybody who wants one."""
    of = spawning().give("mailbox", mailbox.LetterArrived("look")).give("intent", intent.HoldWanted())
    start(of)
    assert of.state("session") == "Interrupting"


@pytest.mark.parametrize(
    ("make", "resumed"),
    [(wanting, ("BuildingPrompt", "Wanting")), (preparing, ("BuildingPrompt", "Preparing"))],
    ids=["wanting", "preparing"],
)
def test_a_hold_where_nothing_runs_changes_nothing_but_the_intent(
    make: Callable[[], Hand], resumed: tuple[str, str]
) -> None:
    """What was under way stays under way; nothing is asked for twice."""
    of = make().give("intent", intent.HoldWanted())
    assert worker.quiet(of.aggregate)
    of.give("intent", intent.RunWanted())
    assert (states(of), of.told(), of.begun()) == (resumed, [], [])


def test_a_held_worker_that_gets_a_task_keeps_it_for_later() -> None:
    """Its place is made; the session waits for the resumption."""
    of = wanting().give("intent", intent.HoldWanted())
    of.hear("board", "assignment", assignment.Assigned(BRIEF))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    assert states(of) == ("BuildingPrompt", "Working")
    of.give("intent", intent.RunWanted())
    assert states(of) == ("Spawning", "Working")


def test_a_held_worker_that_is_done_asks_for_nothing_until_it_is_resumed() -> None:
    """The merge goes on, and then it is quiet."""
    of = merging().give("intent", intent.HoldWanted())
    assert not worker.quiet(of.aggregate)
    of.report("assignment", "MergeWork", assignment.Merged())
    assert states(of) == ("BuildingPrompt", "Idle")
    assert worker.quiet(of.aggregate)
    of.give("intent", intent.RunWanted())
    assert of.told() == [("board", "seat:ann", seat.WorkWanted())]


def test_a_held_worker_keeps_cooling_down() -> None:
    """And then asks for nothing."""
    of = cooling().give("intent", intent.HoldWanted()).elapse("session", "BackoffElapsed")
    assert states(of) == ("BuildingPrompt", "Idle")


# Stop


STOPS: dict[str, tuple[Callable[[], Hand], list[str], list[type[object]]]] = {
    "Initializing": (opened, ["PrepareWorktree"], [seat.WorkerGone]),
    "Wanting": (wanting, [], [seat.WorkerGone]),
    "Preparing": (preparing, ["CheckOutWork"], [task.Released, seat.WorkerGone]),
    "Spawning": (spawning, ["RunSession"], [task.Released, seat.WorkerGone]),
    "Running": (running, ["RunSession"], [task.Released, seat.WorkerGone]),
    "Interrupting": (interrupting, ["RunSession"], [task.Released, seat.WorkerGone]),
    "Verifying": (verifying, ["VerifyWork"], [task.Rejected, seat.WorkerGone]),
    "CoolingDown": (cooling, [], [seat.WorkerGone]),
}


@pytest.mark.parametrize("name", STOPS)
def test_a_stop_at_any_moment_leaves_nothing_running(name: str) -> None:
    """What goes on is ended, the task is given back, the board hears that the worker is gone; then nothing is left."""
    make, ended, told = STOPS[name]
    of = make().give("intent", intent.StopWanted("enough"))
    assert states(of) == ("Stopped", "Idle")
    assert [e.slot for e in of.effects(End) if isinstance(e, End)] == ended
    assert [type(event) for _, _, event in of.told()] == told
    assert of.told()[-1] == ("board", "seat:ann", seat.WorkerGone("enough"))
    for ref, entity in of.aggregate.entities.items():
        for part in entity.running:
            assert not worker.settled(of.aggregate)
            assert not worker.quiet(of.aggregate)
            assert part.phase is Phase.ENDING
            of.confirm(ref, part.slot)
            assert of.told() == []
    assert worker.settled(of.aggregate)
    assert worker.quiet(of.aggregate)


@pytest.mark.parametrize("outcome", ["merged", "conflicted"])
def test_a_stop_during_a_merge_waits_for_its_outcome(outcome: str) -> None:
    """A merge that has begun is never given up; only then is the worker gone."""
    of = merging().give("intent", intent.StopWanted("enough"))
    assert (states(of), of.told()) == (("Stopped", "Merging"), [])
    assert of.effects(End) == []
    assert not worker.settled(of.aggregate)
    assert not worker.quiet(of.aggregate)
    merged = outcome == "merged"
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee") if merged else assignment.Conflicted("x"))
    told = task.Verified(2, "c0ffee") if merged else task.Rejected(2, "x")
    assert of.told() == [("board", "task:T1", told), ("board", "seat:ann", seat.WorkerGone("enough"))]
    assert worker.settled(of.aggregate)


def test_a_stop_is_for_good() -> None:
    """Neither a resumption nor another stop does anything, and a crash brings nothing back."""
    of = running().give("intent", intent.StopWanted("enough")).confirm("session", "RunSession")
    assert of.refuse("intent", intent.RunWanted()).kind == "illegal"
    assert of.refuse("intent", intent.StopWanted()).kind == "illegal"
    assert of.crash().effects() == []
    assert of.state("session") == "Stopped"


def test_a_stop_from_hold_is_a_stop() -> None:
    """A worker that holds can be sent home."""
    of = wanting().give("intent", intent.HoldWanted()).give("intent", intent.StopWanted("no work is left"))
    assert (of.state("session"), of.state("intent")) == ("Stopped", "Stop")


def test_a_task_that_arrives_after_the_stop_is_not_taken() -> None:
    """The board hears WorkerGone and gives it to somebody else."""
    of = wanting().give("intent", intent.StopWanted("enough"))
    assert of.dismiss("board", "assignment", assignment.Assigned(BRIEF)).kind == "illegal"


def test_a_worker_that_has_stopped_by_itself_can_be_sent_home_all_the_same() -> None:
    """The intent is kept; the session has nothing more to do."""
    of = opened().report("session", "PrepareWorktree", session.FatalError("no repository"))
    of.hear("board", "intent", intent.StopWanted("no work is left"))
    assert (of.state("intent"), of.told()) == ("Stop", [])


def test_an_operators_own_stop_of_a_session_gives_the_task_back() -> None:
    """Whoever stops it; the reason says what happened."""
    of = running().give("session", session.OperatorStop())
    assert of.told() == [
        ("board", "task:T1", task.Released(2, "stopped by OperatorStop")),
        ("board", "seat:ann", seat.WorkerGone("its session has stopped")),
    ]


# Crashes


def test_after_a_crash_a_worker_asks_again_for_what_goes_on() -> None:
    """The session is adopted or begun anew; what the rules serve is not asked of an interpreter."""
    of = running().crash()
    assert of.begun() == ["RunSession"]
    assert wanting().crash().begun() == []
    assert verifying().crash().begun() == ["VerifyWork"]


def test_a_fatal_error_may_come_from_anywhere() -> None:
    """FatalError is valid from any state, also when no activity of that state yields it; the process ends (D10)."""
    stopped = running().give("session", session.FatalError("the disk is gone"))
    assert stopped.record("session").state is session.State.STOPPED
    assert stopped.entity("session").find("RunSession", Phase.ENDING) is not None
