"""The one error that ends a command with exit code 2."""


class BadInput(Exception):
    """What was typed, or a file that it names, cannot be used; the message says what, where, and what is accepted."""
