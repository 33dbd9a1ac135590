"""The grammar of the flight recorder: the commands for a log of any system, each with examples."""

import argparse

from lifefold.interpreters.cli.grammar_parts import (
    Commands,
    add_command,
    add_examples,
    at_option,
    log_option,
    natural,
    positive,
)


def add_recorder(commands: Commands) -> None:
    """Add the commands that replay, verify and fork a log."""
    for add in (_add_replay, _add_verify, _add_fork):
        add(commands)


def logs_argument(command: argparse.ArgumentParser) -> None:
    """Add ``[MODULE:SYSTEM] LOG``."""
    about = (
        "the log, a path or postgresql://... (default: the one in .lifefold/);"
        " before it, the system of a log that is no fleet's"
    )
    command.add_argument("log", metavar="[MODULE:SYSTEM] LOG", nargs="*", help=about)
    log_option(command)


def _add_replay(commands: Commands) -> None:
    replay = add_command(commands, "replay", "replaying:replay", "show a system as its log has it after an entry")
    logs_argument(replay)
    at_option(replay)
    replay.add_argument("--json", action="store_true", help="print JSON")
    add_examples(
        replay,
        ("replay --at 120", "the fleet of this folder after its entry 120"),
        ("replay fleet.db --at 2026-11-20T09:30", "at a time"),
        ("replay door:system door.db", "a system of your own, as it is now"),
    )


def _add_verify(commands: Commands) -> None:
    verify = add_command(
        commands,
        "verify",
        "auditing:verify",
        "tell whether a recorded run was allowed, or the first entry that was not",
    )
    logs_argument(verify)
    verify.add_argument(
        "--anchor", metavar="PATH", help="an anchor that was kept elsewhere (default: LOG.anchor, if it is there)"
    )
    verify.add_argument(
        "--certificate", metavar="PATH", help="a certificate, or a folder of them, that must be of the present rules"
    )
    verify.add_argument(
        "--chain", action="store_true", help="only whether the log is as it was written; no system needs to be named"
    )
    verify.add_argument("--json", action="store_true", help="print JSON")
    add_examples(
        verify,
        ("verify", "the log of the fleet of this folder"),
        ("verify fleet.db --chain", "whether entries were changed, removed or moved, and nothing else"),
        ("verify fleet.db --anchor /mnt/backup/fleet.db.anchor", "with an anchor kept elsewhere"),
        ("verify door:system door.db --json", "a system of your own, for a program"),
    )


def _add_fork(commands: Commands) -> None:
    fork = add_command(
        commands,
        "fork",
        "forking:fork",
        "go on otherwise from an entry of a log: search its next steps, or repeat them",
    )
    logs_argument(fork)
    at_option(fork)
    fork.add_argument("--steps", metavar="N", type=positive, help="search so many next steps (default: 4)")
    fork.add_argument(
        "--commands", metavar="N", type=natural, default=1, help="the most operator commands in them (default: 1)"
    )
    fork.add_argument("--states", metavar="N", type=positive, help="the most states to search (default: 200000)")
    fork.add_argument("--seconds", metavar="S", type=positive, help="the longest time of the search, in seconds")
    how = fork.add_mutually_exclusive_group()
    how.add_argument("--recorded", action="store_true", help="give the recorded inputs again instead of a search")
    how.add_argument(
        "--without-crash",
        action="store_true",
        help="give the recorded inputs again, without those by which a runner came back from a crash",
    )
    how.add_argument(
        "--write",
        metavar="LOG",
        help="write the entries until there as a log to try commands on: a path, or an address",
    )
    fork.add_argument("--pytest", metavar="FILE", help="write the state and the inputs as a test for pytest")
    fork.add_argument("--json", action="store_true", help="print JSON")
    add_examples(
        fork,
        ("fork --at 120", "which of the next 4 steps break a property"),
        ("fork --at 120 --pytest test_incident.py", "the shortest way to it, as a test"),
        ("fork --at 120 --without-crash", "what would have happened without the crash"),
        ("fork door:system door.db --at 7 --steps 8 --commands 2", "a system of your own"),
    )
