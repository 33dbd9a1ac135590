"""The ``[[interpreters]]`` of a fleet file: they come before the standard one, in their order."""

from collections.abc import Iterator, Mapping
from typing import Final

from lifefold.core import fleet
from lifefold.effects import Activity, Effect
from lifefold.interpreters.fleet_file import forms
from lifefold.interpreters.fleet_file.keys import Key, Section, keys_of
from lifefold.interpreters.fleet_file.model import InterpreterEntry
from lifefold.interpreters.fleet_file.table import Table
from lifefold.interpreters.missing import wanted

KINDS: Final[Mapping[str, type[Effect] | type[Activity]]] = {
    kind.__name__: kind
    for kind in sorted((kind for each in wanted(fleet.system) for kind in each), key=lambda kind: kind.__name__)
}
"""All effects and activities of a fleet, by name."""


class InterpreterKeys(Section, header="[[interpreters]]", named_by="use", others="an option of the interpreter"):
    """Interpreters of effects and activities, before the standard interpreter."""

    use = Key(
        forms.INTERPRETER,
        "the interpreter, in a module beside the fleet file or installed; or the name of an entry point of the group"
        " `lifefold.interpreters`",
        "",
        required=True,
    )
    for_ = Key[tuple[str, ...]](
        forms.one_or_several(tuple(KINDS)),
        "the effects and activities that it performs",
        (),
        absent="all with a handler of it",
    )


def read_interpreters(root: Table) -> Iterator[InterpreterEntry]:
    """Yield the interpreters before the standard one; usually none."""
    first: dict[str, int | None] = {}
    own = keys_of(InterpreterKeys)
    for table in root.tables(InterpreterKeys):
        use = table.read(InterpreterKeys.use)
        kinds = table.read(InterpreterKeys.for_)
        options = {key: value for key, value in table.values.items() if key not in own}
        places = {key: table.place(key) for key in (*own, *options)}
        entry = InterpreterEntry(use, kinds, options, places)
        if use and entry.name in first:
            table.problem("use", f"{entry.name} is there twice; first in line {first[entry.name]}")
        first.setdefault(entry.name, table.report.line(table.path))
        yield entry


def performs_effects_alone(entry: InterpreterEntry) -> bool:
    """Tell whether an interpreter is used for effects only, and for no activities."""
    return bool(entry.kinds) and all(issubclass(KINDS.get(kind, Effect), Effect) for kind in entry.kinds)
