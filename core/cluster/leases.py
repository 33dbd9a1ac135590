"""A small cluster: who holds each session, and when a session must be over. Two hosts, sessions, counted time.

A server gives each session to a host, for a *request*. The host asks the server by a heartbeat before it starts the
session, and sends further ones while it runs. A host that the server has not heard for the detection time is lost, and
another host gets the next request. The shim of a session ends it at its fence.

Time passes in ticks, and messages take any time. The detection time is four ticks here, so that the lease is three, by
the same rule as in a real cluster (``fencing``). Each host is interrupted once: it freezes, its messages do not pass,
its daemon dies, or its machine. Any heartbeat, acknowledgement or refusal may be lost.

The model leaves out the grace between fence and kill, which the rest of the detection time covers, and clocks that run
at different speeds. A shim that is not frozen acts within the tick of its fence. A machine that goes on after a freeze
ends what is past its fence before an agent takes a step.
"""

from typing import Any, Final, Never

from lifefold.core.cluster.fencing import Fence
from lifefold.core.cluster.lease_model import (
    RULE,
    Answered,
    Beaten,
    Cluster,
    ClusterState,
    Condition,
    DaemonDied,
    Dropped,
    Finished,
    Froze,
    Heard,
    Host,
    Lease,
    MachineDied,
    OfHost,
    OfSeat,
    Parted,
    Passing,
    Placed,
    Seat,
    Started,
    Ticked,
    Way,
    WentOn,
)
from lifefold.core.kernel import (
    Machine,
    Property,
    Row,
    Step,
    Transition,
    always,
    always_step,
    does,
    replace,
    row,
    sometimes,
)


def _seat(c: Cluster, e: OfSeat) -> Seat:
    return c.seats[e.host][e.session]


def _at(c: Cluster, e: OfSeat, seat: Seat) -> Cluster:
    ours = tuple(seat if at == e.session else each for at, each in enumerate(c.seats[e.host]))
    return replace(c, seats=tuple(ours if at == e.host else each for at, each in enumerate(c.seats)))


def _leased(c: Cluster, e: OfSeat, lease: Lease) -> Cluster:
    return replace(c, leases=tuple(lease if at == e.session else each for at, each in enumerate(c.leases)))


def _is_up(c: Cluster, e: OfSeat) -> bool:
    return c.hosts[e.host].condition is Condition.UP


def _with_host(c: Cluster, e: OfHost, condition: Condition, seats: tuple[Seat, ...]) -> Step[Cluster, Never]:
    host = Host(condition, may_fail=False)
    hosts = tuple(host if at == e.host else each for at, each in enumerate(c.hosts))
    every = tuple(seats if at == e.host else each for at, each in enumerate(c.seats))
    return Step(replace(c, hosts=hosts, seats=every))


def _after_tick(seat: Seat, host: Host) -> Seat:
    fence, is_frozen = max(0, seat.fence - 1), host.condition is Condition.FROZEN
    runs = seat.runs and (is_frozen or not Fence(fence).seen_at(0).has_passed)
    if not runs and seat.request == 0:
        return Seat()
    is_on_its_way = seat.way is not Way.NONE and seat.age + 1 < RULE.lease_ms
    way, age = (seat.way, seat.age + 1) if is_on_its_way else (Way.NONE, 0)
    return Seat(seat.request, runs, fence, way, age)


def _after_silence(lease: Lease) -> Lease:
    if lease.host < 0:
        return lease
    silent = lease.silent + 1
    return Lease(lease.request) if RULE.is_lost(silent) else Lease(lease.request, lease.host, silent)


def tick(c: Cluster, _e: Ticked) -> Step[Cluster, Never]:
    """Move all clocks: fences pass, and hosts without a heartbeat are lost."""
    seats = tuple(tuple(_after_tick(seat, host) for seat in ours) for host, ours in zip(c.hosts, c.seats, strict=True))
    return Step(replace(c, seats=seats, leases=tuple(_after_silence(each) for each in c.leases)))


def may_fail(c: Cluster, e: OfHost) -> bool:
    """Tell whether the host was not interrupted yet."""
    return c.hosts[e.host].may_fail


def freeze(c: Cluster, e: Froze) -> Step[Cluster, Never]:
    """Let nothing run there."""
    return _with_host(c, e, Condition.FROZEN, c.seats[e.host])


def part(c: Cluster, e: Parted) -> Step[Cluster, Never]:
    """Let no message pass; what is on its way may arrive late, or is lost."""
    return _with_host(c, e, Condition.PARTED, c.seats[e.host])


