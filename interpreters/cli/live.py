"""The live display: a picture of the fleet, drawn again and again on the terminal's other screen.

There nothing of an earlier picture is left when the terminal changes its size. The last one stays on the usual screen.
"""

from typing import Final

import anyio
from rich.console import Console
from rich.control import Control

from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.outlet import Outlet
from lifefold.interpreters.cli.picture import Picture
from lifefold.interpreters.fleet_runner import Runner

REFRESH_HZ: Final = 4

GIVE_UP_S: Final = 0.2
"""How long a terminal may take nothing before a program that ends at once leaves it as it is."""


class Live:
    """Draws the agents and the tasks, again and again, on a terminal."""

    def __init__(self, runner: Runner, account: Account, out: Outlet) -> None:
        """Begin to watch the runner."""
        self._picture = Picture(runner, account)
        self._out = out
        self._console = Console(file=out)

    async def run(self) -> None:
        """Draw until cancelled; a picture that the reader is not ready for is left out."""
        try:
            with self._console.screen() as screen:
                while True:
                    if self._out.idle:
                        self._console.control(Control.home())
                        screen.update(self._picture.draw(*self._console.size))
                    await anyio.sleep(1 / REFRESH_HZ)
        finally:
            self._console.print(self._picture.draw(*self._console.size))

    def leaving(self, words: str) -> None:
        """Do nothing: the next picture says it."""

    def give_up(self) -> None:
        """Go back to the usual screen, if the terminal listens."""
        self._console.set_alt_screen(enable=False)
        self._console.show_cursor(show=True)
        self._out.finish(GIVE_UP_S)
