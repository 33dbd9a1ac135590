"""What can go wrong in a simulation, how often it does, and which of it a seed tries.

Every fault has a name, a rate and a switch. A run has some of them only, drawn by its seed: many mistakes show only if
something does *not* happen, and a run in which everything happens at once hides them (*swarm testing*: A. Groce and
others, 2012). What a fault means stands with each.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from lifefold.interpreters.simulate.choices import Choices


class Fault(msgspec.Struct, frozen=True):
    """One kind of fault: its name, what it means, and how often it happens where it can."""

    name: str
    about: str
    rate: float


SHIPPED: Final = (
    Fault("fails", "an activity comes to another end than the orderly one", 0.2),
    Fault("exits early", "an activity is over before it has said anything else", 0.1),
    Fault("hangs", "an activity says nothing more until it is ended", 0.05),
    Fault("floods", "an activity says the same again and again", 0.05),
    Fault("rambles", "an activity says what it may say in any order, and as often as it likes", 0.05),
    Fault("hasty", "an activity says something at once, or after a pause that makes a difference", 0.05),
    Fault("slow", "something takes a hundred times as long", 0.1),
    Fault("late report", "what an activity says comes again after a while, when it may be over", 0.05),
    Fault("doubled message", "a message between aggregates comes twice", 0.05),
    Fault("late message", "a message is under way for long, and later ones wait for it", 0.05),
    Fault("early timer", "the clock jumps ahead, so that timers are due before their time is over", 0.02),
    Fault("clock back", "the clock is set back", 0.02),
    Fault("slow store", "a transaction takes long, and inputs gather meanwhile", 0.02),
    Fault("store refuses", "a transaction fails, which the runner does not survive", 0.005),
    Fault("torn write", "the runner dies while it writes, and what it wrote is not there", 0.005),
    Fault("disk full", "transactions fail for a while, and so does every runner that is begun", 0.002),
    Fault("killed when decided", "the runner dies before it has persisted what it has decided", 0.005),
    Fault("killed when persisted", "the runner dies before it has performed anything of what it has persisted", 0.005),
    Fault("killed when performing", "the runner dies between two effects", 0.005),
    Fault("killed when performed", "the runner dies before it has recorded that it has performed something", 0.005),
    Fault("killed when waiting", "the runner dies while it waits for a timer", 0.1),
    Fault("people", "somebody says something that people may say, at any time", 0.2),
)
"""All faults, each with its usual rate per occasion."""

NAMES: Final = tuple(each.name for each in SHIPPED)

ACTED: Final = ("fails", "exits early", "hangs", "floods", "rambles", "hasty")
"""What activities do: a run has it of some of them only, too."""

DEADLY: Final = (
    "store refuses", "torn write", "disk full",
    "killed when decided", "killed when persisted", "killed when performing", "killed when performed",
    "killed when waiting",
)  # fmt: skip
"""Those that a runner does not survive, each at a point of its work."""


SWARM: Final = (0.0, 0.0, 0.0, 1.0, 1.0, 4.0)
"""How many times as often as usual a fault happens in a run: not at all in half of them, very often in some."""

ACTS: Final = (0.0, 1.0, 1.0, 4.0)
"""The same of what activities do: some of them do it in a run, and others do not."""

MOST: Final = 0.9
"""How often a fault happens at most: what always happens hides what comes after it."""


class Faults(msgspec.Struct, frozen=True):
    """Which faults a simulation has. ``rates`` are by name; 0 switches one off. ``swarm``: a run has some of them only.

    Raises ``ValueError`` for a name that there is not, and for a rate that is none.
    """

    rates: Mapping[str, float] = {}
    swarm: bool = True

    def __post_init__(self) -> None:
        """Check the rates."""
        for name, rate in self.rates.items():
            if name not in NAMES:
                message = f"there is no fault {name!r}; there are: {', '.join(NAMES)}"
                raise ValueError(message)
            if not 0.0 <= rate <= 1.0:
                message = f"{name}: a rate is between 0 and 1, not {rate!r}"
                raise ValueError(message)

    def of(self, choices: Choices) -> dict[str, float]:
        """Return the rates of one run: 0 for what it does not have."""
        if not choices.is_drawn:
            return dict.fromkeys(NAMES, 1.0)
        rates = {each.name: self.rates.get(each.name, each.rate) for each in SHIPPED}
        if not self.swarm:
            return rates
        return {name: min(rate * _times(name, choices), MOST) for name, rate in rates.items()}


def _times(name: str, choices: Choices) -> float:
    swarm = ACTS if name in ACTED else SWARM
    return swarm[choices.cast(len(swarm), name)]


NONE: Final = Faults(dict.fromkeys(NAMES, 0.0), swarm=False)
"""Nothing goes wrong."""
