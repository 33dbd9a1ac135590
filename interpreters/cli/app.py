"""The ``lifefold`` command: its words, and which module answers each.

Only the standard library's argument parser is imported here, so that ``lifefold --help`` is there at once; a command
imports what it needs when it is called. Exit codes are public: 0 all is well, 1 something failed, 2 bad input,
3 an error of ours or of the machine, 130 left before the end.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn, Protocol

from lifefold.interpreters.cli.errors import BadInput

_COMMANDS = "lifefold.interpreters.cli.commands"
_KNOWN = "a name of `lifefold machines`, or module:attribute"


class _Commands(Protocol):
    """Where a command's parser is added; argparse has no public name for it."""

    def add_parser(self, *args: Any, **kwargs: Any) -> argparse.ArgumentParser:
        """Add one, and return it."""
        ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    _ready_to_speak()
    arguments = parser().parse_args(argv)
    if not hasattr(arguments, "command"):
        parser().print_help()
        return 0
    module, _, function = arguments.command.partition(":")
    try:
        code = int(getattr(import_module(f"{_COMMANDS}.{module}"), function)(arguments) or 0)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - those that are not foreseen are raised again
        return _failed(error)
    return code


def _failed(error: Exception) -> int:
    """Say what went wrong, and return the exit code for it; raise what is a mistake of this program."""
    import sqlite3  # noqa: PLC0415 - slow to import, and only an error needs it

    from lifefold.interpreters.store import Busy, StoreError  # noqa: PLC0415 - as above

    if isinstance(error, BadInput):
        return _complain(error, 2)
    if isinstance(error, Busy):
        return _complain(f"{error}; give the command again when that program is done", 3)
    if isinstance(error, StoreError | sqlite3.Error):
        return _complain(f"{error}\nlifefold status and lifefold log show what is there; then try again", 3)
    if isinstance(error, OSError):
        _give_up_output()
        return 0 if isinstance(error, BrokenPipeError) else _complain(error, 3)
    raise error


def _complain(what: object, code: int) -> int:
    print(f"lifefold: {what}", file=sys.stderr)
    return code


def _ready_to_speak() -> None:
    """Let any text be printed: with escapes where the encoding has no character, to nowhere if output is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the program's end
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _give_up_output() -> None:
    """Write nothing more: whoever was reading has gone. The interpreter would complain when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="lifefold",
        description="Run fleets of AI agents whose every lifecycle is a fold: (state, event) -> (state, effects).",
        epilog="Exit codes: 0 all is well, 1 something failed, 2 bad input, 3 an unexpected error, 130 left early.",
    )
    top.add_argument("--version", action=_ShowVersion, nargs=0, help="print the version")
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    for add in (_add_running, _add_asking, _add_telling, _add_check, _add_simulate, _add_showing):
        add(commands)
    return top


def _add_running(commands: _Commands) -> None:
    run = _add(
        commands, "run", "running:run", "run a fleet until every task is settled; run it again to go on after a crash"
    )
    run.add_argument("fleet", metavar="FLEET.toml", help="the fleet file")
    _log_option(run, "where the log is kept (default: .lifefold/NAME.db beside the fleet file)")
    _live_option(run)

    demo = _add(commands, "demo", "running:demo", "run a fleet of scripted agents on a real git repository made for it")
    demo.add_argument("--folder", metavar="PATH", help="where to make it (default: a new temporary folder)")
    _live_option(demo)

    init = _add(commands, "init", "making:init", "write a fleet file and a working example agent")
    init.add_argument("folder", nargs="?", default=".", help="where (default: here)")


def _add_asking(commands: _Commands) -> None:
    for name, about in (
        ("status", "the agents: what was asked of them, what the log says, and what is really there"),
        ("tasks", "the tasks: their states, owners, and why they failed"),
        ("log", "every transition that has happened, from the log"),
    ):
        command = _add(commands, name, f"asking:{name}", about)
        _log_option(command)
        command.add_argument("--json", action="store_true", help="print JSON")


def _add_telling(commands: _Commands) -> None:
    send = _add(
        commands, "send", "telling:send", "say something to an agent, urgently: it interrupts a running session"
    )
    send.add_argument("agent", metavar="AGENT", help="the agent's name, or 'all'")
    send.add_argument("text", metavar="TEXT", help="what to say")
    send.add_argument("--no-interrupt", action="store_true", help="let it wait for the next prompt")
    _log_option(send)

    stop = _add(
        commands, "stop", "telling:stop", "stop agents for good: their sessions end, and no run starts them again"
    )
    stop.add_argument("agent", metavar="AGENT", nargs="?", default="all", help="the agent's name (default: all)")
    _log_option(stop)


