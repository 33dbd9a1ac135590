"""The results of the mutants of each machine in ``tests/mutants/results``, and the page that is made of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters import views
from mutation_campaign import Campaign, Fate, Verdict

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "tests" / "mutants" / "results"
PAGE: Final = ROOT / "docs" / "mutants.md"

HEAD: Final = """# Mutants

A property is worth the mistakes that it finds. So every shipped lifecycle is checked with one deliberate mistake, once
for each mistake that a program can make (`tools/mutation/mutation.py`).

- A row is lost, is lost in one of its states, or has another target. Two rows change places.
- A guard is lost, is negated, or sees a threshold one higher or lower.
- An action does nothing, does not record one field or any, or counts one too many. An effect is lost or repeated.
- An event is not postponed. An activity or a timer is not started, not in one of its states, or not ended.
- A timer lasts one millisecond more or less. A final state is not final.

`make mutants` tries all mutants and writes this page. `make test` tries some.

- *refused*: the machine is invalid, and its construction fails;
- *killed*: `lifefold check` finds a broken property within the bounds of the certificates;
- *tabulated*: it breaks only a property that is derived from the table itself. Such a property finds no mistake in the
  table; the quoted document does (`tests/core/lifecycles/test_documents.py`);
- *equivalent*: every input has the same outcome in every state within the bounds, by a comparison state by state. An
  input without a change and without an effect may be refused instead;
- *undetected*: it only refuses events that the original accepts, and no property `accepts` them. The tests of the
  tables find it;
- *survived*: none of these. It would stand below, with the reason.

A profile has only mutants of its own rows, activities and thresholds. The others are mutants of the lifecycle that it
is a profile of, and the profile has all properties of that lifecycle.

"""


EXPLAINED: Final[Mapping[str, Mapping[str, str]]] = {
    "task-in-fleet": {
        "row(PENDING_APPROVAL, ApprovalExpired, FAILED): its action sees approval_ms one lower": (
            "only a text for operators differs"
        ),
    },
}
"""By lifecycle and mutant: why it survives although no property is missing."""


class Survivor(msgspec.Struct, frozen=True):
    """A mutant that breaks no property, with its fate: undetected or survived."""

    fate: str
    mutant: str


class Result(msgspec.Struct, frozen=True):
    """The results for the mutants of a machine: the number of each fate, and those without a broken property."""

    machine: str
    states: int
    mutants: int
    fates: dict[str, int]
    killers: dict[str, int]
    """The number of mutants that each property was the first to find."""
    survivors: tuple[Survivor, ...]

    def unexplained(self) -> tuple[str, ...]:
        """Return the survivors without a known reason."""
        reasons = EXPLAINED.get(self.machine, {})
        return tuple(
            each.mutant for each in self.survivors if each.fate == Fate.SURVIVED and each.mutant not in reasons
        )

    def count(self, fate: Fate) -> int:
        """Return the number of mutants with this fate."""
        return self.fates.get(fate, 0)


def result(campaign: Campaign, ended: Iterable[Verdict]) -> Result:
    """Return the results of a campaign."""
    every = tuple(ended)
    killers = Counter(each.by.removesuffix(": broken") for each in every if each.fate is Fate.KILLED)
    left = tuple(
        Survivor(each.fate, each.mutant.name) for each in every if each.fate in {Fate.UNDETECTED, Fate.SURVIVED}
    )
    fates = Counter(str(each.fate) for each in every)
    states = len(campaign.table.states)
    return Result(campaign.name, states, len(every), dict(sorted(fates.items())), dict(sorted(killers.items())), left)


def keep(found: Result) -> None:
    """Write the results to their file."""
    FOLDER.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(found), indent=1)
    (FOLDER / f"{found.machine}.json").write_bytes(text + b"\n")


def kept() -> tuple[Result, ...]:
    """Return the results that have a file, in the order of the catalogue."""
    files = [FOLDER / f"{name}.json" for name in views.machines()]
    return tuple(msgspec.json.decode(file.read_bytes(), type=Result) for file in files if file.exists())


def page(results: Iterable[Result]) -> str:
    """Return the page."""
    every = tuple(results)
    columns = ("lifecycle", "states", "mutants", *Fate)
    lines = [f"| {' | '.join(columns)} |", f"| --- |{' ---: |' * (len(columns) - 1)}", *map(_line, every)]
    sums = [sum(each.mutants for each in every), *(sum(each.count(fate) for each in every) for fate in Fate)]
    lines.append(f"| **all** |  | {' | '.join(f'**{number:,}**' for number in sums)} |")
    return HEAD + "\n".join([*lines, "", *_left(every, Fate.SURVIVED), *_left(every, Fate.UNDETECTED)]).rstrip() + "\n"


def _line(each: Result) -> str:
    numbers = (each.states, each.mutants, *(each.count(fate) for fate in Fate))
    return f"| {each.machine} | {' | '.join(f'{number:,}' for number in numbers)} |"


def _left(results: Iterable[Result], fate: Fate) -> list[str]:
    """Return the list of the mutants with this fate, if there are any."""
    lines: list[str] = []
    for each in results:
        names = [survivor.mutant for survivor in each.survivors if survivor.fate == fate]
        if names:
            reasons = EXPLAINED.get(each.machine, {})
            listed = [f"- `{name}`" + (f": {reasons[name]}" if name in reasons else "") for name in names]
            lines += [f"**{each.machine}**", "", *listed, ""]
    return ["## Undetected" if fate is Fate.UNDETECTED else "## Survivors", "", *lines] if lines else []
