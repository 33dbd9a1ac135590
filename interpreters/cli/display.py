"""What a person sees while a fleet runs: a live display on a terminal, plain lines elsewhere."""

import os
import sys
from typing import Final, Protocol

import anyio

from lifefold.core.kernel import Reaction, Refusal
from lifefold.interpreters.cli.outlet import Outlet
from lifefold.interpreters.cli.story import moves
from lifefold.interpreters.cli.words import clock_time
from lifefold.interpreters.run import Runner

NOTICE_PAUSE_S: Final = 0.5
"""How often notices are looked for."""


class Display(Protocol):
    """Shows a runner for as long as ``run`` runs."""

    async def run(self) -> None:
        """Show it until cancelled."""
        ...

    def leaving(self, words: str) -> None:
        """Be told that the runner was asked to leave, unless it is plain to see."""
        ...

    def give_up(self) -> None:
        """Leave the terminal as it was: the program ends at once."""
        ...


class Lines:
    """Prints a line for every transition of a session or a task, and for every fatal message."""

    def __init__(self, runner: Runner) -> None:
        """Begin to watch the runner."""
        self._runner = runner
        self._notices = 0
        runner.observers.append(self._observe)

    async def run(self) -> None:
        """Print notices as they come; transitions are printed by the observer."""
        while True:
            self._print_notices()
            await anyio.sleep(NOTICE_PAUSE_S)

    def _observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        for happening in moves(aggregate, outcome) if isinstance(outcome, Reaction) else ():
            print(happening.line())
        self._print_notices()

    def leaving(self, words: str) -> None:
        """Say so."""
        print(f"\n{words}", file=sys.stderr)

    def give_up(self) -> None:
        """Do nothing: lines stay as they are."""

    def _print_notices(self) -> None:
        for agent, message in self._runner.notices[self._notices :]:
            self._notices += 1
            print(f"{clock_time(self._runner.engine.clock.now_ms() / 1_000)}  ! {agent}: {message}")


def display(runner: Runner, out: Outlet, *, live: bool) -> Display:
    """Watch a runner, live if that is wanted and the output is a terminal."""
    if live and out.isatty() and os.environ.get("TERM", "") not in {"", "dumb", "unknown"}:
        from lifefold.interpreters.cli.live import Live  # noqa: PLC0415 - slow to import, and only a terminal needs it

        return Live(runner, out)
    return Lines(runner)
