"""A table of a fleet file, read key by key: what is wrong goes into a report, and reading goes on."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from lifefold.interpreters.fleet.places import KeyPath
from lifefold.interpreters.fleet.problems import Report
from lifefold.interpreters.fleet.values import Parser, RefusedError, T, as_array, as_table, shown


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

    def optional(self, key: str, parse: Parser[T], default: T) -> T:
        """Return what a key means; the default if it is absent, or if it is wrong, which is then reported."""
        self._known[key] = None
        if key not in self.values:
            return default
        try:
            return parse(self.values[key])
        except RefusedError as refused:
            self.problem(key, str(refused), *refused.at)
            return default

    def required(self, key: str, parse: Parser[T], otherwise: T) -> T:
        """Return what a key means; ``otherwise`` if it is absent or wrong, which is then reported."""
        if key not in self.values:
            self.missing(key)
        return self.optional(key, parse, otherwise)

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

    def table(self, key: str) -> "Table":
        """Return the table under a key, an empty one if there is none; report anything else."""
        self._known[key] = None
        value = self.values.get(key, {})
        table = as_table(value)
        if table is None:
            self.problem(key, f"found {shown(value)}; accepted: a table, [{key}]")
        return Table(self.report, table, (*self.path, key), self.key(key))

    def tables(self, key: str, named_by: str, *, least: int = 1) -> Iterator["Table"]:
        """Yield the tables of an array, each called by its name if it has one; report anything else, and too few."""
        self._known[key] = None
        value = self.values.get(key, [])
        elements = as_array(value)
        if elements is None:
            self.problem(key, f"found {shown(value)}; accepted: an array of tables, each under its own [[{key}]]")
        elif len(elements) < least:
            self.report.problem((*self.path, key), self.key(key), f"there are none; write at least one [[{key}]]")
        for index, element in enumerate(elements or ()):
            table = as_table(element)
            if table is None:
                self.problem(key, f"found {shown(element)}; accepted: a table, [[{key}]]", index)
            else:
                label = self._label(key, index, table.get(named_by))
                yield Table(self.report, table, (*self.path, key, index), label)

    def _label(self, key: str, index: int, name: object) -> str:
        usable = isinstance(name, str) and 0 < len(name) <= 64 and name.isprintable()  # noqa: PLR2004 - as values.NAME_FORM
        return self.key(f"{key}.{name}") if usable else self.key(key, index)

    def finish(self) -> None:
        """Report every key that nobody has asked for."""
        for key in self.values:
            if key not in self._known:
                close = get_close_matches(key, self._known, n=1)
                hint = f'did you mean "{close[0]}"?' if close else f"accepted: {', '.join(self._known)}"
                self.problem(key, f"unknown key; {hint}")


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
