"""The faults of a simulation, their rates, and the selection that a seed tries.

Every fault has a name, a rate and a switch. A run has some faults only, drawn by its seed. Many mistakes show only if
something does *not* happen, and a run with all faults at once hides them (*swarm testing*: A. Groce and others, 2012).
The meaning of a fault stands with each.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from lifefold.interpreters.simulate.choices import Choices


class Fault(msgspec.Struct, frozen=True):
    """One kind of fault: its name, its meaning, and its rate."""

    name: str
    about: str
    rate: float


SHIPPED: Final = (
    Fault("fails", "an activity comes to another end than the orderly one", 0.2),
    Fault("exits early", "an activity is over before it has said anything else", 0.1),
    Fault("hangs", "an activity reports nothing more until it is ended", 0.05),
    Fault("floods", "an activity repeats a report again and again", 0.05),
    Fault("rambles", "an activity makes its reports in any order, and any number of times", 0.05),
    Fault("hasty", "an activity makes a report at once, or after a pause that makes a difference", 0.05),
    Fault("slow", "a report takes a hundred times as long", 0.1),
    Fault("late report", "a report of an activity comes again after a while, perhaps after the activity is over", 0.05),
    Fault("doubled message", "a message between aggregates comes twice", 0.05),
    Fault("late message", "a message is in flight for long, and later ones wait for it", 0.05),
    Fault("early timer", "the clock jumps ahead, so that timers are due before their time is over", 0.02),
    Fault("clock back", "the clock is set back", 0.02),
    Fault("slow store", "a transaction takes long, and inputs gather meanwhile", 0.02),
    Fault("store refuses", "a transaction fails, and the runner crashes", 0.005),
    Fault("torn write", "the runner crashes during a write, and the write is lost", 0.005),
    Fault("disk full", "transactions fail for a while, and every new runner crashes", 0.002),
    Fault("killed when decided", "the runner crashes before it has persisted a decision", 0.005),
    Fault(
        "killed when persisted", "the runner crashes before it has performed an effect of a persisted decision", 0.005
    ),
    Fault("killed when performing", "the runner crashes between two effects", 0.005),
    Fault("killed when performed", "the runner crashes before it has recorded a performed effect", 0.005),
    Fault("killed when waiting", "the runner crashes while it waits for a timer", 0.1),
    Fault("operators", "an operator gives one of the possible commands, at any time", 0.2),
)
"""All faults, each with its usual rate for each occasion."""

_ON_ENGINE: Final = (
    "fails", "exits early", "hangs", "floods", "rambles", "hasty", "slow", "late report", "early timer", "clock back",
    "slow store", "store refuses", "torn write", "disk full", "killed when persisted", "killed when waiting",
    "operators",
)  # fmt: skip
"""The faults above that a real engine meets, too. It delivers messages at once; the others are special cases."""

OF_ENGINE: Final = (
    *(each for each in SHIPPED if each.name in _ON_ENGINE),
    Fault("any order", "the tasks of an engine take their steps in any order", 0.5),
    Fault("killed between awaits", "the engine crashes between two steps of its event loop", 0.0005),
    Fault("unsure write", "a transaction is durable, and the store reports an error all the same", 0.002),
    Fault("fenced", "another writer takes over the log", 0.002),
    Fault("stopped", "the engine is stopped in good order", 0.005),
    Fault("handler raises", "the handler of an effect or activity raises an error, at most twice", 0.05),
    Fault("slow handler", "a performed effect takes long, and later effects wait for it", 0.1),
)
"""The faults of a simulation of the real engine."""

OF_CLUSTER: Final = (
    *(each for each in SHIPPED if each.name not in {"killed when performing", "killed when performed"}),
    Fault("host dies", "the machine of a host dies, and another one starts under its name after a while", 0.02),
    Fault("host daemon killed", "the daemon of a host dies; its sessions live until their fences", 0.02),
    Fault("host frozen", "nothing runs on a host for a while, and then all of it goes on", 0.05),
    Fault("host partitioned", "no message passes between a host and the server for a while", 0.05),
    Fault("lost heartbeat", "the last heartbeat before an interruption of a host is lost", 0.3),
    Fault("host with a wrong clock", "the clock of a host is minutes ahead or behind", 0.5),
)
"""The faults of a simulation of a cluster: its brain, its hosts, and the messages between them."""

NAMES: Final = tuple(each.name for each in SHIPPED)

ONLY_OF_ENGINE: Final = frozenset(each.name for each in OF_ENGINE) - {*NAMES}
"""The names of the faults that only a real engine meets."""

ONLY_OF_CLUSTER: Final = frozenset(each.name for each in OF_CLUSTER) - {*NAMES}
"""The names of the faults that only a cluster meets."""

ALL_NAMES: Final = (
    *NAMES,
    *(each.name for each in OF_ENGINE if each.name in ONLY_OF_ENGINE),
    *(each.name for each in OF_CLUSTER if each.name in ONLY_OF_CLUSTER),
)
"""The names of all faults, also of those that only a real engine or a cluster meets."""

ACTED: Final = ("fails", "exits early", "hangs", "floods", "rambles", "hasty")
"""The faults of activities: a run may have some of them only."""

DEADLY: Final = (
    "store refuses", "torn write", "disk full",
    "killed when decided", "killed when persisted", "killed when performing", "killed when performed",
    "killed when waiting",
)  # fmt: skip
"""The faults that end a runner, each at a point of its work."""


DEADLY_TO_ENGINE: Final = (
    *(each for each in DEADLY if each in _ON_ENGINE), "killed between awaits", "unsure write", "fenced",
)  # fmt: skip
"""The faults that end a real engine."""

SWARM: Final = (0.0, 0.0, 0.0, 1.0, 1.0, 4.0)
"""The factors of the rates in a run: half of the faults do not occur, and some very often."""

ACTS: Final = (0.0, 1.0, 1.0, 4.0)
"""The same factors for the faults of activities."""

MOST: Final = 0.9
"""The highest rate: a fault that always happens hides the behaviour after it."""


class Faults(msgspec.Struct, frozen=True):
    """The faults of a simulation. ``rates`` are by name; 0 switches one off. ``swarm``: a run has some of them only.

    Raises ``ValueError`` for an unknown name, and for a rate outside of 0 to 1.
    """

    rates: Mapping[str, float] = {}
    swarm: bool = True

    def __post_init__(self) -> None:
        """Check the rates."""
        for name, rate in self.rates.items():
            if name not in ALL_NAMES:
                message = f"there is no fault {name!r}; there are: {', '.join(ALL_NAMES)}"
                raise ValueError(message)
            if not 0.0 <= rate <= 1.0:
                message = f"{name}: a rate is between 0 and 1, not {rate!r}"
                raise ValueError(message)

    def of(self, choices: Choices, kinds: Sequence[Fault] = SHIPPED) -> dict[str, float]:
        """Return the rates of one run with these kinds of faults: 0 for a fault that it does not have."""
        if not choices.is_drawn:
            return dict.fromkeys((each.name for each in kinds), 1.0)
        rates = {each.name: self.rates.get(each.name, each.rate) for each in kinds}
        if not self.swarm:
            return rates
        return {name: min(rate * _times(name, choices), MOST) for name, rate in rates.items()}


def _times(name: str, choices: Choices) -> float:
    swarm = ACTS if name in ACTED else SWARM
    return swarm[choices.cast(len(swarm), name)]


NONE: Final = Faults(dict.fromkeys(ALL_NAMES, 0.0), swarm=False)
"""No faults."""