def kill(c: Cluster, e: DaemonDied) -> Step[Cluster, Never]:
    """Attend to nothing. A session that was not started yet is none."""
    left = tuple(Seat(runs=each.runs, fence=each.fence if each.runs else 0) for each in c.seats[e.host])
    return _with_host(c, e, Condition.KILLED, left)


def die(c: Cluster, e: MachineDied) -> Step[Cluster, Never]:
    """Let nothing be left."""
    return _with_host(c, e, Condition.KILLED, tuple(Seat() for _ in c.leases))


def is_away(c: Cluster, e: WentOn) -> bool:
    """Tell whether the host is interrupted."""
    return c.hosts[e.host].condition is not Condition.UP


def go_on(c: Cluster, e: WentOn) -> Step[Cluster, Never]:
    """Let the shims look at the clock first: what is past its fence is ended."""
    seats = tuple(
        replace(each, runs=each.runs and not Fence(each.fence).seen_at(0).has_passed) for each in c.seats[e.host]
    )
    return _with_host(c, e, Condition.UP, seats)


def may_be_placed(c: Cluster, e: Placed) -> bool:
    """Tell whether the session needs a host, and this one takes it."""
    lease, seat, host = c.leases[e.session], _seat(c, e), c.hosts[e.host]
    is_free = lease.host < 0 and not lease.is_done
    return is_free and seat.request == 0 and host.condition in {Condition.UP, Condition.FROZEN}


def place(c: Cluster, e: Placed) -> Step[Cluster, Never]:
    """Make a new request."""
    lease = Lease(c.leases[e.session].request + 1, e.host)
    return Step(_at(_leased(c, e, lease), e, replace(_seat(c, e), request=lease.request)))


def may_beat(c: Cluster, e: Beaten) -> bool:
    """Tell whether the host attends to the session, and no heartbeat is on its way."""
    seat = _seat(c, e)
    return _is_up(c, e) and seat.request > 0 and seat.way is Way.NONE


def beat(c: Cluster, e: Beaten) -> Step[Cluster, Never]:
    """Send a heartbeat."""
    return Step(_at(c, e, replace(_seat(c, e), way=Way.SENT, age=0)))


def may_be_heard(c: Cluster, e: Heard) -> bool:
    """Tell whether a heartbeat is on its way, and messages pass."""
    return _seat(c, e).way is Way.SENT and c.hosts[e.host].condition is not Condition.PARTED


def hear(c: Cluster, e: Heard) -> Step[Cluster, Never]:
    """Acknowledge a heartbeat for the present request, and refuse another one."""
    seat, lease = _seat(c, e), c.leases[e.session]
    if (lease.request, lease.host) != (seat.request, e.host):
        return Step(_at(c, e, replace(seat, way=Way.REFUSED)))
    return Step(_at(_leased(c, e, replace(lease, silent=0)), e, replace(seat, way=Way.ACKNOWLEDGED)))


def may_be_answered(c: Cluster, e: Answered) -> bool:
    """Tell whether an answer is on its way, and the host can take it."""
    return _is_up(c, e) and _seat(c, e).way in {Way.ACKNOWLEDGED, Way.REFUSED}


def answer(c: Cluster, e: Answered) -> Step[Cluster, Never]:
    """Move the fence, or attend no more. A session that runs has its fence until then."""
    seat = _seat(c, e)
    if seat.way is Way.REFUSED:
        return Step(_at(c, e, Seat(runs=seat.runs, fence=seat.fence if seat.runs else 0)))
    until = RULE.until_ms(-seat.age)
    fence = Fence(seat.fence).moved(until).until_ms
    return Step(_at(c, e, Seat(seat.request, seat.runs, max(0, fence))))


def is_on_its_way(c: Cluster, e: Dropped) -> bool:
    """Tell whether a heartbeat or an answer is on its way."""
    return _seat(c, e).way is not Way.NONE


def drop(c: Cluster, e: Dropped) -> Step[Cluster, Never]:
    """Lose it. The host sends another heartbeat."""
    return Step(_at(c, e, replace(_seat(c, e), way=Way.NONE, age=0)))


def may_start(c: Cluster, e: Started) -> bool:
    """Tell whether the host attends to a session that does not run, with a fence ahead."""
    seat = _seat(c, e)
    can_run = c.hosts[e.host].condition in {Condition.UP, Condition.PARTED}
    return can_run and seat.request > 0 and not seat.runs and not Fence(seat.fence).seen_at(0).has_passed


