"""Git commands that are cut off, or before which something happens: a runner dies in any of them."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from lifefold.interpreters.worktrees.git import PLAIN, Answer, Git, Way

WRITING = frozenset(
    "add checkout clean commit commit-tree fetch merge merge-tree push symbolic-ref update-ref worktree".split()
)


class Cut(Exception):
    """The process has ended here."""


class Faults:
    """Cuts an operation off at one of its git commands that write, or does something just before a command begins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._left: int | None = None
        self._scope: anyio.CancelScope | None = None
        self._before: dict[str, Callable[[], object]] = {}
        real = Git.run

        async def run(this: Git, *arguments: str, accept: range | tuple[int, ...] = (0,), way: Way = PLAIN) -> Answer:
            for word in [word for word in self._before if word in arguments]:
                self._before.pop(word)()
            writes = not WRITING.isdisjoint(arguments) and "--quiet" not in arguments[1:2]
            if self._left is not None and (writes or "checkout" in arguments):
                self._left -= 1
                if self._left < 0:
                    self._cut()
            return await real(this, *arguments, accept=accept, way=way)

        monkeypatch.setattr(Git, "run", run)

    def _cut(self) -> None:
        if self._scope is None:
            raise Cut
        self._scope.cancel()

    def before(self, command: str, action: Callable[[], object]) -> None:
        """Do something once, before the next git command of that name."""
        self._before[command] = action

    async def crash(self, operation: Callable[[], Awaitable[object]], *, after: int) -> bool:
        """Perform an operation, and crash after so many git commands; return whether it ended before that."""
        self._left = after
        try:
            await operation()
        except Cut:
            return False
        finally:
            self._left = None
        return True

    async def cancel(self, operation: Callable[[], Awaitable[object]], *, after: int) -> bool:
        """Perform an operation, and cancel it in the git command after so many; return whether it ended before that."""
        with anyio.CancelScope() as self._scope:
            await self.crash(operation, after=after)
        cancelled, self._scope = self._scope.cancel_called, None
        return not cancelled
