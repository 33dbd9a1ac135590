"""The tables of the documents, quoted once in ``tests/documents``: a line has source, event, target, and an effect.

``ANY`` is every state, ``=`` the present one, ``.`` takes a pair away. Between the targets ``A or B`` a guard decides.
The lines above the first ``[name]`` are the document's; those below it are what lifefold or that profile adds. The
quotes are written by hand and know no machine. The properties that ``follows_table`` derives from a machine's rows are
not independent of these rows: the quotes are.
"""

from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from lifefold.core.kernel import ANY, Machine

FOLDER: Final = Path(__file__).parents[1] / "documents"

Cells = dict[tuple[str, str], set[str]]
"""The targets of each state and event."""


class Line(NamedTuple):
    """One line of a table."""

    sources: tuple[str, ...]
    events: tuple[str, ...]
    targets: tuple[str, ...]
    effect: str


def lines(document: str, section: str = "") -> list[Line]:
    """Return the lines of a document, or of the section of a profile."""
    found, here = list[Line](), ""
    for text in (FOLDER / f"{document}.txt").read_text().splitlines():
        if text.startswith("["):
            here = text.strip("[]")
        elif text and not text.startswith("#") and here == section:
            sources, events, targets, *effect = text.split(" | ")
            found.append(Line(_parts(sources), _parts(events), tuple(targets.split(" or ")), "".join(effect)))
    assert found, f"{document}.txt has no lines for [{section}]"
    return found


def _parts(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


def quoted(machine: Machine[Any], document: str, *profiles: str) -> Cells:
    """Return the targets of each state and event of a machine, as a document and these profiles write them."""
    found: Cells = {}
    for line in (each for section in ("", *profiles) for each in lines(document, section)):
        sources = map(str, machine.over(ANY)) if line.sources == ("ANY",) else line.sources
        for source, event in product(sources, line.events):
            targets = {source if each == "=" else each for each in line.targets}
            found[source, event] = set() if targets == {"."} else found.get((source, event), set()) | targets
    return {pair: targets for pair, targets in found.items() if targets}


def written(machine: Machine[Any], labels: set[str]) -> Cells:
    """Return the targets of each state and event by the rows of a machine; a row behind an unguarded one has none.

    An event is spelled as in ``labels``, with its variant or its fields, or by its name alone.
    """
    found, closed = Cells(), set[tuple[str, str]]()
    for row in machine.rows:
        name = row.event.label().partition("(")[0]
        label = row.event_label if row.event_label in labels else name
        for state in sorted(machine.sources(row)):
            if (state, label) in closed or (state, name) in closed:
                continue
            found.setdefault((str(state), label), set()).add(str(row.goes(state)))
            if row.when is None:
                closed.add((str(state), label))
    return found
