"""Retrying work that fails for a passing reason, and showing the operator the wait."""

import math
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio

T = TypeVar("T")

PAUSE_S: Final = 3.0
"""The pause before the next try, in seconds."""


async def pause() -> None:
    """Wait before the next try."""
    await anyio.sleep(PAUSE_S)


async def patiently(
    work: Callable[[], Awaitable[T]],
    passing: tuple[type[Exception], ...],
    tell: Callable[[str], None],
    *,
    limit_s: float = math.inf,
    pause: Callable[[], Awaitable[None]] = pause,
) -> T:
    """Repeat some work until it raises none of the errors ``passing``; pass each to ``tell``.

    A ``pause`` separates two tries. After ``limit_s`` the error is raised.
    """
    until_s = anyio.current_time() + limit_s
    while True:
        try:
            return await work()
        except passing as error:
            if anyio.current_time() >= until_s:
                raise
            tell(str(error))
        await pause()
