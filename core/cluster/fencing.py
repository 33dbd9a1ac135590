"""The times of a cluster: when a host is lost, and when a session without word of its server must be over.

A host sends heartbeats for each session. The server takes a host for lost that it has not heard for the *detection
time*. The *fence* of a session counts from the time at which the last acknowledged heartbeat was **sent**. It
is earlier than the end of the detection time, which the server counts from the arrival of a heartbeat. So a session is
over before another host can have it, however late messages arrive. The rest of the detection time is for the end of the
session, and for clocks that do not run equally fast.

All times are of one clock that no operator sets, such as the time since boot. A clock that is wrong by a constant
changes nothing here.
"""

import msgspec


class Fencing(msgspec.Struct, frozen=True):
    """The times that follow from the detection time, in milliseconds."""

    detection_ms: int

    @property
    def lease_ms(self) -> int:
        """The time from the sending of an acknowledged heartbeat to the fence: 0.8 of the detection time."""
        return self.detection_ms * 8 // 10

    @property
    def grace_ms(self) -> int:
        """The time in which a session past its fence may end before it is killed: 0.1 of the detection time."""
        return self.detection_ms // 10

    @property
    def beat_ms(self) -> int:
        """The pause between two heartbeats: 0.2 of the detection time."""
        return self.detection_ms // 5

    def until_ms(self, sent_ms: int) -> int:
        """Return the fence after the acknowledgement of a heartbeat that was sent at this time."""
        return sent_ms + self.lease_ms

    def killed_ms(self, until_ms: int) -> int:
        """Return the time at which a session with this fence is killed, also if its host was frozen meanwhile."""
        return until_ms + self.grace_ms

    def is_lost(self, silent_ms: int) -> bool:
        """Tell whether the server takes a host for lost after this time without a heartbeat."""
        return silent_ms >= self.detection_ms


class Fence(msgspec.Struct, frozen=True):
    """The fence of one session. A fence moves to later times only, and never after it has passed."""

    until_ms: int
    has_passed: bool = False

    def moved(self, until_ms: int) -> "Fence":
        """Return the fence after an acknowledgement."""
        return self if self.has_passed else Fence(max(self.until_ms, until_ms))

    def seen_at(self, now_ms: int) -> "Fence":
        """Return the fence as it is at this time: a passed one has passed for good."""
        return Fence(self.until_ms, has_passed=self.has_passed or now_ms >= self.until_ms)
