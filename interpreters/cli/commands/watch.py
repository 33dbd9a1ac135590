"""The command ``watch``: the live display of a fleet from another terminal, with keys for what waits.

The process only reads the log. A key gives the command of the command line that it stands for, in a process of its own.
"""

import os
import select
import signal
import subprocess
import sys
import termios
import tty
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Final

from rich.console import Console
from rich.control import Control

from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.names import known
from lifefold.interpreters.cli.watch_keys import Order, Screen, keys_of, press, settled
from lifefold.interpreters.cli.watch_picture import WatchPicture
from lifefold.interpreters.cli.watched import Followed
from lifefold.interpreters.desk import registry
from lifefold.interpreters.fleet_file import FleetFileError, load
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.store import LogStore

LOOK_S: Final = 0.25
"""The longest time between two looks at the log and at the keys, in seconds."""

DRAW_S: Final = 1.0
"""The time after which the picture is drawn again without anything new, because ages grow."""

TYPED_BYTES: Final = 4_096
"""The most bytes that are read of the keyboard at once."""


LEFT: Final = 130
"""The exit code of a command that the operator has left by Ctrl-C."""


def watch(arguments: Namespace) -> None:
    """Show a fleet until the operator quits."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "") in {"", "dumb", "unknown"}:
        raise BadInput(
            "watch draws on a terminal, and this is none; accepted: lifefold log --follow, which prints lines"
        )
    with logs.peek(str(_log(arguments.fleet)) if arguments.fleet else None) as store:
        _Watch(store).run()


def _log(given: str) -> Path:
    """Return the log that is named, by itself, by a fleet file, or by a fleet. Raises ``BadInput``."""
    path = Path(given)
    if path.suffix == ".toml":
        try:
            fleet = load(path, watch=True)
        except FleetFileError as error:
            raise BadInput(str(error)) from error
        return logs.default_log(fleet.source, fleet.name)
    if path.exists():
        return path
    found = registry.found()
    named = [each.log for each in found if each.fleet == given]
    if not named:
        names = known(given, [*dict.fromkeys(each.fleet for each in found)])
        raise BadInput(f"{given}: is no log, no fleet file, and no fleet of this machine: {names}")
    return Path(named[0])


class _Watch:
    """The screen of one watched fleet."""

    def __init__(self, store: LogStore) -> None:
        ledger, account, further = logs.begun(store)
        self._followed: Final = Followed(store, ledger)
        self._followed.observers.append(account.observe)
        self._picture: Final = WatchPicture(self._followed, account)
        self._followed.take(further)
        self._console: Final = Console()
        self._screen = Screen()
        self._given: tuple[str, subprocess.Popen[bytes]] | None = None

    def run(self) -> None:
        """Show the fleet until the operator quits."""
        while not self._screen.quits:
            order = self._watched()
            if order is not None:
                self._show(order)

    def _watched(self) -> Order | None:
        """Draw, and take keys, until the operator quits or wants to see something; return that command."""
        drawn_s = float("-inf")
        with _keyboard() as keyboard, self._console.screen() as shown:
            while not self._screen.quits:
                is_new = self._followed.look()
                is_new = self._heard() or is_new
                if is_new or monotonic() - drawn_s >= DRAW_S:
                    self._screen = settled(self._screen, self._picture.items())
                    self._console.control(Control.home())
                    shown.update(self._picture.drawn(self._screen, *self._console.size))
                    drawn_s = monotonic()
                for key in keys_of(_typed(keyboard)):
                    self._screen, order = press(self._screen, self._picture.items(), key)
                    drawn_s = float("-inf")
                    if order is not None and order.shows:
                        return order
                    if order is not None:
                        self._give(order)
        return None

    def _give(self, order: Order) -> None:
        """Give a command to the fleet, in a process of its own; one at a time."""
        if self._given is not None:
            self._say("the last command has not been answered yet")
            return
        said = " ".join(order.words)
        process = subprocess.Popen(  # noqa: S603 - this program
            self._command(order), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._given = said, process
        self._say(f"lifefold {said} …")

    def _heard(self) -> bool:
        """Show the answer of the command under way; return whether there was one."""
        if self._given is None or self._given[1].poll() is None:
            return False
        (_, process), self._given = self._given, None
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        with process.stdout as output:
            self._say(" ".join(plain(output.read()).split()) or "done")
        return True

    def _say(self, words: str) -> None:
        self._screen = Screen(self._screen.at, self._screen.place, said=words)

    def _show(self, order: Order) -> None:
        """Run a command on the usual screen, until it ends and the operator returns; Ctrl-C does both."""
        before = signal.signal(signal.SIGINT, _leave_to_the_command)
        try:
            leave = "  (Ctrl-C returns)" if "--follow" in order.words else ""
            print(f"$ lifefold {' '.join(order.words)}{leave}", flush=True)
            if subprocess.call(self._command(order)) == LEFT:  # noqa: S603 - this program
                return
            with _keyboard() as keyboard:
                print("-- any key returns --", flush=True)
                select.select([keyboard], [], [])
                _typed(keyboard)
        finally:
            signal.signal(signal.SIGINT, before)

    def _command(self, order: Order) -> list[str]:
        words = (sys.executable, "-m", "lifefold.interpreters.cli", *order.words)
        return [*words, "--db", str(self._followed.store.path)]


def _leave_to_the_command(_number: int, _frame: object) -> None:
    """Do nothing. A handler, unlike an ignored signal, is not inherited by the command."""


@contextmanager
def _keyboard() -> Generator[int]:
    """Read keys one by one and without an echo; the terminal is as before afterwards.

    A key that was typed before is kept: an operator need not wait until the program reads.
    """
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard, termios.TCSADRAIN)
        yield keyboard
    finally:
        with suppress(termios.error):
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _typed(keyboard: int) -> str:
    """Return what is typed within a moment; the end of the input quits."""
    if not select.select([keyboard], [], [], LOOK_S)[0]:
        return ""
    text = os.read(keyboard, TYPED_BYTES)
    return text.decode("utf-8", "ignore") if text else "q"
