"""The beginning of an agent's work, which is undone unless its start comes about."""

from collections import deque
from collections.abc import Callable
from typing import Self

from lifefold.core.kernel import Asked
from lifefold.effects import CallHook

Hook = Callable[[str, int], None]
"""Called with an agent's id and its incarnation."""


class Launching:
    """A launch that is undone unless the start comes about."""

    def __init__(self, launch: Hook | None, release: Hook | None, failures: deque[Exception]) -> None:
        """Take the two hooks, and where to keep what ``release`` raises."""
        self._launch, self._release, self._failures = launch, release, failures
        self._launched: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        """Begin with nothing launched."""
        return self

    def prepare(self, effects: tuple[Asked, ...]) -> None:
        """Launch what a decision asks for, once for each incarnation that is tried."""
        hooks = [each.effect for each in effects if isinstance(each.effect, CallHook) and each.effect.before]
        for hook in hooks:
            who = who_is(hook.arguments)
            if who != self._launched:
                self._undo()
                if self._launch is not None:
                    self._launch(*who)
                self._launched = who

    def succeed(self) -> None:
        """Say that the start has come about."""
        self._launched = None

    def _undo(self) -> None:
        launched, self._launched = self._launched, None
        if launched is not None and self._release is not None:
            try:
                self._release(*launched)
            except Exception as error:  # noqa: BLE001 - user code: why the start did not come about is more important
                self._failures.append(error)

    def __exit__(self, *_error: object) -> None:
        """Undo what has not come about."""
        self._undo()


def who_is(arguments: tuple[str | int | bool, ...]) -> tuple[str, int]:
    """Return whom a hook is about: the agent's id and its incarnation."""
    agent_id, incarnation = arguments
    return str(agent_id), int(incarnation)
