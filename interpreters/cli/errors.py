"""The one error that ends a command with exit code 2, and what is said of a file that is not for this user."""

from typing import Final


class BadInput(Exception):
    """What was typed, or a file that it names, cannot be used; the message says what, where, and what is accepted."""


FOR_ANOTHER: Final = "give the command as the user whose file it is, or have its permissions changed"
"""What to do about a file that whoever runs this program may not read, or not write."""


def denied(error: PermissionError) -> str:
    """Say which file is not for this user, and what to do."""
    return f"{error.filename}: {(error.strerror or 'permission denied').lower()}; {FOR_ANOTHER}"
