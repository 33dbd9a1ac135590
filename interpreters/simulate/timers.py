"""The timers of a runner: what elapses when by its clock, which may be wrong. They are gone with the runner."""

from typing import Final

from lifefold.core.kernel import Envelope, TimerFired
from lifefold.interpreters.simulate.inputs import Given, Taker
from lifefold.interpreters.simulate.scheduler import Agenda, Part, due


class Timers:
    """What was begun and has not elapsed, by its deadline."""

    def __init__(self, runner: Taker, agenda: Agenda) -> None:
        """Take whose they are, and who knows the time."""
        self._runner: Final = runner
        self._agenda: Final = agenda
        self._deadlines_ms: Final[dict[Part, int]] = {}
        self._overdue: Final[list[tuple[int, Part]]] = []
        """Timers that were due when they began: when, and which."""

    def start(self, part: Part, deadline_ms: int) -> None:
        """Begin a timer."""
        self._deadlines_ms[part] = deadline_ms
        if deadline_ms > self._runner.clock_ms:
            self._arm(part, deadline_ms)
        else:
            self._overdue.append((deadline_ms, part))

    def cancel(self, part: Part) -> None:
        """Let a timer be none."""
        self._deadlines_ms.pop(part, None)

    def is_set(self, part: Part, deadline_ms: int) -> bool:
        """Tell whether a timer is to elapse at this deadline."""
        return self._deadlines_ms.get(part) == deadline_ms

    def next_ms(self) -> int | None:
        """Return the deadline that is next by the runner's clock; None if no timer is set."""
        return min(self._deadlines_ms.values(), default=None)

    def clear(self) -> None:
        """Forget all of them."""
        self._deadlines_ms.clear()
        self._overdue.clear()

    def arrange(self) -> None:
        """Let every timer elapse when it is due by the clock as it is now."""
        for part, deadline_ms in self._deadlines_ms.items():
            self._arm(part, deadline_ms)

    def arrange_overdue(self, *, is_back: bool) -> None:
        """Let timers that were due when they began elapse as soon as what was asked for with them is done.

        Those of a runner that ``is_back`` wait for what is sent again, too, and for what that asks for.
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
