"""Failures at run time: rules that raise, handlers that raise, and quarantined entities.

A reducer must answer every input. A reducer that raises has a defect, which must not poison the log. Its input is
refused, or, for an input without a sender to tell, the entity is quarantined. A quarantined entity accepts no input
until it is released, and all its activities are ended. The failures of handlers are in the log, too, so that a runner
continues from there after a restart.
"""

from typing import Final

from lifefold.core.kernel.record import Event


class HandlerFailed(Event, frozen=True):
    """A handler has raised ``error``, for the ``attempt``-th time; it changes nothing.

    ``handler`` is the type that it handles. ``version`` and ``index`` identify a failed effect, ``slot`` and
    ``generation`` a failed activity. ``then`` is the consequence: ``retry``, or the end of the policy.
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
    """The entity accepts no input until it is released, for this reason. All its activities are ended."""

    reason: str


class EntityReleased(Event, frozen=True):
    """A quarantined entity continues in its present state, as if it entered the state now."""


class DecisionError(Exception):
    """A rule, a guard or an action has raised an error; the message names the place and the error."""

    def __init__(self, entity: str, where: str, error: Exception) -> None:
        """Take the entity, the place and the error."""
        super().__init__(f"{where}: {type(error).__name__}: {error} (in {_innermost(error)})")
        self.entity: Final = entity
        self.error: Final = error


def _innermost(error: Exception) -> str:
    """Return the name of the function in which an error was raised."""
    name, trace = "the kernel", error.__traceback__
    while trace is not None:
        name, trace = trace.tb_frame.f_code.co_name, trace.tb_next
    return name
