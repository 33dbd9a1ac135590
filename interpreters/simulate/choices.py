"""Named choices: all random decisions of a simulation, and nothing else.

A choice has a number of options, and option 0 is the *orderly* one: no fault, no delay, first come first served. A
seed decides how often and where another option is taken; these choices are the *deviations*. A run is given by its
seed, or by its deviations: with these alone and everything else orderly, the same run repeats. Shrinking relies on
that (see ``shrink``). A choice is identified by a name, not by its place in a sequence. So one deviation can be removed
without a change of the others.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

Name = tuple[str | int, ...]
"""The name of a choice: its kind, its subject, and its number."""

SPOKEN: Final = frozenset(
    {
        "operators",
        "to whom",
        "keen",
        "what keenly",
        "needless",
        "spares",
        "what",
        "which",
        "paused",
        "by",
        "early timer",
        "clock back",
    }
)
"""The kinds of choices for operator commands and for the clock.

The pause before the next opportunity (``when``, ``pause``) is none of these: a command can also come sooner.
"""


APART: Final = frozenset({"killed when waiting", "tears a line", "tells it late"})
"""The kinds of choices with random numbers of their own, so that they do not change the others of a seed."""


class Choices:
    """Makes choices. ``deviations`` has all that were not orderly, by their names, in order."""

    def __init__(self, seed: int | None = None, *, but: Mapping[Name, int] | None = None) -> None:
        """Draw from a seed; without one, everything is orderly ``but`` for these."""
        self.deviations: Final[dict[Name, int]] = {}
        self.made = 0
        self._draw = None if seed is None else random.Random(seed).random  # noqa: S311 - to be repeatable is its point
        self._draw_apart = None if seed is None else random.Random(f"{seed} apart").random  # noqa: S311 - the same
        self._but = but or {}

    @property
    def is_drawn(self) -> bool:
        """Whether choices are drawn at random, and not given."""
        return self._draw is not None

    def cast(self, sides: int, about: str = "") -> int:
        """Return a random number below ``sides``: it is drawn only, and is no deviation."""
        draw = self._drawn(about)
        return 0 if draw is None else int(draw() * sides)

    def _drawn(self, kind: int | str) -> Callable[[], float] | None:
        """Return the random numbers for choices of a kind."""
        return self._draw_apart if kind in APART else self._draw

    def any_way(self, name: Name, ways: int) -> int:
        """Return one of so many options, all equally likely."""
        return self.way(name, ways, (ways - 1) / ways)

    def one_of(self, name: Name, likely: Sequence[bool]) -> int:
        """Return one of so many options: when drawn, one of the likely ones, if there are any."""
        among = [place for place, each in enumerate(likely) if each]
        if self._draw is None or not among:
            return self.any_way(name, len(likely))
        self.made += 1
        chosen = among[int(self._draw() * len(among))]
        if chosen:
            self.deviations[name] = chosen
        return chosen

    def way(self, name: Name, ways: int, rate: float) -> int:
        """Return one of so many options: at this rate another one than the orderly one."""
        self.made += 1
        draw = self._drawn(name[0])
        if draw is None:
            chosen = min(self._but.get(name, 0), ways - 1)
        elif draw() < rate:
            chosen = 1 + int(draw() * (ways - 1)) if ways > 1 else 0
        else:
            return 0
        if chosen:
            self.deviations[name] = chosen
        return chosen

    def calm(self) -> None:
        """Let everything be orderly from now on."""
        self._draw = self._draw_apart = None
        self._but = {}
