"""A table of a fleet file, read key by key: what is wrong goes into a report, and reading goes on."""

from collections.abc import Iterator, Mapping

from lifefold.interpreters.fleet_file.forms import T, meant
from lifefold.interpreters.fleet_file.keys import Key, Section, heading
from lifefold.interpreters.fleet_file.places import KeyPath
from lifefold.interpreters.fleet_file.problems import Report
from lifefold.interpreters.fleet_file.values import RefusedError, as_array, as_table, shown


class Table:
    """One table. ``label`` is what people call it, empty for the whole file; ``path`` leads to it.

    ``values`` is None where a table should be and something else is: nothing is missing there that is worth a word.
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
        """Return what a key means; its default if it is wrong, or absent: what of that is a mistake is reported."""
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
        """Report that a key is absent, or all of several of which one is needed."""
        self._known.update(dict.fromkeys(keys))
        if self._is_table:
            self.report.problem(self.path, self.label, f"{' or '.join(keys)} is missing")

    def problem(self, key: str, message: str, *at: int | str) -> None:
        """Report a problem with a key's value, or with the part of it to which ``at`` leads."""
        self.report.problem((*self.path, key, *at), self.key(key, *at), message)

    def place(self, key: str) -> str:
        """Return where a key's value stands, for what is found out about it only later."""
        return self.report.place((*self.path, key), self.key(key))

    def warn(self, key: str, message: str) -> None:
        """Add a warning about a key, or about the table if the key is absent."""
        path = (*self.path, key) if key in self.values else self.path
        self.report.warn(path, self.key(key) if key in self.values else self.label, message)

    def key(self, key: str, *at: int | str) -> str:
        """Return what people call a key of this table, or a part of its value; elements are counted from 1."""
        inner = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in at)
        return f"{self.label}.{key}{inner}" if self.label else f"{key}{inner}"

    def table(self, section: type[Section]) -> "Table":
        """Return the table of a section, an empty one if there is none; report anything else."""
        head = heading(section)
        key = head.key
        self._known[key] = None
        value = self.values.get(key, {})
        table = as_table(value)
        if table is None:
            self.problem(key, f"found {shown(value)}; accepted: a table, {head.header}")
        return Table(self.report, table, (*self.path, key), self.key(key))

    def tables(self, section: type[Section], *, may_be_none: bool = False) -> Iterator["Table"]:
        """Yield the tables of an array, each called by its name if it has one; report anything else, and too few."""
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

    def finish(self) -> None:
        """Report every key that nobody has asked for."""
        for key in self.values:
            if key not in self._known:
                hint = meant(key, self._known) or f"; accepted: {', '.join(self._known)}"
                self.problem(key, f"unknown key{hint}")


class Names:
    """The names given so far, to find one that is given twice; a file system may not tell upper from lower case."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[str, int | None]] = {}

    def is_new(self, table: Table, key: str, name: str) -> bool:
        """Tell whether nobody has this name yet; report it if somebody has. No name is always new."""
        given = self._given.get(name.casefold())
        if name and given is None:
            self._given[name.casefold()] = name, table.report.line((*table.path, key))
        elif given is not None:
            other, line = given
            as_other = "" if other == name else f', but for upper and lower case, as "{other}"'
            table.problem(key, f'"{name}" is given twice{as_other}; first in line {line}')
        return given is None
