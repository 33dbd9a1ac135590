"""The records and events of a small cluster: hosts, leases, seats, and the world around them.

``leases`` has the table. The detection time is four ticks, so that the lease is three, by the rule of a real cluster.
"""

from enum import Enum
from typing import Any, Final

import msgspec

from lifefold.core.cluster.fencing import Fencing
from lifefold.core.kernel import Event, Record, State
from lifefold.effects import Activity

RULE: Final = Fencing(4)
"""The detection time is four ticks."""


class ClusterState(State):
    """Whether a session is left."""

    WORKING = "Working"
    SETTLED = "Settled"


class Condition(Enum):
    """The condition of a host."""

    UP = "up"
    FROZEN = "frozen"
    PARTED = "parted"
    KILLED = "killed"


class Way(Enum):
    """Where the heartbeat of a host for a session is."""

    NONE = "none"
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"


class Seat(msgspec.Struct, frozen=True):
    """One host's part of one session.

    ``request`` is what the daemon attends to, 0 for nothing. ``fence`` is the number of ticks until the fence, as far
    as acknowledgements have moved it. ``age`` is the number of ticks since the heartbeat on its way was sent.
    """

    request: int = 0
    runs: bool = False
    fence: int = 0
    way: Way = Way.NONE
    age: int = 0


class Lease(msgspec.Struct, frozen=True):
    """The server's part of one session: the present request, its host, and the ticks without a heartbeat."""

    request: int = 0
    host: int = -1
    silent: int = 0
    is_done: bool = False


class Host(msgspec.Struct, frozen=True):
    """A host, and whether it may still be interrupted."""

    condition: Condition = Condition.UP
    may_fail: bool = True


class Cluster(Record, frozen=True):
    """Hosts, leases, and the seats by host and session."""

    state: ClusterState = ClusterState.WORKING
    hosts: tuple[Host, ...] = (Host(), Host())
    leases: tuple[Lease, ...] = (Lease(),)
    seats: tuple[tuple[Seat, ...], ...] = ((Seat(),), (Seat(),))


class Passing(Activity, frozen=True):
    """Time, hosts, the server and the network: any of their events may be next."""


class Ticked(Event, frozen=True):
    """A tick has passed."""


class OfHost(Event, frozen=True):
    """Something happens to a host."""

    host: int = 0

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """Return one for each host."""
        return tuple(cls(host) for host in range(2))


class OfSeat(Event, frozen=True):
    """Something happens to a session at a host."""

    host: int = 0
    session: int = 0

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """Return one for each host, of the first session."""
        return cls(0), cls(1)

    @classmethod
    def examples_for(cls, record: Any) -> tuple[Any, ...]:
        """Return one for each host and session."""
        return tuple(cls(host, session) for host in range(2) for session in range(len(record.leases)))


class Froze(OfHost, frozen=True):
    """Nothing runs on the host for a while."""


class Parted(OfHost, frozen=True):
    """No message passes for a while."""


class DaemonDied(OfHost, frozen=True):
    """The daemon dies. Its sessions go on under their shims."""


class MachineDied(OfHost, frozen=True):
    """The machine dies with all processes."""


class WentOn(OfHost, frozen=True):
    """The host goes on, or a new daemon starts."""


class Placed(OfSeat, frozen=True):
    """The server gives the session to the host. A frozen host takes it, too, by a poll of before."""


class Beaten(OfSeat, frozen=True):
    """The host sends a heartbeat for the session."""


class Heard(OfSeat, frozen=True):
    """The heartbeat arrives, and the server answers."""


class Answered(OfSeat, frozen=True):
    """The answer arrives at the host."""


class Dropped(OfSeat, frozen=True):
    """The heartbeat or its answer is lost."""


class Started(OfSeat, frozen=True):
    """The host starts the session, or adopts one that runs there."""


class Finished(OfSeat, frozen=True):
    """The session ends by itself, and the server takes the report."""
