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

Mutants measure the properties: a property has a value only if it finds mistakes. So a program makes mutants of every
shipped lifecycle, each with one mistake (`tests/support/mutation.py`), and each mutant is checked. The mistakes are:

- a row is lost, is not taken in one of its states, leads elsewhere, or stands after another row;
- a guard is lost or inverted, or its threshold is one higher or lower;
- an action does nothing, does not record a field, or counts one too many;
- an effect is lost or requested twice, or an event is not postponed;
- an activity or a timer does not begin, does not begin in one of its states, does not end, or lasts one millisecond
  more or less;
- a final state is not final.

`make mutants` makes and checks all of them and writes this page. `make test` checks a sample.

- *refused*: the mutant is no machine, and its construction fails.
- *killed*: `lifefold check`, with the configuration of the certificates, finds a broken property.
- *equivalent*: no reachable behaviour differs. In every state within the bounds every input has the same outcome. An
  input without change and effect can be refused instead. The two machines are compared state by state.
- *undetected*: the mutant only refuses inputs that the lifecycle accepts, and no `accepts` property covers them. Tests
  of the tables find these mutants.
- *survived*: none of these. A survivor is listed below, with its reason.

A profile has all properties of the lifecycle that it extends. So it gets only mutants of its own rows, activities and
thresholds.

"""


EXPLAINED: Final[Mapping[str, Mapping[str, str]]] = {
    "task-in-fleet": {
        "row(PENDING_APPROVAL, ApprovalExpired, FAILED): its action sees approval_ms one lower": (
            "only a text for people differs"
        ),
    },
}
"""By lifecycle and mutant: why it survives although nothing is missing."""

_COLUMNS: Final[Mapping[Fate, str]] = {Fate.SAME: "equivalent", Fate.DEAF: "undetected"}
"""The fates with another name on the page than in the results."""


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
    columns = ("lifecycle", "states", "mutants", *(_COLUMNS.get(fate, str(fate)) for fate in Fate))
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
    return ["## Undetected mutants" if fate is Fate.DEAF else "## Survivors", "", *lines] if lines else []