def start(c: Cluster, e: Started) -> Step[Cluster, Never]:
    """Start the session."""
    return Step(_at(c, e, replace(_seat(c, e), runs=True)))


def may_finish(c: Cluster, e: Finished) -> bool:
    """Tell whether the session runs, and the server takes the report of its host."""
    seat, lease = _seat(c, e), c.leases[e.session]
    return _is_up(c, e) and seat.runs and (seat.request, e.host) == (lease.request, lease.host)


def is_last(c: Cluster, e: Finished) -> bool:
    """Tell whether all other sessions are done."""
    return may_finish(c, e) and all(each.is_done for at, each in enumerate(c.leases) if at != e.session)


def finish(c: Cluster, e: Finished) -> Step[Cluster, Never]:
    """Note that the session is done. Nothing of it is left at this host."""
    return Step(_at(_leased(c, e, Lease(is_done=True)), e, Seat()))


WORKING: Final = ClusterState.WORKING

ROWS: Final[tuple[Row[Cluster], ...]] = (
    row(WORKING, Ticked, WORKING, tick),
    row(WORKING, Froze, WORKING, freeze, when=may_fail),
    row(WORKING, Parted, WORKING, part, when=may_fail),
    row(WORKING, DaemonDied, WORKING, kill, when=may_fail),
    row(WORKING, MachineDied, WORKING, die, when=may_fail),
    row(WORKING, WentOn, WORKING, go_on, when=is_away),
    row(WORKING, Placed, WORKING, place, when=may_be_placed),
    row(WORKING, Beaten, WORKING, beat, when=may_beat),
    row(WORKING, Heard, WORKING, hear, when=may_be_heard),
    row(WORKING, Answered, WORKING, answer, when=may_be_answered),
    row(WORKING, Dropped, WORKING, drop, when=is_on_its_way),
    row(WORKING, Started, WORKING, start, when=may_start),
    row(WORKING, Finished, ClusterState.SETTLED, finish, when=is_last),
)
"""The rows of one session."""

ONE_OF_SEVERAL: Final = row(WORKING, Finished, WORKING, finish, when=may_finish)
"""The row of a session that ends before another one does."""


def passing(_c: Cluster) -> Passing:
    """Return the world around the leases."""
    return Passing()


def running(c: Cluster, session: int) -> int:
    """Return how many processes of a session run, and are not frozen."""
    hosts = zip(c.hosts, c.seats, strict=True)
    return sum(ours[session].runs and host.condition is not Condition.FROZEN for host, ours in hosts)


def runs_once(c: Cluster) -> bool:
    """Tell whether no session runs at two hosts."""
    return all(running(c, session) <= 1 for session in range(len(c.leases)))


def _starts_for_the_present_request(step: Transition) -> bool:
    e = step.event
    assert isinstance(e, Started)  # noqa: S101 - the property is on this event
    lease = step.was.leases[e.session]
    return bool((lease.request, lease.host) == (step.was.seats[e.host][e.session].request, e.host))


def _has_moved(c: Cluster) -> bool:
    """Tell whether a session of a host that was lost runs at the other one."""
    return any(
        lease.request > 1 and lease.host >= 0 and c.seats[lease.host][session].runs
        for session, lease in enumerate(c.leases)
    )


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always("a session runs once at a time", lambda e: runs_once(e.record)),
    always_step("a session starts for the present request only", _starts_for_the_present_request, on=Started),
    always_step(
        "a host goes on with nothing that another host has",
        lambda step: runs_once(step.after.record),
        on=WentOn,
    ),
    sometimes("a session runs at another host after a loss", lambda e: _has_moved(e.record)),
    sometimes("all sessions are done", lambda e: e.record.state is ClusterState.SETTLED),
)


def leases_of(sessions: int) -> Machine[Cluster]:
    """Return the machine of so many sessions at two hosts."""
    rows = ROWS if sessions == 1 else (*ROWS, ONE_OF_SEVERAL)
    return Machine(
        "host-leases",
        Cluster(leases=sessions * (Lease(),), seats=2 * (sessions * (Seat(),),)),
        about="the lease of a session at two hosts, which freeze, are cut off or die",
        rows=rows,
        final={ClusterState.SETTLED},
        during={WORKING: does(passing, yields=tuple(dict.fromkeys(each.event for each in rows)))},
        properties=PROPERTIES,
    )


machine = leases_of(1)
