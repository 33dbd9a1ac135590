"""How a worker appears: the words of documents 001 and 004 for it, and its visual state."""

import pytest

from aggregate_hand import Hand
from fleet_worker import (
    cooling,
    interrupting,
    merging,
    opened,
    preparing,
    running,
    spawning,
    verifying,
    wanting,
)
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.agent import State as Lifecycle
from lifefold.core.lifecycles.status import State as Status
from lifefold.core.policy.visual import VisualState
from lifefold.interpreters.explain.appearance import Appearance, appearance, classify


def stopped() -> Hand:
    """Return a worker that an operator has stopped."""
    return running().give("desired_state", desired_state.StopWanted("enough"))


def fallen() -> Hand:
    """Return a worker that has stopped by its errors."""
    return opened(session.Limits(max_consecutive_errors=1)).report(
        "session", "PrepareWorktree", session.FatalError("no worktree: disk full")
    )


def parking() -> Hand:
    """Return a worker whose work is kept for an approval."""
    of = merging()
    return of.report("assignment", "MergeWork", assignment.Merged("c0ffee"))


@pytest.mark.parametrize(
    ("of", "lifecycle", "status", "word"),
    [
        (opened(), Lifecycle.STARTING, Status.RUNNING, "claimed"),
        (wanting(), Lifecycle.IDLE, Status.RUNNING, "idle"),
        (preparing(), Lifecycle.STARTING, Status.RUNNING, "claimed"),
        (spawning(), Lifecycle.STARTING, Status.RUNNING, "starting"),
        (running(), Lifecycle.WORKING, Status.RUNNING, "working"),
        (interrupting(), Lifecycle.WORKING, Status.RUNNING, "working"),
        (verifying(), Lifecycle.WORKING, Status.RUNNING, "working"),
        (merging(), Lifecycle.WORKING, Status.RUNNING, "merging"),
        (parking(), Lifecycle.IDLE, Status.RUNNING, "idle"),
        (cooling(), Lifecycle.IDLE, Status.RUNNING, "idle"),
        (stopped(), Lifecycle.DEAD, Status.STOPPED, "dead"),
        (fallen(), Lifecycle.DEAD, Status.FAILED, "dead"),
    ],
)
def test_a_worker_has_the_words_of_the_documents(of: Hand, lifecycle: Lifecycle, status: Status, word: str) -> None:
    """At every moment of a task."""
    seen = appearance(of.aggregate)
    assert (seen.lifecycle, seen.status, seen.word) == (lifecycle, status, word)


def test_a_launch_has_its_time() -> None:
    """The screen gives it up by the document's time-out, and no worktree that takes long."""
    of = preparing()
    of.now_ms = 7
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    launched = appearance(of.aggregate)
    assert launched.launched_ms == 7
    assert classify(launched, 60_007).state is VisualState.SPAWNING
    assert classify(launched, 60_008).state is VisualState.DEAD
    assert classify(appearance(preparing().aggregate), 3_600_000).state is VisualState.SPAWNING


WORKING = Appearance(Lifecycle.WORKING, word="working")
MERGING = Appearance(Lifecycle.WORKING, word="merging")


def test_a_session_is_stalled_after_the_silence_of_the_document() -> None:
    """The last output or heartbeat counts, by the time of its file."""
    now_ms = 1_000_000
    assert classify(WORKING, now_ms, pid=9, sign_ms=now_ms - 300_000).state is VisualState.RUNNING
    silent = classify(WORKING, now_ms, pid=9, sign_ms=now_ms - 300_001)
    assert (silent.state, silent.stalled) == (VisualState.STALLED, True)


@pytest.mark.parametrize(
    ("of", "state"),
    [
        (WORKING, VisualState.STALLED),
        (MERGING, VisualState.MERGING),
        (Appearance(Lifecycle.IDLE, word="idle"), VisualState.IDLE),
        (Appearance(Lifecycle.DEAD, word="dead"), VisualState.DEAD),
    ],
)
def test_only_a_running_session_is_stalled_by_a_warning(of: Appearance, state: VisualState) -> None:
    """A late warning paints no other state over."""
    assert classify(of, 5, pid=9, sign_ms=5, is_stuck=True).state is state


def test_work_without_a_session_is_that_of_the_runner() -> None:
    """Verified and merged by a runner; without one it waits."""
    assert classify(WORKING, 5).state is VisualState.RUNNING
    assert classify(MERGING, 5).state is VisualState.MERGING
    assert classify(MERGING, 5, runs=False).state is VisualState.IDLE


@pytest.mark.parametrize(("lifecycle", "state"), [("idle", VisualState.IDLE), ("dead", VisualState.DEAD)])
def test_an_agent_without_work_is_idle_or_dead(lifecycle: str, state: VisualState) -> None:
    """Whatever the outside says."""
    assert classify(Appearance(Lifecycle(lifecycle), word=lifecycle), 5, pid=9, sign_ms=1).state is state
