"""The values that go through Temporal: references into the log, envelopes as JSON text, and settings.

The log is the truth. Temporal keeps versions, inputs that are not decided yet, deadlines, and the names of children.
"""

from datetime import timedelta
from typing import Final, TypeAlias

import msgspec

from lifefold.core.cluster.fencing import Fencing

FENCED: Final = "another host attends to this activity"
"""The answer to a report for a child workflow that has ended."""

BATCH_LIMIT: Final = 50
"""The largest number of inputs in one commit."""

LEAST_DETECTION_MS: Final = 1_000


TASK_TIMEOUT: Final = timedelta(seconds=5)
"""How long the server waits for a step of a workflow that a brain has taken, before another brain gets it.

It is a limit to the time of one step in the process of the brain. A commit that waits for the log is none of it: the
library renews the task meanwhile.
"""


class Times(msgspec.Struct, frozen=True):
    """The times of a cluster, in milliseconds, and the length of a history after which a workflow continues as new.

    ``detection_ms``: a host without a heartbeat for this time is lost. ``history_events`` of 0 leaves it to the server.
    """

    detection_ms: int = 30_000
    history_events: int = 0

    def __post_init__(self) -> None:
        """Check the numbers. Raises ``ValueError``."""
        if self.detection_ms < LEAST_DETECTION_MS or self.history_events < 0:
            raise ValueError(f"detection_ms is at least {LEAST_DETECTION_MS}, and history_events at least 0")

    @property
    def fencing(self) -> Fencing:
        """The rule of the times of fences."""
        return Fencing(self.detection_ms)

    @property
    def lease_ms(self) -> int:
        """How long a session goes on after the last acknowledged heartbeat was sent: 0.8 of the detection time."""
        return self.fencing.lease_ms

    @property
    def beat_ms(self) -> int:
        """The pause between two heartbeats."""
        return self.fencing.beat_ms


class Slot(msgspec.Struct, frozen=True):
    """The identity of an activity or timer in its aggregate."""

    entity: str
    slot: str
    generation: int


class Place(msgspec.Struct, frozen=True):
    """The position of a requested effect in the log of its aggregate."""

    version: int
    index: int


class Started(msgspec.Struct, frozen=True, tag=True):
    """An activity is to begin."""

    of: Slot
    at: Place


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """An activity is to end."""

    of: Slot
    at: Place


class TimerSet(msgspec.Struct, frozen=True, tag=True):
    """A timer is to fire at ``deadline_ms``, which is ``left_ms`` from the commit, both by the clock of the brain."""

    of: Slot
    deadline_ms: int
    left_ms: int


class TimerCancelled(msgspec.Struct, frozen=True, tag=True):
    """A timer is not to fire."""

    of: Slot


class Requested(msgspec.Struct, frozen=True, tag=True):
    """Any other effect is to be performed."""

    at: Place


class Told(msgspec.Struct, frozen=True, tag=True):
    """A message for another aggregate: its envelope as JSON."""

    receiver: str
    envelope: str


Wanted: TypeAlias = Started | Stopped | TimerSet | TimerCancelled | Requested | Told


class Due(msgspec.Struct, frozen=True):
    """A timer whose time has come by the clock of the workflow."""

    of: Slot
    deadline_ms: int


class Opening(msgspec.Struct, frozen=True):
    """The question at the start of the workflow of an aggregate."""

    aggregate: str


class Commit(msgspec.Struct, frozen=True):
    """Inputs to decide on. The workflow knows all entries up to ``after``.

    All effects up to the version ``performed`` are performed.
    """

    aggregate: str
    after: int
    performed: int
    inputs: tuple[str, ...] = ()
    due: tuple[Due, ...] = ()


class Committed(msgspec.Struct, frozen=True):
    """The newest version, and all that is wanted by the entries after the one that the workflow knew.

    ``answers`` has a text for each input: empty for an accepted one, otherwise the reason of the refusal. ``early`` has
    the timers that are not due by the clock of the brain.
    """

    version: int
    wanted: tuple[Wanted, ...] = ()
    answers: tuple[str, ...] = ()
    early: tuple[TimerSet, ...] = ()


class Opened(msgspec.Struct, frozen=True):
    """What a log has of an aggregate whose workflow begins. ``recovery`` is an envelope, or empty."""

    committed: Committed
    pool: str
    recovery: str = ""


NO_ROOM: Final = "no room"
"""The type of the error with which a full host gives an activity back that has not begun."""


class Attend(msgspec.Struct, frozen=True):
    """The work of a child workflow: attend to an activity of ``aggregate``, requested at ``at``, on ``queue``.

    ``pool`` is the pool of the aggregate; empty from the loop of an earlier version.
    """

    fleet: str
    aggregate: str
    of: Slot
    at: Place
    queue: str
    times: Times
    pool: str = ""


class Gone(msgspec.Struct, frozen=True):
    """The end of a child workflow, whose activity was on ``queue``.

    ``is_lost``: no host says what became of the activity. ``has_ended``: its host has ended it because it was asked to.
    ``begins``: its host had no room for it, and nothing has begun. It is still to begin, by the entry at this place.
    """

    child: str
    queue: str
    is_lost: bool = False
    has_ended: bool = False
    begins: Place | None = None


class Report(msgspec.Struct, frozen=True):
    """An input whose sender waits for the answer. ``child`` is the child workflow for which a host reports, if any."""

    envelope: str
    child: str = ""


class Perform(msgspec.Struct, frozen=True):
    """An effect to perform."""

    aggregate: str
    at: Place


class Child(msgspec.Struct, frozen=True):
    """A running child workflow. ``is_ending``: its end is wanted, by the effect at ``end``."""

    of: Slot
    id: str
    is_ending: bool = False
    end: Place = Place(0, 0)


class Start(msgspec.Struct, frozen=True):
    """A child workflow that is to be started. ``again``: a full host has given its activity back before."""

    of: Slot
    at: Place
    again: bool = False


class State(msgspec.Struct, frozen=True):
    """All that the workflow of an aggregate carries over when it continues as new.

    ``starts`` are the children that wait for a host. ``timers`` have their due time by the clock of the workflow, in
    milliseconds. ``host`` is empty without a placement.
    """

    fleet: str
    aggregate: str
    times: Times = Times()
    is_open: bool = False
    pool: str = ""
    after: int = 0
    pending: tuple[Place, ...] = ()
    inbox: tuple[str, ...] = ()
    timers: tuple[tuple[Due, int], ...] = ()
    children: tuple[Child, ...] = ()
    starts: tuple[Start, ...] = ()
    host: str = ""


def aggregate_id(fleet: str, aggregate: str) -> str:
    """Return the identity of the workflow of an aggregate."""
    return f"aggregate:{fleet}:{aggregate}"


def child_id(fleet: str, aggregate: str, of: Slot, at: Place) -> str:
    """Return the identity of the workflow that attends to an activity: each request has its own."""
    return f"{child_ids(fleet)}{aggregate}:{of.entity}:{of.slot}:{of.generation}:{at.version}.{at.index}"


def child_ids(fleet: str) -> str:
    """Return the begin of the identities of all workflows of a fleet that attend to activities."""
    return f"session:{fleet}:"


def brain_queue(fleet: str) -> str:
    """Return the task queue of workflows and commits."""
    return f"brain:{fleet}"


def pool_queue(fleet: str, pool: str) -> str:
    """Return the task queue that all hosts of a pool share."""
    return f"pool:{fleet}:{pool}"


def host_queue(fleet: str, host: str) -> str:
    """Return the task queue of one host."""
    return f"host:{fleet}:{host}"
