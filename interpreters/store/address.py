"""The address of a log on a PostgreSQL server: ``postgresql://USER@HOST:PORT/DATABASE?log=NAME``.

It is libpq's connection URL with one parameter more. ``log`` is the name of the log, and of its schema in the
database; without it the name is ``lifefold``. All other parameters are libpq's, such as ``sslmode``.

A password in an address is taken out when the address is read. This process keeps it apart and gives it to the server
only. So no message, file, title or ``repr`` has it. Without one libpq asks ``PGPASSWORD``, ``~/.pgpass`` and the
service file.
"""

import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from lifefold.interpreters.store.errors import NotAStore

SCHEMES: Final = ("postgresql://", "postgres://")

DEFAULT_LOG: Final = "lifefold"
"""The name of the log of an address without ``log``."""

_SECRETS: Final[tuple[str, ...]] = ("password", "sslpassword")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_RESERVED: Final = frozenset({"public", "information_schema"})
_ACCEPTED: Final = "accepted: postgresql://USER@HOST:PORT/DATABASE?log=NAME, with %40 for @ and %2F for / in a password"

_secrets: Final[dict[str, dict[str, str]]] = {}


class Address(NamedTuple):
    """A log on a server: libpq's URL without secrets, and the name of the log."""

    url: str
    log: str

    def __str__(self) -> str:
        """Return the address as an operator types it, without secrets."""
        return f"{self.url}{'&' if '?' in self.url else '?'}log={self.log}"

    def named(self, log: str) -> "Address":
        """Return the address of another log in the same database. Raises ``NotAStore`` for an unusable name."""
        return Address(self.url, _checked_name(log))


def is_address(text: str) -> bool:
    """Tell whether a text is meant as the address of a log on a server."""
    return text.startswith(SCHEMES)


def read_address(text: str) -> Address:
    """Return the address in a text, and keep its password in this process.

    Raises ``NotAStore`` with a message that has no part of the text, because a password may be anywhere in it.
    """
    parts = urlsplit(text)
    if not is_address(text) or parts.fragment or "@" in parts.path + parts.query:
        raise NotAStore(f"the address of the log cannot be read; {_ACCEPTED}")
    user, _, hosts = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    try:
        given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise NotAStore(f"the parameters in the address of the log cannot be read; {_ACCEPTED}") from error
    secrets = {each: given.pop(each) for each in _SECRETS if each in given}
    if password:
        secrets["password"] = unquote(password)
    log = _checked_name(given.pop("log", DEFAULT_LOG))
    query = urlencode(given, safe="/", quote_via=quote)
    where = "".join(filter(None, (f"{name}@" if name else "", hosts)))
    url = f"postgresql://{where}{parts.path}" + (f"?{query}" if query else "")
    if secrets:
        _secrets[url] = secrets
    return Address(url, log)


def secrets_of(address: Address) -> dict[str, str]:
    """Return the passwords that this process has read for an address, by libpq's names; to be given to libpq only."""
    return dict(_secrets.get(address.url, {}))


def hidden(text: str) -> str:
    """Return a message without the passwords of addresses in it; words that were typed may be in a message."""
    return _IN_QUERY.sub(r"\1***", _IN_ADDRESS.sub(r"\1:***@", text))


_IN_ADDRESS: Final = re.compile(r"(postgres(?:ql)?://[^:/?#\s]*):\S*@")
_IN_QUERY: Final = re.compile(r"((?:ssl)?password=)[^&\s]*")


def _checked_name(log: str) -> str:
    if not _NAME.fullmatch(log) or log.startswith("pg_") or log in _RESERVED:
        raise NotAStore(
            "the name of the log in its address cannot be used; accepted: log=NAME, at most 63 of A-Z, a-z, 0-9, '_',"
            " '.' and '-', which is not 'public' and does not begin with 'pg_'"
        )
    return log
