"""The beginning of an agent's work, which is undone unless its start comes about."""

from collections import deque
from collections.abc import Callable
from typing import Self

from lifefold.core.kernel import RequestedEffect
from lifefold.effects import CallHook
from lifefold.interpreters.facades.status.errors import AlreadyRunning

Hook = Callable[[str, int], None]
"""Called with an agent's id and its incarnation."""

Who = tuple[str, int]
"""An agent's id and its incarnation."""


class Launching:
    """A launch that is undone unless the start comes about, and the only one of its agent that is ``under_way``."""

    def __init__(
        self,
        launch: Hook | None,
        release: Hook | None,
        failures: deque[Exception],
        under_way: "dict[Who, Launching]",
    ) -> None:
        """Take the two hooks, where to keep what ``release`` raises, and the launches of the same runtime."""
        self._launch, self._release, self._failures, self._under_way = launch, release, failures, under_way
        self._launched: Who | None = None

    def __enter__(self) -> Self:
        """Begin with nothing launched."""
        return self

    def prepare(self, effects: tuple[RequestedEffect, ...]) -> None:
        """Launch what a decision asks for, once for each incarnation; undo what only an earlier decision asked for.

        Raises ``AlreadyRunning`` if another call is at it, and what ``launch`` raises.
        """
        asked = (each.effect for each in effects)
        hook = next((effect for effect in asked if isinstance(effect, CallHook) and effect.before), None)
        who = None if hook is None else who_is(hook.arguments)
        if who != self._launched:
            self._undo()
            if who is not None:
                self._begin(who)

    def succeed(self) -> None:
        """Say that the start has come about."""
        self._forget()

    def _forget(self) -> None:
        if self._launched is not None:
            del self._under_way[self._launched]
        self._launched = None

    def _begin(self, who: Who) -> None:
        if self._under_way.setdefault(who, self) is not self:
            raise AlreadyRunning(who[0], "is being started by another call")
        try:
            if self._launch is not None:
                self._launch(*who)
        except BaseException:
            del self._under_way[who]
            raise
        self._launched = who

    def _undo(self) -> None:
        try:
            if self._launched is not None and self._release is not None:
                self._release(*self._launched)
        except Exception as error:  # noqa: BLE001 - user code: why the start did not come about is more important
            self._failures.append(error)
        finally:
            self._forget()

    def __exit__(self, *_error: object) -> None:
        """Undo what has not come about."""
        self._undo()


def who_is(arguments: tuple[str | int | bool, ...]) -> Who:
    """Return whom a hook is about: the agent's id and its incarnation."""
    agent_id, incarnation = arguments
    return str(agent_id), int(incarnation)
