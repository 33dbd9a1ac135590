"""Everything that chance decides in a simulation, and nothing else does: each choice is known by its name.

A choice says how many ways there are, and way 0 is the *orderly* one: nothing goes wrong, nothing takes long, whatever
came first goes first. A seed decides how often, and where, it is another one; those are the *deviations*. A run is its
seed, or just as well its deviations: with these alone, and everything else orderly, it is the same run again, and that
is what makes it small (see ``shrink``). Names, not places in a sequence, say which choice is meant, so that leaving one
deviation out does not change what the others are about.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

Name = tuple[str | int, ...]
"""What is decided: what kind of choice it is, about whom, and its how-manieth."""

SPOKEN: Final = frozenset(
    {
        "people",
        "to whom",
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
"""The kinds of choices that are made on the occasions on which people say something, and the clock is set.

How long they wait until the next occasion (``when``, ``pause``) is none of these: they can say it sooner all the same.
"""


APART: Final = frozenset({"killed when waiting"})
"""The kinds of choices that are drawn by themselves, so that the others of a seed are as they would be without them."""


class Choices:
    """Makes choices. ``deviations`` has all that were not orderly, by their names, in the order in which they fell."""

    def __init__(self, seed: int | None = None, *, but: Mapping[Name, int] | None = None) -> None:
        """Draw by a seed; without one, everything is orderly ``but`` for these."""
        self.deviations: Final[dict[Name, int]] = {}
        self.made = 0
        self._draw = None if seed is None else random.Random(seed).random  # noqa: S311 - to be repeatable is its point
        self._draw_apart = None if seed is None else random.Random(f"{seed} apart").random  # noqa: S311 - the same
        self._but = but or {}

    @property
    def is_drawn(self) -> bool:
        """Whether chance decides, and not what was said."""
        return self._draw is not None

    def cast(self, sides: int, about: str = "") -> int:
        """Return one of so many numbers: no deviation, and never said, but only drawn."""
        draw = self._drawn(about)
        return 0 if draw is None else int(draw() * sides)

    def _drawn(self, kind: int | str) -> Callable[[], float] | None:
        """Return what draws choices of a kind."""
        return self._draw_apart if kind in APART else self._draw

    def any_way(self, name: Name, ways: int) -> int:
        """Return which of so many ways it goes, all of which are equally likely."""
        return self.way(name, ways, (ways - 1) / ways)

    def one_of(self, name: Name, likely: Sequence[bool]) -> int:
        """Return which of so many ways it goes: if chance decides, one of those that are likely, if any is."""
        among = [place for place, each in enumerate(likely) if each]
        if self._draw is None or not among:
            return self.any_way(name, len(likely))
        self.made += 1
        chosen = among[int(self._draw() * len(among))]
        if chosen:
            self.deviations[name] = chosen
        return chosen

    def way(self, name: Name, ways: int, rate: float) -> int:
        """Return which of so many ways it goes: at this rate another one than the orderly one."""
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
