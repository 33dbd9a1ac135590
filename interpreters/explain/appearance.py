"""What a worker is in the words of the documents: document 004's agent, document 001's status, and a word for screens.

They are derived and never stored, because the session, the assignment and the desired state decide everything. An agent
of document 004 is one process. A worker has one process after another. It is ``starting`` until its session runs, and
``working`` until the work is merged. It is ``idle`` between tasks, and ``dead`` when its session has stopped.

A screen adds what only the outside knows: the process, the time of its last sign, and whether a runner is at work.
"""

from typing import Final

import msgspec

from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.agent import State as Lifecycle
from lifefold.core.lifecycles.status import State as Status
from lifefold.core.policy import visual
from lifefold.core.policy.visual import Classification, Observation, VisualState

MERGES: Final = frozenset({assignment.State.PARKING, assignment.State.MERGING, assignment.State.DISPUTED})
"""In these states of its assignment the work of an agent is being committed or merged."""

MERGING: Final = "merging"
CLAIMED: Final = "claimed"
WAITING: Final = "waiting"


class Appearance(msgspec.Struct, frozen=True):
    """A worker in the words of the documents.

    ``lifecycle`` is the state of document 004's agent, ``status`` that of document 001. ``word`` is the status word
    that a screen classifies: the lifecycle, ``merging``, or ``claimed`` before a launch. ``launched_ms`` is the time of
    the present launch, Unix time in milliseconds; 0 if none is under way.
    """

    lifecycle: Lifecycle = Lifecycle.IDLE
    status: Status = Status.RUNNING
    word: str = "idle"
    launched_ms: int = 0


def appearance(worker: Aggregate) -> Appearance:
    """Return how a worker appears."""
    entity = worker.entities["session"]
    lifecycle = _lifecycle(worker)
    launches = entity.state is session.State.SPAWNING
    word = lifecycle.value
    if worker.record("assignment").state in MERGES:
        word = MERGING
    elif lifecycle is Lifecycle.STARTING and not launches:
        word = CLAIMED
    return Appearance(lifecycle, _status(worker), word, entity.entered_ms if launches else 0)


def _lifecycle(worker: Aggregate) -> Lifecycle:
    state, work = worker.record("session").state, worker.record("assignment").state
    if work in assignment.ON_ITS_WAY or state in {session.State.RUNNING, session.State.INTERRUPTING}:
        return Lifecycle.WORKING
    if state is session.State.STOPPED:
        return Lifecycle.DEAD
    if state in {session.State.INITIALIZING, session.State.SPAWNING} or work is assignment.State.PREPARING:
        return Lifecycle.STARTING
    return Lifecycle.IDLE


def _status(worker: Aggregate) -> Status:
    """Return document 001's status: an agent that has stopped without an order has failed."""
    if worker.record("session").state is not session.State.STOPPED:
        return Status.RUNNING
    stopped = worker.record("desired_state").state is desired_state.State.STOP
    return Status.STOPPED if stopped else Status.FAILED


def classify(  # noqa: PLR0913 - a fact each
    of: Appearance,
    now_ms: int,
    *,
    pid: int | None = None,
    sign_ms: int | None = None,
    runs: bool = True,
    is_stuck: bool = False,
) -> Classification:
    """Return the visual state of a worker at ``now_ms``, by the thresholds of the document.

    ``pid`` is the living process of its session, and ``sign_ms`` the time of the session's last output or heartbeat;
    each None if there is none. ``runs``: a runner is at work. It verifies and merges, so the work waits without one.
    ``is_stuck``: the stall detector has warned of its session. A running session is then stalled before the threshold.
    """
    found = _classified(of, now_ms, pid, sign_ms, runs=runs)
    return _STALLED if is_stuck and found.state is VisualState.RUNNING else found


_STALLED: Final = Classification(VisualState.STALLED, stalled=True)


def _classified(of: Appearance, now_ms: int, pid: int | None, sign_ms: int | None, *, runs: bool) -> Classification:
    if of.lifecycle is Lifecycle.WORKING and pid is None:
        word = of.word if runs else WAITING
        return visual.classify(Observation(word, now_ms, pid=_OF_THE_RUNNER), now_ms)
    began_ms = of.launched_ms or (now_ms if sign_ms is None else sign_ms)
    return visual.classify(Observation(of.word, began_ms, sign_ms, pid), now_ms)


_OF_THE_RUNNER: Final = 0
"""It stands for the process of the runner: that there is one decides, and not its number."""
