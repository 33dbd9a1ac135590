"""The results of simulated mutants in ``tests/mutants/results``, and their section of the page."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from lifefold.interpreters import views
from mutation_results import FOLDER
from rule_campaign import Fate
from simulated_campaign import SEEDS, SHORT, Seen, Simulated, SimulatedRules

RULES: Final = "fleet-rules"
"""The name of the mutants of the rules."""

NAMES: Final = (*views.machines(), RULES)
"""The names of all simulations."""

SIMULATED: Final = FOLDER / "simulated"

HEAD: Final = f"""
## What a simulation finds

The same mutants are simulated (`tools/mutation/simulated_campaign.py`). A mutant of a lifecycle runs by itself, as
with `lifefold simulate NAME`. A mutant of a rule runs in a fleet of two agents with three tasks. If no seed finds it
there, it runs in a fleet with approvals by operators. Each mutant is tried with the seeds from 0 on, {SEEDS:,} at
most. A failing run is shrunk. Its *events* are the entries in the log when the property breaks, with the opening. A
run is *short* if it has fewer than {SHORT} events. The table counts only mutants that `lifefold check` kills.

Some runs cannot be short. A mutant at a limit needs as many events as the limit is high. A session with the usual
limits stops after five errors in a row, or twenty in all. A fleet of one agent and one task has 16 events if nothing
goes wrong, so a mutant of its end needs 15.

"""


class Simulations(msgspec.Struct, frozen=True):
    """The results for the mutants of a lifecycle or of the rules: every ``every``-th, for ``within_s`` at most.

    ``within_s`` is None if every mutant was tried with all seeds.
    """

    name: str
    every: int
    within_s: float | None
    seen: tuple[Seen, ...]

    @property
    def tried(self) -> tuple[Seen, ...]:
        """The mutants that a check kills."""
        return tuple(each for each in self.seen if each.fate == Fate.KILLED)

    @property
    def found(self) -> int:
        """The number of mutants that a seed found."""
        return sum(each.seed is not None for each in self.seen)

    @property
    def short(self) -> int:
        """The number of mutants with a short run."""
        return sum(each.is_short for each in self.seen)

    @property
    def cut(self) -> int:
        """The number of mutants that were given up before all seeds were tried."""
        return sum(each.seed is None and each.seeds < SEEDS for each in self.tried)


def run(name: str, every: int = 1, *, begin: int = 0, within_s: float | None = None) -> Simulations:
    """Simulate every ``every``-th mutant of a lifecycle or of the rules."""
    of = SimulatedRules() if name == RULES else Simulated(name)
    share = slice(begin, None, every)
    return Simulations(name, every, within_s, tuple(of.run(share, within_s=within_s or float("inf"))))


def keep(found: Simulations) -> None:
    """Write the results to their file."""
    SIMULATED.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(found), indent=1)
    (SIMULATED / f"{found.name}.json").write_bytes(text + b"\n")


def kept() -> tuple[Simulations, ...]:
    """Return the results that have a file."""
    files = [SIMULATED / f"{name}.json" for name in NAMES]
    return tuple(msgspec.json.decode(file.read_bytes(), type=Simulations) for file in files if file.exists())


def section(results: Iterable[Simulations]) -> str:
    """Return the page's section on simulations; an empty text if there were none."""
    every = tuple(each for each in results if each.seen)
    if not every:
        return ""
    return HEAD + "\n".join([*_how(every), "", *_table(every), "", *_kinds(every), "", *_left(every)]).rstrip() + "\n"


def _how(results: Iterable[Simulations]) -> Iterator[str]:
    steps = sorted({each.every for each in results})
    left = sorted(set(NAMES) - {each.name for each in results if each.tried})
    if left:
        yield f"Mutants of these were not simulated yet: `{' '.join(left)}`."
    limits = {each.within_s for each in results} - {None}
    if steps == [1]:
        yield "All mutants were tried."
    else:
        of = " or ".join(map(str, steps))
        yield f"This is a sample: one in {of} was tried, in the order of the tables."
    if limits:
        most = max(each for each in limits if each)
        yield f"A mutant was *given up* after {most:g} seconds, with fewer seeds than all."


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
    """Yield the same table by kind of mutant."""
    seen = [each for of in results if of.name != RULES for each in of.seen]
    yield "| mutant of a lifecycle | tried | found | short |"
    yield "| --- | ---: | ---: | ---: |"
    for kind in sorted({each.kind for each in seen}):
        alike = [each for each in seen if each.kind == kind]
        found = sum(each.seed is not None for each in alike)
        yield f"| {kind} | {len(alike):,} | {found:,} | {sum(each.is_short for each in alike):,} |"


def _left(results: Iterable[Simulations]) -> Iterator[str]:
    """Yield the list of mutants that were not found or have a long run."""
    for each in results:
        if each.short == len(each.tried):
            continue
        yield from (f"**{each.name}**", "")
        for left in each.tried:
            name = left.mutant.replace("`", "'")
            if left.seed is None:
                yield f"- `{name}`: not found by {left.seeds:,} seeds"
            elif not left.is_short:
                yield f"- `{name}`: {left.events:,} events"
        yield ""
