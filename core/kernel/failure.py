"""What went wrong where a lifecycle is run: rules that raise, handlers that raise, and entities that are quarantined.

A reducer is to answer every input. One that raises has a mistake, and the log must not be poisoned by it: what raises
is refused, or, where no sender is there to be told, the entity is quarantined. A quarantined entity takes nothing more
until it is released; all that goes on for it is ended. What handlers have failed at stands in the log, too, so that a
runner that comes back goes on from there.
"""

from typing import Final

from lifefold.core.kernel.record import Event


class HandlerFailed(Event, frozen=True):
    """A handler has raised ``error``, for the ``attempt``-th time; it changes nothing.

    ``handler`` is the type that it handles. An effect is meant by ``version`` and ``index``, which are its identity, an
    activity by its ``slot`` and ``generation``. ``then`` says what follows: ``retry``, or the end of the policy.
    """

    handler: str
    attempt: int
    error: str
    then: str
    version: int = 0
    index: int = 0
    slot: str = ""
    generation: int = 0


class EntityQuarantined(Event, frozen=True):
    """The entity takes nothing more, for this reason, until it is released. All that goes on for it is ended."""

    reason: str


class EntityReleased(Event, frozen=True):
    """A quarantined entity goes on in the state that it is in, as if it had entered it now."""


class DecisionError(Exception):
    """Rules have raised an error: on which ``entity``, where, and which."""

    def __init__(self, entity: str, where: str, error: Exception) -> None:
        """Say what has raised what."""
        super().__init__(f"{where}: {type(error).__name__}: {error} (in {_innermost(error)})")
        self.entity: Final = entity
        self.error: Final = error


def _innermost(error: Exception) -> str:
    """Return the name of the function in which an error was raised."""
    name, trace = "the kernel", error.__traceback__
    while trace is not None:
        name, trace = trace.tb_frame.f_code.co_name, trace.tb_next
    return name
