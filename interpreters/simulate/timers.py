"""The timers of a runner: each elapses by the runner's clock, which may be wrong. They are lost with the runner."""

from typing import Final

from lifefold.core.kernel import Envelope, TimerFired
from lifefold.interpreters.simulate.inputs import Given, Taker
from lifefold.interpreters.simulate.scheduler import Agenda, Part, due


class Timers:
    """The set timers, by deadline."""

    def __init__(self, runner: Taker, agenda: Agenda) -> None:
        """Take the runner, and the agenda."""
        self._runner: Final = runner
        self._agenda: Final = agenda
        self._deadlines_ms: Final[dict[Part, int]] = {}
        self._overdue: Final[list[tuple[int, Part]]] = []
        """Timers that were due when they were set: the time, and the timer."""

    def start(self, part: Part, deadline_ms: int) -> None:
        """Set a timer."""
        self._deadlines_ms[part] = deadline_ms
        if deadline_ms > self._runner.clock_ms:
            self._arm(part, deadline_ms)
        else:
            self._overdue.append((deadline_ms, part))

    def cancel(self, part: Part) -> None:
        """Cancel a timer."""
        self._deadlines_ms.pop(part, None)

    def is_set(self, part: Part, deadline_ms: int) -> bool:
        """Tell whether a timer is set with this deadline."""
        return self._deadlines_ms.get(part) == deadline_ms

    def next_ms(self) -> int | None:
        """Return the deadline that is next by the runner's clock; None if no timer is set."""
        return min(self._deadlines_ms.values(), default=None)

    def clear(self) -> None:
        """Cancel all of them."""
        self._deadlines_ms.clear()
        self._overdue.clear()

    def arrange(self) -> None:
        """Schedule every timer by the present clock."""
        for part, deadline_ms in self._deadlines_ms.items():
            self._arm(part, deadline_ms)

    def arrange_overdue(self, *, is_back: bool) -> None:
        """Let timers that were due when they were set elapse after the effects beside them.

        Those of a runner that ``is_back`` also wait for messages that are sent again, and for their effects.
        """
        if self._overdue:
            how = self._put_off if is_back else self._elapse_overdue
            self._agenda.at(self._agenda.now_ms, how, self._runner.life)

    def _put_off(self, life: int) -> None:
        self._agenda.at(self._agenda.now_ms, self._elapse_overdue, life)

    def _elapse_overdue(self, life: int) -> None:
        if life != self._runner.life:
            return
        overdue = sorted(self._overdue)
        self._overdue.clear()
        for deadline_ms, part in overdue:
            self._elapse(life, part, deadline_ms)

    def _arm(self, part: Part, deadline_ms: int) -> None:
        at_ms = deadline_ms - self._runner.skew_ms
        self._agenda.at(at_ms, self._elapse, self._runner.life, part, deadline_ms, order=due(part))

    def _elapse(self, life: int, part: Part, deadline_ms: int) -> None:
        runner = self._runner
        if life != runner.life or self._deadlines_ms.get(part) != deadline_ms or runner.clock_ms < deadline_ms:
            return
        del self._deadlines_ms[part]
        name, ref, slot, generation = part
        runner.give([Given(name, Envelope(ref, TimerFired(slot, generation), runner.clock_ms, "timer"))])
