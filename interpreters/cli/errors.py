"""The error that ends a command with exit code 2, and the message for a file without permission."""

from collections.abc import Sequence
from typing import Final


class BadInput(Exception):
    """An argument, or a file that it names, is unusable; the message has the place, the problem and the remedy."""


class Ambiguous(BadInput):
    """Several logs are meant by a command; with ``option`` it is the command for one of them."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(message)
        self.option = option


FOR_ANOTHER: Final = "give the command as the owner of the file, or change its permissions"
"""The advice for a file that the user of this program may not read or write."""


def denied(error: PermissionError) -> str:
    """Return the message for a file without permission, with the advice."""
    return f"{error.filename}: {(error.strerror or 'permission denied').lower()}; {FOR_ANOTHER}"


def without_passwords(message: str) -> str:
    """Return a message without the passwords of addresses; the words that were typed may be in it."""
    if "://" not in message:
        return message
    from lifefold.interpreters.store.address import hidden  # noqa: PLC0415 - slow to import, and seldom needed

    return hidden(message)


def first_of(error: BaseException) -> BaseException:
    """Return the first error of a group, of whatever depth; any other error as it is."""
    inner: Sequence[BaseException] = getattr(error, "exceptions", ())
    return first_of(inner[0]) if inner else error
