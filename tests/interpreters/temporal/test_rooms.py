"""The rooms of a host: an aggregate keeps its room between two activities, and no further one gets it."""

from lifefold.interpreters.temporal.rooms import Rooms

WAIT_S = 30.0


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def rooms(clock: Clock, capacity: int = 1, **pools: int) -> Rooms:
    """Return the rooms of a host with one pool, or with these."""
    return Rooms(pools or {"default": capacity}, capacity, WAIT_S, clock)


def test_an_aggregate_keeps_its_room_between_two_activities() -> None:
    """However long the pause is, no other aggregate gets the room before it is given back."""
    clock = Clock()
    host = rooms(clock)
    assert host.is_placed("a", "default")
    assert host.is_kept("a", "default")
    with host.at_work("a"):
        assert not host.is_placed("b", "default")
        assert host.idle() == []
    clock.now_s += 100 * WAIT_S
    assert host.idle() == ["a"]
    assert not host.is_placed("b", "default")
    assert not host.is_kept("b", "default")
    assert host.is_kept("a", "default")
    host.leave("a")
    assert host.is_placed("b", "default")
    assert not host.is_kept("a", "default")


def test_an_aggregate_at_work_does_not_leave() -> None:
    """Another activity of it may have been given to another host."""
    host = rooms(Clock())
    assert host.is_kept("a", "default")
    with host.at_work("a"):
        with host.at_work("a"):
            host.leave("a")
        host.leave("a")
        assert host.taken() == {"a"}
    host.leave("a")
    assert host.taken() == set()


def test_a_placed_aggregate_is_idle_when_no_work_arrives() -> None:
    """It was placed for an effect, or its work has been lost."""
    clock = Clock()
    host = rooms(clock)
    assert host.is_placed("a", "default")
    clock.now_s += WAIT_S
    assert host.idle() == []
    clock.now_s += 1
    assert host.idle() == ["a"]


def test_a_returning_aggregate_takes_a_room_of_its_pool() -> None:
    """Its workflow has kept the name of the host, and tells the pool. An earlier version does not tell it."""
    host = rooms(Clock(), 3, large=1, small=2)
    assert host.is_kept("a", "large")
    assert not host.is_kept("b", "large")
    assert host.is_kept("c", "")
    assert host.is_kept("d", "small")
    assert not host.is_kept("e", "small")
    assert list(host.pools()) == [("large", 1, 1), ("small", 2, 1)]
