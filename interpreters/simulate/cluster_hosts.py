"""The hosts of a simulated cluster, their processes, and the children by which a server knows of them.

A host is interrupted in one of four ways: its machine dies, its daemon dies, it freezes, or its messages do not pass.
"""

from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Final

from lifefold.core.cluster.fencing import Fence
from lifefold.core.kernel import Event
from lifefold.interpreters.simulate.choices import Name
from lifefold.interpreters.simulate.environment import Chance, Said
from lifefold.interpreters.simulate.scheduler import WAITED, Agenda, Part, Process

AWAY_MS: Final = (100, 60_000)
"""The time until an interrupted host goes on; a hundred times as long if it is slow."""

QUIET_MS: Final = (1_000, 1_200_000)
"""The time between two opportunities to interrupt a host, beside those at its steps."""

SKEW_MS: Final = (1_000, 600_000)
"""The error of a wrong clock of a host."""


class Condition(Enum):
    """The condition of a host, by the name of its fault. ``DIED`` ends all its processes, ``KILLED`` its daemon."""

    AT_WORK = "at work"
    DIED = "host dies"
    KILLED = "host daemon killed"
    FROZEN = "host frozen"
    PARTED = "host partitioned"


class Host:
    """One machine with its daemon."""

    __slots__ = ("attends", "condition", "deferred", "name", "skew_ms")

    def __init__(self, name: str, skew_ms: int) -> None:
        """Begin at work."""
        self.name = name
        self.condition = Condition.AT_WORK
        self.skew_ms = skew_ms
        """The error of its clock: its reports have this time, and the brain gives them its own."""
        self.attends: list[Child] = []
        """What its daemon attends to, also what the server has ended meanwhile."""
        self.deferred: list[Callable[[], None]] = []
        """What it does first when it goes on after a freeze."""

    @property
    def is_at_work(self) -> bool:
        """Whether it runs and its messages pass."""
        return self.condition is Condition.AT_WORK

    @property
    def is_frozen(self) -> bool:
        """Whether nothing runs on it now, and all of it will go on."""
        return self.condition is Condition.FROZEN

    @property
    def has_daemon(self) -> bool:
        """Whether its daemon lives, frozen or not."""
        return self.condition not in {Condition.DIED, Condition.KILLED}


class HostedProcess(Process):
    """A process on a host. One with a fence outlives the daemon of its host until then."""

    __slots__ = ("ends", "fence", "host", "part")

    def __init__(
        self, part: Part, host: Host, said: list[Said], ends: tuple[type[Event], ...], fence: Fence | None
    ) -> None:
        """Begin now. ``ends`` are the events with which it exits."""
        super().__init__(said)
        self.part = part
        self.host = host
        self.ends = ends
        self.fence = fence

    @property
    def lives(self) -> bool:
        """Whether it has neither exited nor been ended."""
        has_exited = 0 < self.spoken == len(self.said) and isinstance(self.said[-1].event, self.ends)
        return not self.is_over and not has_exited

    @property
    def runs(self) -> bool:
        """Whether it lives and is not frozen."""
        return self.lives and not self.host.is_frozen


class Child:
    """One request to attend to an activity, as the server knows it: a child workflow of a real cluster."""

    __slots__ = (
        "deadline_ms", "heard_ms", "host", "is_acknowledged", "is_ending", "is_left", "is_over", "number", "part",
        "process", "sent_ms", "since_ms", "until_ms",
    )  # fmt: skip

    def __init__(self, part: Part, number: int, now_ms: int, *, is_ending: bool) -> None:
        """Wait for a host. With ``is_ending`` it ends what is left of the activity."""
        self.part = part
        self.number = number
        self.since_ms = self.sent_ms = self.heard_ms = now_ms
        """Since when it waits; when its first heartbeat was sent, and when it arrived."""
        self.host: Host | None = None
        self.process: HostedProcess | None = None
        self.is_ending = is_ending
        self.is_acknowledged = False
        self.is_left = False
        """Whether its host attends to it no more, and the server does not know."""
        self.is_over = False
        """Whether the server has ended it: its host counts as lost, or the activity has ended."""
        self.until_ms = 0
        """The fence by the last acknowledgement that the host has got."""
        self.deadline_ms: int | None = None
        """When the server takes its host for lost; None while heartbeats come."""

    @property
    def is_attended(self) -> bool:
        """Whether a host at work attends to it, after the server has acknowledged that."""
        return self.host is not None and self.host.is_at_work and self.is_acknowledged and not self.is_left


class Weather:
    """Interrupts hosts and lets them go on, as a run has its faults."""

    def __init__(
        self,
        count: int,
        agenda: Agenda,
        chance: Chance,
        interrupted: Callable[[Host], None],
        returned: Callable[[Host, Condition], None],
    ) -> None:
        """Take the number of hosts, and what is called after each change of a host."""
        names = [f"host-{number}" for number in range(1, count + 1)]
        self.hosts: Final = [Host(name, self._skew_ms(name, chance)) for name in names]
        self._agenda: Final = agenda
        self._chance: Final = chance
        self._interrupted: Final = interrupted
        self._returned: Final = returned
        self._count = 0
        self._named: Final[Counter[Name]] = Counter()
        for host in self.hosts:
            self._wait(host, 0)

    @staticmethod
    def _skew_ms(name: str, chance: Chance) -> int:
        if not chance.strikes("host with a wrong clock", name):
            return 0
        sign = 1 - 2 * chance.choices.any_way(("host is behind", name), 2)
        return sign * chance.takes_ms(SKEW_MS, "host is wrong by", name)

    def _wait(self, host: Host, number: int) -> None:
        quiet_ms = self._chance.takes_ms(QUIET_MS, "until the next interruption", host.name, number)
        self._agenda.at(self._agenda.now_ms + quiet_ms, self._tick, host, number + 1, order=WAITED)

    def _tick(self, host: Host, number: int) -> None:
        if not self._chance.is_calm:
            self.may_interrupt(host, "by itself", number)
            self._wait(host, number)

    def may_interrupt(self, host: Host, *step: str | int) -> None:
        """Perhaps interrupt a host that is at work, at this step."""
        nth = self.nth(host.name, *step)
        for condition in Condition:
            is_struck = condition is not Condition.AT_WORK and host.is_at_work
            if is_struck and self._chance.strikes(condition.value, host.name, *step, nth):
                self._interrupt(host, condition)

    def nth(self, *name: str | int) -> int:
        """Return how often this was called with a name before: so choices of one name can be told apart."""
        self._named[name] += 1
        return self._named[name] - 1

    def _interrupt(self, host: Host, condition: Condition) -> None:
        self._count += 1
        host.condition = condition
        self._interrupted(host)
        away_ms = self._chance.takes_ms(AWAY_MS, "host is away", host.name, self._count)
        self._agenda.at(self._agenda.now_ms + away_ms, self._go_on, host, order=WAITED)

    def _go_on(self, host: Host) -> None:
        if not host.is_at_work:
            before, host.condition = host.condition, Condition.AT_WORK
            self._returned(host, before)

    def heal(self) -> None:
        """Let all hosts go on, with the right time."""
        for host in self.hosts:
            host.skew_ms = 0
            self._go_on(host)
