"""The refusal to begin of whoever performs effects and has no handler for one of them; engines and handles share it."""


class MissingHandlersError(Exception):
    """What is to be served asks for more than there are handlers for; the message names all that have none."""
