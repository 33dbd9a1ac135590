"""A table of a fleet file, read key by key; errors go into a report, and reading continues."""

from collections.abc import Callable, Iterator, Mapping

from lifefold.interpreters.fleet_file.forms import T, meant
from lifefold.interpreters.fleet_file.keys import Key, Section, heading
from lifefold.interpreters.fleet_file.places import KeyPath
from lifefold.interpreters.fleet_file.problems import Report
from lifefold.interpreters.fleet_file.values import RefusedError, as_array, as_table, shown


class Table:
    """One table. ``label`` is its name, empty for the whole file; ``path`` leads to it.

    ``values`` is None if another value is in its place; missing keys are not reported then.
    """

    def __init__(
        self, report: Report, values: Mapping[str, object] | None, path: KeyPath = (), label: str = ""
    ) -> None:
        self.report = report
        self.values = values or {}
        self._is_table = values is not None
        self.path = path
        self.label = label
        self._known: dict[str, None] = {}

    def __contains__(self, key: object) -> bool:
        return key in self.values

    def read(self, key: Key[T]) -> T:
        """Return the meaning of a key; its default if it is absent or wrong, with a report if that is an error."""
        self._known[key.name] = None
        if key.name not in self.values:
            if key.required:
                self.missing(key.name)
            return key.default
        try:
            return key.form_among(self.values).parse(self.values[key.name])
        except RefusedError as refused:
            self.problem(key.name, str(refused), *refused.at)
            return key.default

    def missing(self, *keys: str) -> None:
        """Report a missing key, or that none of several keys is there."""
        self._known.update(dict.fromkeys(keys))
        if self._is_table:
            self.report.problem(self.path, self.label, f"{' or '.join(keys)} is missing")

    def problem(self, key: str, message: str, *at: int | str) -> None:
        """Report an error of the value of a key, or of the part at ``at``."""
        self.report.problem((*self.path, key, *at), self.key(key, *at), message)

    def place(self, key: str) -> str:
        """Return the place of the value of a key, for an error found later."""
        return self.report.place((*self.path, key), self.key(key))

    def warn(self, key: str, message: str) -> None:
        """Add a warning about a key, or about the table if the key is absent."""
        path = (*self.path, key) if key in self.values else self.path
        self.report.warn(path, self.key(key) if key in self.values else self.label, message)

    def key(self, key: str, *at: int | str) -> str:
        """Return the name of a key of this table, or of a part of its value; elements are counted from 1."""
        inner = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in at)
        return f"{self.label}.{key}{inner}" if self.label else f"{key}{inner}"

    def table(self, section: type[Section]) -> "Table":
        """Return the table of a section, or an empty one; report a value of another kind."""
        head = heading(section)
        key = head.key
        self._known[key] = None
        value = self.values.get(key, {})
        table = as_table(value)
        if table is None:
            self.problem(key, f"found {shown(value)}; accepted: a table, {head.header}")
        return Table(self.report, table, (*self.path, key), self.key(key))

    def tables(self, section: type[Section], *, may_be_none: bool = False) -> Iterator["Table"]:
        """Yield the tables of an array, labelled by their names; report other values, and too few tables."""
        head = heading(section)
        least = 0 if may_be_none else head.least
        key = head.key
        self._known[key] = None
        value = self.values.get(key, [])
        elements = as_array(value)
        if elements is None:
            self.problem(key, f"found {shown(value)}; accepted: an array of tables, each under its own {head.header}")
        elif len(elements) < least:
            self.report.problem((*self.path, key), self.key(key), f"there are none; write at least one {head.header}")
        for index, element in enumerate(elements or ()):
            table = as_table(element)
            if table is None:
                self.problem(key, f"found {shown(element)}; accepted: a table, {head.header}", index)
            else:
                label = self._label(key, index, table.get(head.named_by))
                yield Table(self.report, table, (*self.path, key, index), label)

    def _label(self, key: str, index: int, name: object) -> str:
        usable = isinstance(name, str) and 0 < len(name) <= 64 and name.isprintable()  # noqa: PLR2004 - as forms.NAME
        return self.key(f"{key}.{name}") if usable else self.key(key, index)

    def finish(self, elsewhere: Callable[[str], str] | None = None) -> None:
        """Report every unknown key. ``elsewhere`` says where a key is accepted; empty for an unknown one."""
        for key in self.values:
            if key not in self._known:
                accepted = meant(key, self._known) or f"; accepted: {', '.join(self._known)}"
                hint = (elsewhere(key) if elsewhere else "") or accepted
                self.problem(key, f"unknown key{hint}")


class Names:
    """The names so far, to find duplicates; case does not count, because file systems may ignore it."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[str, int | None]] = {}

    def is_new(self, table: Table, key: str, name: str) -> bool:
        """Tell whether a name is new; report a duplicate. An empty name is always new."""
        given = self._given.get(name.casefold())
        if name and given is None:
            self._given[name.casefold()] = name, table.report.line((*table.path, key))
        elif given is not None:
            other, line = given
            as_other = "" if other == name else f', but for upper and lower case, as "{other}"'
            table.problem(key, f'"{name}" is given twice{as_other}; first in line {line}')
        return given is None
