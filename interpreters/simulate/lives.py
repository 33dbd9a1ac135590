"""The lives of a simulation's runner: at most one at a time, each on the log that the one before it has left."""

from abc import ABC, abstractmethod
from typing import Final

from lifefold.interpreters.simulate.scheduler import Agenda


class Lives(ABC):
    """A runner that ends, and starts again after a while."""

    def __init__(self, agenda: Agenda) -> None:
        """Begin without a runner."""
        self.is_up = False
        self.life = 0
        """The number of starts and ends of runners: events of an earlier life are ignored."""
        self.recovery_ms: Final[list[int]] = []
        """The duration of each time without a runner."""
        self._agenda: Final = agenda
        self._down_since_ms = 0
        self._full_until_ms = 0
        """The time from which the disk has room again."""

    def start(self) -> None:
        """Start a runner, if there is none, as soon as the disk has room."""
        if self.is_up:
            return
        if self._full_until_ms > self._agenda.now_ms:
            self._agenda.at(self._full_until_ms, self.start)
            return
        self.life += 1
        self.is_up = True
        if self.life > 1:
            self.recovery_ms.append(self._agenda.now_ms - self._down_since_ms)
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Continue at the end of the log."""

    def come_back(self) -> None:
        """Start a runner, if there is none, in spite of any fault."""
        self._full_until_ms = 0
        self._agenda.at(self._agenda.now_ms, self.start)

    def _go_down(self) -> None:
        """End this life."""
        self.life += 1
        self.is_up = False
        self._down_since_ms = self._agenda.now_ms

    def _start_in(self, took_ms: int) -> None:
        """Start the next runner after this time."""
        self._agenda.at(self._agenda.now_ms + took_ms, self.start)
