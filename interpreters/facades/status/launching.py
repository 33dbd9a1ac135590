"""The launch of an agent's work, which is undone unless the start is saved."""

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
    """A launch that is undone unless the start is saved. An agent has at most one launch ``under_way``."""

    def __init__(
        self, launch: Hook | None, release: Hook | None, failures: deque[Exception], under_way: "dict[Who, Launching]"
    ) -> None:
        """Take the two hooks, a queue for errors of ``release``, and the launches of the same runtime."""
        self._launch, self._release, self._failures, self._under_way = launch, release, failures, under_way
        self._launched: Who | None = None

    def __enter__(self) -> Self:
        """Start without a launch."""
        return self

    def prepare(self, effects: tuple[RequestedEffect, ...]) -> None:
        """Launch the agent of a decision, once per incarnation; undo the launch of an earlier decision.

        Raises ``AlreadyRunning`` if another call is launching the agent, and errors of ``launch``.
        """
        requested = (each.effect for each in effects)
        hook = next((effect for effect in requested if isinstance(effect, CallHook) and effect.before), None)
        who = None if hook is None else who_is(hook.arguments)
        if who != self._launched:
            self._undo()
            if who is not None:
                self._begin(who)

    def succeed(self) -> None:
        """Keep the launch: the start is saved."""
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
        except Exception as error:  # noqa: BLE001 - user code: the error of the start is more important
            self._failures.append(error)
        finally:
            self._forget()

    def __exit__(self, *_error: object) -> None:
        """Undo a launch without a saved start."""
        self._undo()


def who_is(arguments: tuple[str | int | bool, ...]) -> Who:
    """Return the arguments of a hook: the agent's id and its incarnation."""
    agent_id, incarnation = arguments
    return str(agent_id), int(incarnation)
