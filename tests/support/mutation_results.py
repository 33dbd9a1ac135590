"""What came of all mutants of a machine, as ``tests/mutants/results`` keeps it, and the page that is made of it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters import views
from mutation_campaign import Campaign, Fate, Tried

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "tests" / "mutants" / "results"
PAGE: Final = ROOT / "docs" / "mutants.md"

HEAD: Final = """# Mutants

A property is worth what it would find. So every shipped lifecycle is checked again with one mistake planted in it, once
for each mistake that a program could think of (`tests/support/mutation.py`): a row is lost, or is not taken in one of
its states; its guard is lost, turned round, or sees a threshold one higher or lower; it leads elsewhere; its action
does nothing, forgets what it was to record, or one field of it, or counts one too many; an effect is lost or asked for
twice; two rows stand in the wrong order; an event is not postponed; an activity or a timer is not begun, not in one of
its states, is not ended, or lasts one millisecond more or less; a final state is none.

`make mutants` does all of it, and writes this page. `make test` tries a part of them.

- *refused*: it is no machine, and is refused when it is built;
- *killed*: `lifefold check`, asked as for the certificates, finds a property that is broken;
- *same*: it is no other machine: in every state within the bounds every input has the same outcome (an input that
  changes nothing and asks for nothing may be refused instead). Found by comparing the two, state by state;
- *deaf*: nothing that is done is wrong, and nothing that was promised to follow fails to follow; but something is
  refused that should be taken, and that no property `takes`; the tests of the tables find it;
- *survived*: none of these; it would stand below, with the reason.

Of a profile only those mistakes are planted that are its own: in rows, activities and thresholds that it does not have
from the lifecycle that it is a profile of, all of whose promises it makes, too.

"""


EXPLAINED: Final[Mapping[str, Mapping[str, str]]] = {
    "task-in-fleet": {
        "row(PENDING_APPROVAL, ApprovalExpired, FAILED): its action sees approval_ms one lower": (
            "only a text for people is another one"
        ),
    },
}
"""By lifecycle and mutant: why it survives although nothing is missing."""


class Survivor(msgspec.Struct, frozen=True):
    """A mutant that no property has found, and how it survived: as one that is deaf, or without an explanation."""

    fate: str
    mutant: str


class Result(msgspec.Struct, frozen=True):
    """What came of a machine's mutants: how many there are of each fate, and which were not found."""

    machine: str
    states: int
    mutants: int
    fates: dict[str, int]
    killers: dict[str, int]
    """By promise: how many mutants it was the first to find."""
    survivors: tuple[Survivor, ...]

    def unexplained(self) -> tuple[str, ...]:
        """Return the mutants that survived for no known reason."""
        reasons = EXPLAINED.get(self.machine, {})
        return tuple(
            each.mutant for each in self.survivors if each.fate == Fate.SURVIVED and each.mutant not in reasons
        )

    def count(self, fate: Fate) -> int:
        """Return how many mutants came to this."""
        return self.fates.get(fate, 0)


def result(campaign: Campaign, ended: Iterable[Tried]) -> Result:
    """Sum up a campaign."""
    every = tuple(ended)
    killers = Counter(each.by.removesuffix(": broken") for each in every if each.fate is Fate.KILLED)
    left = tuple(Survivor(each.fate, each.mutant.name) for each in every if each.fate in {Fate.DEAF, Fate.SURVIVED})
    fates = Counter(str(each.fate) for each in every)
    states = len(campaign.table.states)
    return Result(campaign.name, states, len(every), dict(sorted(fates.items())), dict(sorted(killers.items())), left)


def keep(found: Result) -> None:
    """Write a result down."""
    FOLDER.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(found), indent=1)
    (FOLDER / f"{found.machine}.json").write_bytes(text + b"\n")


def kept() -> tuple[Result, ...]:
    """Return what was written down, in the order of the catalogue."""
    files = [FOLDER / f"{name}.json" for name in views.machines()]
    return tuple(msgspec.json.decode(file.read_bytes(), type=Result) for file in files if file.exists())


def page(results: Iterable[Result]) -> str:
    """Return the page."""
    every = tuple(results)
    columns = ("lifecycle", "states", "mutants", *Fate)
    lines = [f"| {' | '.join(columns)} |", f"| --- |{' ---: |' * (len(columns) - 1)}", *map(_line, every)]
    sums = [sum(each.mutants for each in every), *(sum(each.count(fate) for each in every) for fate in Fate)]
    lines.append(f"| **all** |  | {' | '.join(f'**{number:,}**' for number in sums)} |")
    return HEAD + "\n".join([*lines, "", *_left(every, Fate.SURVIVED), *_left(every, Fate.DEAF)]).rstrip() + "\n"


def _line(each: Result) -> str:
    numbers = (each.states, each.mutants, *(each.count(fate) for fate in Fate))
    return f"| {each.machine} | {' | '.join(f'{number:,}' for number in numbers)} |"


def _left(results: Iterable[Result], fate: Fate) -> list[str]:
    """Return the list of those that came to this, if there are any."""
    lines: list[str] = []
    for each in results:
        names = [survivor.mutant for survivor in each.survivors if survivor.fate == fate]
        if names:
            reasons = EXPLAINED.get(each.machine, {})
            told = [f"- `{name}`" + (f": {reasons[name]}" if name in reasons else "") for name in names]
            lines += [f"**{each.machine}**", "", *told, ""]
    return [f"## Those that are {fate}" if fate is Fate.DEAF else "## Survivors", "", *lines] if lines else []
