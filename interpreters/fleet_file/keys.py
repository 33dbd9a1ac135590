"""The keys of a fleet file, each declared once for the reader, the documentation, and editors.

A table of the file is a class, and its keys are the attributes of that class:

    class TaskKeys(Section, header="[[tasks]]", named_by="id"):
        "What is to be done."

        priority = Key(integer(1, 1_000), "1 is the highest", 2)

``table.read(TaskKeys.priority)`` reads one. ``interpreters.fleet.schema`` makes the JSON Schema, and
``docs/write_fleet_file.py`` the tables of the documentation.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeGuard

import msgspec

from lifefold.interpreters.fleet_file.forms import Form, T_co


class Key(Generic[T_co]):
    """One key; its name is that of its attribute, without an underscore at the end.

    ``default`` is its meaning if it is absent, or wrong and reported. ``absent`` describes that meaning in words.
    ``when`` names another key, and the values of it with which this key is allowed; ``unless`` those with which it is
    not. ``narrow`` is a stricter form for
    such values of another key.
    """

    name: str

    def __init__(  # noqa: PLR0913 - each is said by its name
        self,
        form: Form[T_co],
        about: str,
        default: T_co,
        *,
        required: bool = False,
        absent: str = "",
        when: tuple[str, ...] = (),
        unless: tuple[str, ...] = (),
        narrow: "Narrow[T_co] | None" = None,
    ) -> None:
        self.form = form
        self.about = about
        self.default = default
        self.required = required
        self.absent = absent
        self.when = when
        self.unless = unless
        self.narrow = narrow

    def __set_name__(self, owner: type[object], name: str) -> None:
        """Take the name of the attribute."""
        self.name = name.removesuffix("_")

    def form_among(self, values: Mapping[str, object]) -> Form[T_co]:
        """Return the form that is accepted beside these values of other keys."""
        if self.narrow is not None and values.get(self.narrow.when[0]) in self.narrow.when[1:]:
            return self.narrow.form
        return self.form

    def default_as_written(self) -> object | None:
        """Return the default in the form of a file; None without one, or if a file cannot write it."""
        unwritten = self.required or self.absent or self.default in (None, "")
        return None if unwritten else self.form.write(self.default)


class Narrow(msgspec.Struct, Generic[T_co], frozen=True):
    """The form of a key if another key, the first of ``when``, has one of the values after it."""

    when: tuple[str, ...]
    form: Form[T_co]


def said(meanings: Mapping[Key[Any], object]) -> dict[str, object]:
    """Return keys with their values, in the form of a file."""
    return {key.name: None if meaning is None else key.form.write(meaning) for key, meaning in meanings.items()}


def said_but_defaults(meanings: Mapping[Key[Any], object]) -> dict[str, object]:
    """Return the same without defaults, so that a new key does not change the meaning of older files."""
    return said({key: meaning for key, meaning in meanings.items() if meaning != key.default})


class Heading(msgspec.Struct, frozen=True):
    """A section, besides its keys.

    ``header`` is its header in the file; empty for the file itself. ``named_by`` is the key that identifies one of
    several tables. ``one_of`` are keys of which exactly one is needed. ``least`` is the least number of tables.
    ``others`` describes further keys; if it is empty, there may be none.
    """

    header: str = ""
    named_by: str = ""
    one_of: tuple[str, ...] = ()
    least: int = 0
    others: str = ""

    @property
    def key(self) -> str:
        """The key of the section."""
        return self.header.strip("[]").rpartition(".")[2]

    @property
    def is_several(self) -> bool:
        """Whether the section is an array of tables."""
        return self.header.startswith("[[")


class Section:
    """A table of the file: its docstring describes it, its attributes are its keys and the sections within it.

    The arguments of the class statement are those of ``Heading``.
    """

    _heading: ClassVar = Heading()

    def __init_subclass__(cls, **heading: Any) -> None:
        cls._heading = Heading(**heading)


def heading(section: type[Section]) -> Heading:
    """Return the heading of a section."""
    return section._heading  # noqa: SLF001 - any other name might be a key's


def keys_of(section: type[Section]) -> Mapping[str, Key[Any]]:
    """Return the keys of a section by their names, in their order."""
    return {value.name: value for value in vars(section).values() if _is_key(value)}


def _is_key(value: object) -> TypeGuard[Key[Any]]:
    return isinstance(value, Key)


def sections_of(section: type[Section]) -> Mapping[str, type[Section]]:
    """Return the sections within a section by their keys."""
    found = (value for value in vars(section).values() if isinstance(value, type) and issubclass(value, Section))
    return {heading(inner).key: inner for inner in found}
