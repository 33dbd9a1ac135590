"""The display of a running fleet: a live picture on a terminal, plain lines elsewhere."""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import anyio

from lifefold.core.kernel import Reaction, Refusal
from lifefold.interpreters.cli import awaited, logs
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.colours import painted
from lifefold.interpreters.cli.desk_beside import Address
from lifefold.interpreters.cli.fitting import terminal_width
from lifefold.interpreters.cli.outlet import Outlet
from lifefold.interpreters.cli.pager import is_coloured
from lifefold.interpreters.cli.story import moves
from lifefold.interpreters.cli.story_lines import story_lines
from lifefold.interpreters.cli.watched import OfRunner, Watched
from lifefold.interpreters.cli.wording import as_typed, clock_time
from lifefold.interpreters.explain.chronicle import Chronicle
from lifefold.interpreters.fleet_runner import Runner

NOTICE_PAUSE_S: Final = 0.5
"""The delay of a notice, in seconds: its transition is printed first."""


class Display(Protocol):
    """Shows a runner while ``run`` runs."""

    async def run(self) -> None:
        """Show it until cancelled."""
        ...

    def leaving(self, words: str) -> None:
        """Show that the runner was asked to leave."""
        ...

    def give_up(self) -> None:
        """Restore the terminal, because the program ends at once."""
        ...


class ShownFleet(Watched, Protocol):
    """A fleet that is run and shown; a runner in this process has more to show."""

    @property
    def notices(self) -> Sequence[tuple[str, str]]:
        """All notices in their order, as agent and message."""
        ...


class Lines:
    """Prints the story, each notice, and each decision the fleet waits for.

    With ``transitions`` it prints each transition of a session, a task or a service in place of the story.
    """

    def __init__(self, runner: Runner | ShownFleet, account: Account, *, transitions: bool = False) -> None:
        """Begin to watch the runner. The account has the attempts at each task before."""
        self._chronicle = None if transitions else Chronicle(account.attempts)
        self._width, self._has_colours = terminal_width(), is_coloured()
        self._runner = runner
        self._account = account
        self._log = logs.option(runner.folder.log)
        self._notices = 0
        self._awaited: list[str] = []
        self._has_moved = True
        runner.observers.append(self._observe)

    async def run(self) -> None:
        """Print notices and decisions until cancelled; the observer prints transitions at once.

        A notice is printed after a delay, so that it stands below its transition. Notices from the start come first.
        """
        due = len(self._runner.notices)
        try:
            while True:
                self._print_notices(due)
                self._print_awaited()
                due = len(self._runner.notices)
                await anyio.sleep(NOTICE_PAUSE_S)
        finally:
            self._print_notices(len(self._runner.notices))

    def _observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        if isinstance(outcome, Reaction):
            self._has_moved = True
            for line in self._told(aggregate, outcome):
                print(line)

    def _told(self, aggregate: str, reaction: Reaction) -> Iterator[str]:
        """Yield the lines about one input."""
        if self._chronicle is None:
            yield from (happening.line() for happening in moves(aggregate, reaction))
            return
        for news, _ in self._chronicle.told(aggregate, reaction):
            for line in story_lines(news, self._width):
                yield painted(line, news.mood, colours=self._has_colours)

    def leaving(self, words: str) -> None:
        """Print it."""
        print(f"\n{words}", file=sys.stderr)

    def give_up(self) -> None:
        """Do nothing: lines stay as they are."""

    def _print_notices(self, due: int) -> None:
        """Print the notices before number ``due`` that are not printed yet."""
        for agent, message in self._runner.notices[self._notices : due]:
            self._notices += 1
            self._print_now(f"{agent}: {as_typed(message)}")

    def _print_awaited(self) -> None:
        """Print the decisions that the fleet waits for since the last call."""
        if self._has_moved and not self._runner.leaving:
            self._has_moved = False
            before = self._awaited
            waiting = awaited.waiting(self._runner.aggregates)
            self._awaited = list(awaited.lines(waiting, self._account.paused_by, self._log))
            for line in self._awaited:
                if line not in before:
                    self._print_now(line)

    def _print_now(self, words: str) -> None:
        print(f"{clock_time(self._runner.now_ms() / 1_000)}  ! {words}")


class Wanted(NamedTuple):
    """How a run is to be shown: ``live`` or in lines, those with ``transitions`` or the story, beside which desk."""

    live: bool
    transitions: bool
    address: Address


def display(runner: Runner | ShownFleet, account: Account, out: Outlet, wanted: Wanted) -> Display:
    """Return a display of a runner or a brain, live if wanted and if the output is a terminal."""
    if wanted.live and out.isatty() and os.environ.get("TERM", "") not in {"", "dumb", "unknown"}:
        from lifefold.interpreters.cli.live import Live  # noqa: PLC0415 - slow to import, and only a terminal needs it

        return Live(OfRunner(runner) if isinstance(runner, Runner) else runner, account, out, wanted.address)
    return Lines(runner, account, transitions=wanted.transitions)