def _add_showing(commands: _Commands) -> None:
    machines = _add(commands, "machines", "showing:machines", "the lifecycles and systems known")
    machines.add_argument("--json", action="store_true", help="print JSON")
    table = _add(commands, "table", "showing:table", "a lifecycle's transition table")
    table.add_argument("machine", metavar="MACHINE", help=_KNOWN)
    table.add_argument(
        "--format",
        choices=("plain", "markdown", "json"),
        default="plain",
        help="json is a list of the transitions alone; the others have activities, timers and special states, too",
    )
    diagram = _add(commands, "diagram", "showing:diagram", "a lifecycle's state diagram")
    diagram.add_argument("machine", metavar="MACHINE", help=_KNOWN)
    diagram.add_argument("--format", choices=("mermaid", "dot", "scxml", "xstate"), default="mermaid")


def _add_simulate(commands: _Commands) -> None:
    simulate = _add(
        commands, "simulate", "simulating:simulate", "run a system in virtual time, under faults that a seed draws"
    )
    simulate.add_argument("target", metavar="TARGET", help=_KNOWN)
    simulate.add_argument("--seeds", metavar="N", type=_positive, help="try so many seeds (default: 100)")
    simulate.add_argument("--seed", metavar="S", type=_natural, help="begin with this one; alone, try it only")
    simulate.add_argument("--jobs", metavar="J", type=_positive, default=1, help="try several at a time")
    simulate.add_argument(
        "--hours", metavar="H", type=_positive, default=24, help="virtual hours under faults (default: 24)"
    )
    simulate.add_argument("--fault", metavar="NAME=RATE", action="append", help="how often a fault happens; or none")
    simulate.add_argument("--all-faults", action="store_true", help="let every run have all faults, not some")
    simulate.add_argument("--emit-test", metavar="FILE", help="write what is found as a test file for pytest")
    simulate.add_argument(
        "--soak",
        metavar="FOLDER",
        help="go on until stopped, from where the last one ended, and keep every seed that finds something",
    )
    simulate.add_argument("--json", action="store_true", help="print JSON")


def _add_check(commands: _Commands) -> None:
    check = _add(
        commands,
        "check",
        "checking:check",
        "look at every state that a lifecycle or a system can reach, and what it keeps",
    )
    check.add_argument("targets", metavar="TARGET", nargs="*", help=_KNOWN)
    check.add_argument("--states", metavar="N", type=_positive, help="meet so many states at most")
    check.add_argument("--depth", metavar="N", type=_positive, help="go so many steps from the beginning at most")
    check.add_argument("--seconds", metavar="S", type=_positive, help="search so long at most")
    check.add_argument("--memory", metavar="MIB", type=_positive, help="use so much memory at most")
    check.add_argument("--commands", metavar="N", type=_natural, help="let people say something so often at most")
    check.add_argument(
        "--symmetry",
        action="store_true",
        default=None,
        help="look at one state for all in which only the names of aggregates that are alike differ",
    )
    check.add_argument(
        "--accept-truncated", action="store_true", help="be content with a search that a limit has ended"
    )
    check.add_argument("--certificate", metavar="PATH", help="the file, or the folder, for what was proven")
    check.add_argument("--verify", action="store_true", help="tell whether the certificate still holds for this code")
    check.add_argument("--emit-test", metavar="FILE", help="write what is broken as a test file for pytest")
    check.add_argument("--json", action="store_true", help="print JSON")


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


class _ShowVersion(argparse.Action):
    """Prints the installed version, which is looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: object) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom asked for

        print(f"lifefold {version('lifefold')}")
        parser.exit()


def _add(commands: _Commands, name: str, command: str, about: str) -> argparse.ArgumentParser:
    added = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    added.set_defaults(command=command)
    return added


def _log_option(command: argparse.ArgumentParser, about: str = "the log (default: the one in .lifefold/)") -> None:
    command.add_argument("--db", metavar="PATH", help=about)


def _live_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--no-live", action="store_true", help="print plain lines instead of a live display")
