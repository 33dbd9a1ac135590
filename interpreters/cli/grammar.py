"""The grammar of the ``lifefold`` command: its words, their options, and the function that answers each.

This module imports only the argument parser of the standard library, so that ``lifefold --help`` answers at once.
"""

import argparse
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from lifefold.interpreters.cli.errors import without_passwords
from lifefold.interpreters.cli.grammar_of_cluster import add_cluster
from lifefold.interpreters.cli.grammar_of_desk import add_reading
from lifefold.interpreters.cli.grammar_of_examples import illustrate
from lifefold.interpreters.cli.grammar_of_exports import add_exports
from lifefold.interpreters.cli.grammar_of_machines import add_check, add_showing, add_simulate
from lifefold.interpreters.cli.grammar_of_operators import (
    add_budget,
    add_deciding,
    add_giving,
    add_more,
    add_telling,
    add_trusting,
)
from lifefold.interpreters.cli.grammar_of_recorder import add_recorder, logs_argument
from lifefold.interpreters.cli.grammar_of_tasks import add_cleaning, add_editing
from lifefold.interpreters.cli.grammar_parts import (
    Commands,
    add_command,
    answers_option,
    at_option,
    live_option,
    log_option,
    natural,
    rest_option,
    task_name,
)


class _Parser(argparse.ArgumentParser):
    """A parser that says which fleet files are there, if a command lacks one."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and exit with status 2."""
        is_missing = message.endswith("required: FLEET.toml")
        super().error(f"{message}; {_fleet_files()}" if is_missing else without_passwords(message))

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - the base class has overloads
        self, args: Any = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Refuse unknown arguments with the usage of this command, not with that of the whole program."""
        found, more = super().parse_known_args(args, namespace)
        if more:
            self.error(f"unrecognized arguments: {' '.join(more)}")
        return found, more


def _fleet_files() -> str:
    """Return which fleet files are in this folder, by their names, or the command that writes one."""
    found = sorted(each.name for each in Path().glob("*.toml") if each.name != "pyproject.toml")
    return f"here: {', '.join(found[:5])}" if found else "lifefold init writes one"


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line; a process makes it once, and parsing does not change it."""
    top = _Parser(
        prog="lifefold",
        description="Run fleets of AI agents whose every lifecycle is a fold: (state, event) -> (state, effects).",
        epilog="Exit codes: 0 success, 1 something failed, 2 bad input, 3 an unexpected error, 4 held"
        " (run --no-wait), 130 left early.",
    )
    top.add_argument("--version", action=_ShowVersion, nargs=0, help="print the version")
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    acting = (add_telling, add_trusting, add_deciding, add_budget, add_giving, add_editing, add_more, add_cleaning)
    reading = (_add_desk, _add_asking, add_reading, add_recorder, add_exports, _add_upgrade)
    for add in (
        _add_running,
        _add_plan,
        _add_beginning,
        add_cluster,
        *reading,
        *acting,
        add_check,
        add_simulate,
        add_showing,
    ):
        add(commands)
    illustrate(commands.choices)
    top.set_defaults(known=tuple(commands.choices))
    return top


def _add_running(commands: Commands) -> None:
    run = add_command(
        commands,
        "run",
        "running:run",
        "run a fleet until every task is settled; the same command continues it after a crash",
    )
    run.add_argument("fleet", metavar="FLEET.toml", help="the fleet file")
    run.add_argument(
        "--watch",
        action="store_true",
        help="wait for tasks of lifefold task add until lifefold finish; later runs of the same log wait, too",
    )
    run.add_argument(
        "--again", action="store_true", help="after the end of the fleet: do its open tasks in a new log, NAME.run-2.db"
    )
    run.add_argument("--dry-run", action="store_true", help="say what the run would do, and change nothing")
    run.add_argument(
        "--no-wait",
        action="store_true",
        help="leave with exit code 4 when only an operator can move the fleet on; a later run continues the log",
    )
    run.add_argument(
        "--serve",
        metavar="PORT",
        type=natural,
        nargs="?",
        const=8765,
        help="serve the desk to browsers until the run ends, as lifefold serve does (default port: 8765)",
    )
    run.add_argument(
        "--engine",
        metavar="temporal://HOST:PORT[/NAMESPACE]",
        help="decide on this Temporal server, while lifefold host runs the sessions; local: on this machine alone"
        " (default: engine in [cluster] of the fleet file, otherwise local)",
    )
    run.add_argument(
        "--accept", action="store_true", help="accept the changes of the fleet file since the plan in force"
    )
    rest_option(run)
    log_option(run, "the log, a path or postgresql://... (default: the latest .lifefold/NAME.db beside the fleet file)")
    live_option(run)


def _add_plan(commands: Commands) -> None:
    plan = add_command(
        commands, "plan", "planning:plan", "show how a fleet file differs from the plan in force in its log"
    )
    plan.add_argument("fleet", metavar="FLEET.toml", help="the fleet file")
    plan.add_argument("--accept", action="store_true", help="accept the difference; a runner at work follows it")
    rest_option(plan)
    log_option(
        plan, "the log, a path or postgresql://... (default: the latest .lifefold/NAME.db beside the fleet file)"
    )
    answers_option(plan, "plan", "print the difference, or the answer to --accept, as an object of JSON")


