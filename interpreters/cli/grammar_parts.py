"""What the grammars of the commands share: how a command is added, its common options, and types of arguments."""

import argparse
import re
from typing import Any, Protocol

KNOWN = "a name of `lifefold machines`, a fleet such as fleet-governed, or module:attribute"


class Commands(Protocol):
    """The collection of commands; argparse has no public name for its type."""

    def add_parser(self, *args: Any, **kwargs: Any) -> argparse.ArgumentParser:
        """Add a parser, and return it."""
        ...


def natural(text: str) -> int:
    """Return a whole number from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """Return a whole number from 1 on."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def hours(text: str) -> float:
    """Return a number of hours above 0."""
    if re.fullmatch(r"\d{1,6}(\.\d+)?", text) is None or float(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours above 0, as 6 or 0.5")
    return float(text)


def task_name(text: str) -> str:
    """Return the name of a task, also of one that is written as where an agent can have the name: ``task:NAME``."""
    return text.removeprefix("task:")


def add_command(commands: Commands, name: str, command: str, about: str) -> argparse.ArgumentParser:
    """Add a command, which the function ``command`` of a module of ``commands`` answers."""
    added = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    added.set_defaults(command=command)
    return added


def rest_option(command: argparse.ArgumentParser) -> None:
    """Add ``--rest``."""
    about = "with --accept: leave changed tasks that are over as they are, and accept the rest"
    command.add_argument("--rest", action="store_true", help=about)


def reason_option(command: argparse.ArgumentParser, flag: str = "--reason", about: str = "why") -> None:
    """Add a text that enters the log as the reason."""
    command.add_argument(flag, metavar="TEXT", default="", help=about)


def log_option(
    command: argparse.ArgumentParser,
    about: str = "the log, a path or postgresql://... (default: the one in .lifefold/)",
) -> None:
    """Add ``--db``."""
    command.add_argument("--db", metavar="PATH", help=about)


def at_option(command: argparse.ArgumentParser) -> None:
    """Add ``--at``."""
    about = "as it was then: the position of an entry, as 120, a time, as 2026-11-20T09:30, or -5m for five minutes ago"
    command.add_argument("--at", metavar="WHEN", help=about)


def answers_option(
    command: argparse.ArgumentParser,
    name: str,
    about: str = "print each answer as an object of JSON",
    *,
    has_key: bool = True,
) -> None:
    """Add ``--json`` and ``--key`` to a command that acts; ``name`` is the command in its answers.

    A command that leaves no entry in a log ``has_key`` False.
    """
    command.add_argument("--json", action="store_true", help=about)
    command.set_defaults(answers=name, key="")
    if has_key:
        about = "a name of this command; a log accepts each key once"
        command.add_argument("--key", metavar="KEY", default="", help=about)


def live_option(command: argparse.ArgumentParser) -> None:
    """Add ``--no-live`` and ``--transitions``."""
    command.add_argument("--no-live", action="store_true", help="print the story in lines instead of a live display")
    command.add_argument(
        "--transitions",
        action="store_true",
        help="print each transition of a session, a task or a service, instead of the story",
    )


def add_examples(command: argparse.ArgumentParser, *examples: tuple[str, str]) -> None:
    """Add examples to the help of a command; each is what is typed after ``lifefold``, and what it does."""
    width = max(len(typed) for typed, _ in examples)
    lines = [f"  lifefold {typed:<{width}}  # {about}" for typed, about in examples]
    command.epilog = "\n".join(("examples:", *lines))
    command.formatter_class = argparse.RawDescriptionHelpFormatter
