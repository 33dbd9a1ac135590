"""The live display: a picture of the fleet on the alternate screen of the terminal, redrawn until cancelled.

There no part of an earlier picture stays when the terminal changes its size. The last picture is printed on the usual
screen.
"""

from typing import Final

import anyio
from rich.console import Console
from rich.control import Control

from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.desk_beside import Address
from lifefold.interpreters.cli.outlet import Outlet
from lifefold.interpreters.cli.picture import Picture
from lifefold.interpreters.cli.watched import Watched

REFRESH_HZ: Final = 4

GIVE_UP_S: Final = 0.2
"""How long a program that ends at once waits for a stalled terminal, in seconds."""


class Live:
    """Draws the agents and the tasks on a terminal until cancelled."""

    def __init__(self, watched: Watched, account: Account, out: Outlet, address: Address) -> None:
        """Begin to watch a fleet, with the address of the desk beside its run."""
        self._picture = Picture(watched, account)
        self._address = address
        self._out = out
        self._console = Console(file=out)

    async def run(self) -> None:
        """Draw until cancelled; a picture is left out while the terminal is busy with the last one."""
        try:
            with self._console.screen() as screen:
                while True:
                    if self._out.idle:
                        self._console.control(Control.home())
                        screen.update(self._picture.draw(*self._console.size, self._address.text))
                    await anyio.sleep(1 / REFRESH_HZ)
        finally:
            self._console.print(self._picture.draw(*self._console.size))

    def leaving(self, words: str) -> None:
        """Do nothing: the next picture shows it."""

    def give_up(self) -> None:
        """Return to the usual screen, unless the terminal is stalled."""
        self._console.set_alt_screen(enable=False)
        self._console.show_cursor(show=True)
        self._out.finish(GIVE_UP_S)
