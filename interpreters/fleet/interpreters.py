"""The ``[[interpreters]]`` of a fleet file: what goes before the standard one, in their order."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from lifefold.core import fleet
from lifefold.effects import Activity, Effect
from lifefold.interpreters.fleet import values
from lifefold.interpreters.fleet.model import InterpreterEntry
from lifefold.interpreters.fleet.table import Table
from lifefold.interpreters.missing import wanted

KINDS: Final[Mapping[str, type[Effect] | type[Activity]]] = {
    kind.__name__: kind
    for kind in sorted((kind for each in wanted(fleet.system) for kind in each), key=lambda kind: kind.__name__)
}
"""All that a fleet asks an interpreter for, by name."""

OWN_KEYS: Final = ("use", "for")
"""What a table says of the interpreter; every other key is an option of the interpreter's own."""


def read_interpreters(root: Table) -> Iterator[InterpreterEntry]:
    """Yield what a fleet file puts before the standard interpreter; usually nothing."""
    first: dict[str, int | None] = {}
    for table in root.tables("interpreters", named_by="use", least=0):
        use = table.required("use", values.interpreter, "")
        kinds: tuple[str, ...] = table.optional("for", values.one_or_several, ())
        for number, kind in enumerate(kinds):
            if kind not in KINDS:
                at = () if isinstance(table.values["for"], str) else (number,)
                table.problem("for", f"found {values.shown(kind)}; accepted: {_accepted(kind)}", *at)
        options = {key: value for key, value in table.values.items() if key not in OWN_KEYS}
        places = {key: table.place(key) for key in (*OWN_KEYS, *options)}
        entry = InterpreterEntry(use, kinds, options, places)
        if use and entry.name in first:
            table.problem("use", f"{entry.name} is there twice; first in line {first[entry.name]}")
        first.setdefault(entry.name, table.report.line(table.path))
        yield entry


def _accepted(kind: str) -> str:
    close = get_close_matches(kind, KINDS, n=1)
    return ", ".join(KINDS) + (f'; did you mean "{close[0]}"?' if close else "")


def performs_effects_alone(entry: InterpreterEntry) -> bool:
    """Tell whether all that an interpreter is there for is over as soon as it is performed."""
    return bool(entry.kinds) and all(issubclass(KINDS.get(kind, Effect), Effect) for kind in entry.kinds)
