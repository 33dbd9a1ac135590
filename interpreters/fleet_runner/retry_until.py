"""Doing again what fails for a reason that may pass, and telling people what it waits for."""

import math
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio

T = TypeVar("T")

PAUSE_S: Final = 3.0
"""How long it is waited before something is tried again."""


async def pause() -> None:
    """Wait before something is tried again."""
    await anyio.sleep(PAUSE_S)


async def patiently(
    work: Callable[[], Awaitable[T]],
    passing: tuple[type[Exception], ...],
    tell: Callable[[str], None],
    *,
    limit_s: float = math.inf,
    pause: Callable[[], Awaitable[None]] = pause,
) -> T:
    """Do some work again until it raises none of the errors ``passing``; ``tell`` of each.

    Between two tries there is a ``pause``. After ``limit_s`` the error is raised.
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
