"""The grammar of the operator's desk: the commands that show the work of agents, each with examples.

Like ``grammar`` it imports only the argument parser of the standard library.
"""

from typing import Final

from lifefold.interpreters.cli.grammar_parts import (
    Commands,
    add_command,
    add_examples,
    at_option,
    log_option,
    positive,
    task_name,
)

_ONE: Final = "the name of an agent or of a task; agent:NAME or task:NAME if both have it"


def add_reading(commands: Commands) -> None:
    """Add the commands that read."""
    for add in (_add_output, _add_diff, _add_show, _add_watch, _add_fleets):
        add(commands)


def _add_output(commands: Commands) -> None:
    output = add_command(
        commands, "output", "output:output", "show what the last session of an agent or a task has printed, decoded"
    )
    output.add_argument("name", metavar="AGENT|TASK", help=_ONE)
    output.add_argument("--follow", action="store_true", help="go on as it prints, and with the next sessions")
    output.add_argument("--last", metavar="N", type=positive, default=0, help="only the last N lines there are")
    output.add_argument(
        "--attempt",
        metavar="N",
        type=positive,
        default=0,
        help="an earlier attempt at the task, as show and tasks count them: all its sessions",
    )
    output.add_argument(
        "--session", metavar="N", type=positive, default=0, help="an earlier session of the agent, as show counts them"
    )
    output.add_argument(
        "--raw", action="store_true", help="the bytes as the session wrote them, control codes included"
    )
    output.add_argument("--json", action="store_true", help="print JSON, one object a line")
    log_option(output)
    at_option(output)
    add_examples(
        output,
        ("output notes", "what the last session at the task notes said"),
        ("output ann --follow", "what ann says from now on"),
        ("output notes --attempt 1", "the first attempt at notes"),
        ("output ann --session 3", "the third session of ann"),
        ("output ann --raw > ann.log", "the bytes, for a program"),
    )


def _add_diff(commands: Commands) -> None:
    diff = add_command(
        commands, "diff", "diff:diff", "show the changes that the work at a task makes, against their base"
    )
    about = "the task's id; or the first of two logs, to see where they part"
    diff.add_argument("task", metavar="TASK", type=task_name, help=about)
    diff.add_argument("log", metavar="LOG", nargs="*", help="with [MODULE:SYSTEM] LOG before it: the other log")
    diff.add_argument(
        "--attempt",
        metavar="N",
        type=positive,
        default=0,
        help="the work of an earlier attempt, such as a rejected one",
    )
    diff.add_argument(
        "--since", metavar="N", type=positive, default=0, help="compare with the work of attempt N, not with the base"
    )
    diff.add_argument("--stat", action="store_true", help="only the changed files, with the number of lines")
    diff.add_argument("--verification", action="store_true", help="the output of its verification, too, below it")
    diff.add_argument("--tool", metavar="COMMAND", help="run a program on two folders with the changed files")
    diff.add_argument("--json", action="store_true", help="print JSON")
    log_option(diff)
    at_option(diff)
    add_examples(
        diff,
        ("diff notes", "what approve would merge, or what was merged, or what is there now"),
        ("diff notes --stat", "the changed files"),
        ("diff notes --since 1", "what has changed since attempt 1, which was rejected"),
        ("diff notes --at 120", "as it was after entry 120"),
        ("diff notes --verification", "with the output of its verification"),
        ("diff notes --tool meld", "in a program that compares two folders"),
        ("diff notes > notes.patch", "a patch for git apply"),
        ("diff first.db second.db", "where two runs of a fleet part"),
    )


def _add_show(commands: Commands) -> None:
    show = add_command(
        commands, "show", "show:show", "show everything about a task or an agent on a page, with what can be done next"
    )
    show.add_argument("name", metavar="TASK|AGENT", help=_ONE)
    show.add_argument("--json", action="store_true", help="print JSON")
    log_option(show)
    at_option(show)
    add_examples(
        show,
        ("show notes", "a task: state, claims, work, cost, output, verification"),
        ("show ann", "an agent: what is asked of it, what the log believes, what its process shows"),
        ("show task:ann", "the task, if an agent has the same name"),
    )


def _add_fleets(commands: Commands) -> None:
    fleets = add_command(
        commands, "fleets", "fleets:fleets", "list the fleets of this machine that run or wait, and what waits where"
    )
    fleets.add_argument("--all", action="store_true", help="those that are over, too")
    fleets.add_argument("--json", action="store_true", help="print JSON")
    add_examples(fleets, ("fleets", "what runs, and what waits"), ("fleets --all", "the fleets that are over, too"))


def _add_watch(commands: Commands) -> None:
    watch = add_command(
        commands, "watch", "watch:watch", "watch a fleet from another terminal, with keys for what waits"
    )
    watch.add_argument(
        "fleet",
        metavar="LOG|FLEET",
        nargs="?",
        help="a log, a fleet file, or the name of a fleet of lifefold fleets (default: the log in .lifefold/)",
    )
    add_examples(
        watch,
        ("watch", "the fleet of this folder"),
        ("watch ~/project/fleet.toml", "the fleet of a fleet file"),
        ("watch nightly", "a fleet of this machine, by its name"),
    )
