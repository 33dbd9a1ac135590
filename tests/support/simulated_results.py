"""What ``simulate`` has made of mistakes, as ``tests/mutants/results`` keeps it, and what the page says of it."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from lifefold.interpreters import views
from mutation_results import FOLDER
from rule_campaign import Fate
from simulated_campaign import SEEDS, SHORT, Seen, Simulated, SimulatedRules

RULES: Final = "fleet-rules"
"""What is no lifecycle, and has mistakes all the same."""

NAMES: Final = (*views.machines(), RULES)
"""All that has mistakes which are simulated."""

SIMULATED: Final = FOLDER / "simulated"

HEAD: Final = f"""
## What a simulation finds

The same mutants are simulated (`tests/support/simulated_campaign.py`), each with the seeds from 0 to {SEEDS - 1:,}. A
mutant of a lifecycle is simulated as by `lifefold simulate NAME`. A mutant of a rule is simulated in a fleet of two
agents with three tasks. If no seed finds it, a fleet of the same size with operator commands is tried. The failing run
is shrunk. Its *events* are all inputs up to the broken property, the opening included. A *short* run has fewer than
{SHORT} events. Only mutants that a check kills are counted.

Some runs cannot be short. A mutant at a limit needs as many events as the limit is high. A session with its usual limits
stops after five consecutive errors, or after twenty in all. A fleet of one agent with one task has 16 events if nothing
goes wrong, so a mutant of its end needs 15.

"""


class Simulations(msgspec.Struct, frozen=True):
    """What came of the mistakes of something: every how-manieth was tried, and for how many seconds at most.

    ``within_s`` is None if every mistake was tried with all seeds.
    """

    name: str
    every: int
    within_s: float | None
    seen: tuple[Seen, ...]

    @property
    def tried(self) -> tuple[Seen, ...]:
        """Those that a check finds."""
        return tuple(each for each in self.seen if each.fate == Fate.KILLED)

    @property
    def found(self) -> int:
        """How many were found."""
        return sum(each.seed is not None for each in self.seen)

    @property
    def short(self) -> int:
        """How many were found and made short."""
        return sum(each.is_short for each in self.seen)

    @property
    def cut(self) -> int:
        """How many were not found, and not tried with all seeds."""
        return sum(each.seed is None and each.seeds < SEEDS for each in self.tried)


def run(name: str, every: int = 1, *, begin: int = 0, within_s: float | None = None) -> Simulations:
    """Try every so-manieth mistake of something."""
    of = SimulatedRules() if name == RULES else Simulated(name)
    share = slice(begin, None, every)
    return Simulations(name, every, within_s, tuple(of.run(share, within_s=within_s or float("inf"))))


def keep(found: Simulations) -> None:
    """Write it down."""
    SIMULATED.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(found), indent=1)
    (SIMULATED / f"{found.name}.json").write_bytes(text + b"\n")


def kept() -> tuple[Simulations, ...]:
    """Return what was written down."""
    files = [SIMULATED / f"{name}.json" for name in NAMES]
    return tuple(msgspec.json.decode(file.read_bytes(), type=Simulations) for file in files if file.exists())


def section(results: Iterable[Simulations]) -> str:
    """Return what the page says of simulations; nothing if there were none."""
    every = tuple(each for each in results if each.seen)
    if not every:
        return ""
    return HEAD + "\n".join([*_how(every), "", *_table(every), "", *_kinds(every), "", *_left(every)]).rstrip() + "\n"


def _how(results: Iterable[Simulations]) -> Iterator[str]:
    steps = sorted({each.every for each in results})
    left = sorted(set(NAMES) - {each.name for each in results if each.tried})
    if left:
        yield f"Not tried yet: {', '.join(left)}."
    limits = {each.within_s for each in results} - {None}
    if steps == [1]:
        yield "All of them were tried."
    else:
        of = " or ".join(map(str, steps))
        yield f"This is a sample: one in {of} was tried, in the order of the tables."
    if limits:
        most = max(each for each in limits if each)
        yield f"After {most:g} seconds a mutant was *given up*, before the last seed."


def _table(results: Iterable[Simulations]) -> Iterator[str]:
    yield "| lifecycle | tried | found | short | given up |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    sums = [0, 0, 0, 0]
    for each in results:
        numbers = (len(each.tried), each.found, each.short, each.cut)
        sums = [one + other for one, other in zip(sums, numbers, strict=True)]
        yield f"| {each.name} | {' | '.join(f'{number:,}' for number in numbers)} |"
    yield f"| **all** | {' | '.join(f'**{number:,}**' for number in sums)} |"


def _kinds(results: Iterable[Simulations]) -> Iterator[str]:
    """Say the same by kind of mistake."""
    seen = [each for of in results if of.name != RULES for each in of.seen]
    yield "| mistake in a lifecycle | tried | found | short |"
    yield "| --- | ---: | ---: | ---: |"
    for kind in sorted({each.kind for each in seen}):
        alike = [each for each in seen if each.kind == kind]
        found = sum(each.seed is not None for each in alike)
        yield f"| {kind} | {len(alike):,} | {found:,} | {sum(each.is_short for each in alike):,} |"


def _left(results: Iterable[Simulations]) -> Iterator[str]:
    """List what was not found, and what is long."""
    for each in results:
        if each.short == len(each.tried):
            continue
        yield from (f"**{each.name}**", "")
        for left in each.tried:
            name = left.mistake.replace("`", "'")
            if left.seed is None:
                yield f"- `{name}`: not found by {left.seeds:,} seeds"
            elif not left.is_short:
                yield f"- `{name}`: {left.events:,} events"
        yield ""
