"""Where the login of an agent program can be seen without a request: names of variables and files, as data.

``login_of`` is the adapter's own description, an optional attribute ``login``. A login that is there can be refused,
and a program can have one in a place that only it can read. So nothing here says that a program is *not* logged in.
"""

from collections.abc import Container
from typing import Any, Final

import msgspec

from lifefold.interpreters.adapters.adapter import Adapter


class LoginFile(msgspec.Struct, frozen=True):
    """A file with a login: ``name`` in ``folder`` of the home folder, or in the folder that ``variable`` names."""

    folder: str
    name: str
    variable: str = ""


class Login(msgspec.Struct, frozen=True):
    """How a program logs in.

    Each of ``variables`` alone is a login, and so is each of ``files``. A session gets ``settings``, too: variables
    that say how or where the program logs in. ``elsewhere`` names places that cannot be looked at; an empty one says
    that there is none.
    """

    variables: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    files: tuple[LoginFile, ...] = ()
    elsewhere: str = ""

    @property
    def passed(self) -> tuple[str, ...]:
        """The variables that a session gets."""
        return tuple(sorted({*self.variables, *self.settings, *(each.variable for each in self.files)} - {""}))

    def variable_of(self, names: Container[str]) -> str:
        """Return the first variable among those that are set; empty if none is."""
        return next((each for each in self.variables if each in names), "")


UNKNOWN: Final = Login(elsewhere="the adapter does not say where the program logs in")
"""The login of an adapter without a description."""


def login_of(adapter: Adapter[Any]) -> Login:
    """Return where the login of a program can be seen."""
    found = getattr(adapter, "login", UNKNOWN)
    return found if isinstance(found, Login) else UNKNOWN
