"""Processes with fences beside the sessions of agents, such as the commands of a verification.

A host renews the fence of an activity while its server acknowledges it. The shim of a command ends the command at its
fence. So a command of a lost host is over before another host repeats it.
"""

import contextlib
from pathlib import Path
from typing import Final

import anyio

from lifefold.core.cluster import fencing
from lifefold.interpreters.processes.session_files import (
    Fence,
    SessionError,
    SessionExit,
    SessionSpec,
    ShimUnresponsiveError,
)
from lifefold.interpreters.processes.session_process import SessionProcess, launch
from lifefold.interpreters.processes.shim import proc
from lifefold.interpreters.processes.shim.fence import PASSED


class PastFenceError(SessionError):
    """A process has ended at its fence, or was not started past it: another host may have its work."""


def must_be_before_its_fence(ended: SessionExit) -> None:
    """Raise ``PastFenceError`` if a process was not begun past its fence, or has ended there."""
    if is_at_its_fence(ended):
        raise PastFenceError(ended.message)


def is_at_its_fence(ended: SessionExit) -> bool:
    """Tell whether a process was not begun past its fence, or has ended there: another host may have its work."""
    return ended.outcome == "lease-expired" or (ended.outcome == "spawn-failed" and PASSED in ended.message)


class FencedProcesses:
    """Starts processes under names, one at a time under each, and moves their fences."""

    def __init__(self) -> None:
        """Begin without fences: a process without one lives until it ends."""
        self._fences: Final[dict[str, Fence]] = {}
        self._live: Final[dict[str, SessionProcess]] = {}
        self._renewed = anyio.Event()

    async def renew(self, name: str, fence: Fence) -> None:
        """Let the present and the next process under a name live until this fence."""
        self._fences[name] = fence
        self._renewed.set()
        self._renewed = anyio.Event()
        process = self._live.get(name)
        if process is not None:
            await _renew(process, fence)

    async def start(self, name: str, directory: Path, spec: SessionSpec) -> SessionProcess:
        """Start a process as ``launch`` does, with the fence of its name. Raises ``PastFenceError`` past it."""
        fence = self._fences.get(name)
        if _has_passed(fence):
            raise PastFenceError(f"nothing was started in {directory}: its fence has passed")
        process = self._live[name] = await launch(directory, spec, fence=fence)
        now = self._fences.get(name)
        if now is not None and now != fence:
            await _renew(process, now)
        return process

    async def until_renewed(self, name: str) -> None:
        """Return once the fence of a name has not passed: this host still has the work then."""
        while _has_passed(self._fences.get(name)):
            await self._renewed.wait()

    def forget(self, name: str) -> None:
        """Forget the process and the fence of a name: its work is over here."""
        self._fences.pop(name, None)
        self._live.pop(name, None)


def _has_passed(fence: Fence | None) -> bool:
    return fence is not None and fencing.Fence(fence.until_boot_ms).seen_at(proc.boot_ms()).has_passed


async def _renew(process: SessionProcess, fence: Fence) -> None:
    with contextlib.suppress(ShimUnresponsiveError):  # a frozen shim; its fence ends the process
        await process.renew_fence(fence)