def _add_beginning(commands: Commands) -> None:
    demo = add_command(commands, "demo", "running:demo", "run a fleet of scripted agents in a new git repository")
    demo.add_argument("--folder", metavar="PATH", help="the folder for it (default: a new temporary folder)")
    live_option(demo)

    init = add_command(commands, "init", "making:init", "write a fleet file and a working example agent")
    init.add_argument("folder", nargs="?", default=".", help="the folder (default: the current one)")

    doctor = add_command(
        commands, "doctor", "examining:doctor", "show what of this machine a fleet can use, and what is missing"
    )
    doctor.add_argument("fleet", metavar="FLEET.toml", nargs="?", help="the fleet file (default: fleets in general)")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    unit = add_command(
        commands, "unit", "supervising:unit", "print a systemd unit that runs a fleet, and restarts it after a failure"
    )
    unit.add_argument("fleet", metavar="FLEET.toml", help="the fleet file")
    unit.add_argument("--watch", action="store_true", help="run with --watch")
    unit.add_argument("--serve", metavar="PORT", type=natural, nargs="?", const=8765, help="run with --serve")
    log_option(unit, "run with this log (default: the latest .lifefold/NAME.db beside the fleet file)")
    completion = add_command(
        commands, "completion", "completing:completion", "print the script by which a shell completes lifefold"
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
    add_command(commands, "schema", "describing:schema", "print the JSON Schema of a fleet file, for editors")


def _add_desk(commands: Commands) -> None:
    serve = add_command(
        commands, "serve", "browsing:serve", "serve the desk of operators to browsers: pages, a stream, and commands"
    )
    serve.add_argument(
        "logs",
        metavar="LOG|REPORT",
        nargs="*",
        help="logs, and reports that check or simulate has printed with --json (default: all fleets of this machine)",
    )
    serve.add_argument("--beside", action="store_true", help=argparse.SUPPRESS)
    serve.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="the address (default: 127.0.0.1)")
    serve.add_argument("--port", metavar="N", type=natural, default=8765, help="the port; 0 is any (default: 8765)")
    serve.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a further name of this machine in addresses of browsers; may be repeated",
    )


def _add_upgrade(commands: Commands) -> None:
    upgrade = add_command(
        commands, "upgrade", "upgrading:upgrade", "say what this version makes of a log of another one, and record it"
    )
    upgrade.add_argument(
        "names",
        metavar="[PROGRAM:SYSTEM] LOG",
        nargs="+",
        help="the log of a fleet; for a program of your own, its system before it",
    )
    upgrade.add_argument("--dry-run", action="store_true", help="say it, and change nothing")


def _add_asking(commands: Commands) -> None:
    for name, module, about in (
        ("status", "asking", "show the agents: desired state, state in the log, and process"),
        ("tasks", "listing_tasks", "show the tasks: states, owners, and reasons of failures"),
        ("log", "telling_log", "tell what has happened; --all has every transition"),
    ):
        command = add_command(commands, name, f"{module}:{name}", about)
        if name == "log":
            logs_argument(command)
        else:
            log_option(command)
        at_option(command)
        command.add_argument("--json", action="store_true", help="print JSON")
        if name == "tasks":
            command.add_argument("--all", action="store_true", help="all tasks, in the order of the plan")
        if name == "log":
            _add_choosing(command)

    hosts = add_command(
        commands, "hosts", "hosts:hosts", "show the hosts of a fleet on a cluster: state, room, and their agents"
    )
    log_option(hosts)
    hosts.add_argument("--json", action="store_true", help="print JSON")

    why = add_command(
        commands, "why", "explaining:why", "explain the state of a task or a service, and what moves it on"
    )
    why.add_argument("task", metavar="TASK", type=task_name, help="the task's id, or the name of a service")
    log_option(why)
    at_option(why)
    why.add_argument("--json", action="store_true", help="print JSON")


def _add_choosing(log: argparse.ArgumentParser) -> None:
    log.add_argument(
        "--all",
        action="store_true",
        help="every transition with its cause, and every input of a diagram; json and table always have all",
    )
    log.add_argument(
        "--task",
        metavar="ID",
        action="append",
        default=[],
        help="only transitions that concern this task; may be repeated",
    )
    log.add_argument(
        "--agent",
        metavar="NAME",
        action="append",
        default=[],
        help="only transitions that concern this agent; may be repeated",
    )
    log.add_argument(
        "--since", metavar="WHEN", help="only later transitions: 10m for ten minutes ago, or 2026-11-20T09:30"
    )
    log.add_argument(
        "--last",
        metavar="N",
        type=natural,
        help="only the last N lines, 0 for all; by default 1000, and all of json, table and --since",
    )
    log.add_argument(
        "--format",
        choices=("lines", "table", "json", "sequence"),
        default="lines",
        help="table: with the positions that --at accepts; json: as --json; sequence: a Mermaid diagram of the first"
        " inputs",
    )
    log.add_argument(
        "--follow",
        action="store_true",
        help="print new entries until Ctrl-C or the end of the fleet; with --json one object a line",
    )


class _ShowVersion(argparse.Action):
    """Prints the installed version, which is looked up only here because that takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: object) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom asked for

        print(f"lifefold {version('lifefold')}")
        parser.exit()
