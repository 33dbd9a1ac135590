"""The grammar of the ``lifefold`` command: its words, their options, and the function that answers each.

This module imports only the argument parser of the standard library, so that ``lifefold --help`` answers at once.
"""

import argparse
import re
from functools import partial
from typing import Any, Final, NoReturn, Protocol

from lifefold.interpreters.cli import desk_grammar

_KNOWN = "a name of `lifefold machines`, or module:attribute"


class _Commands(Protocol):
    """The collection of commands; argparse has no public name for its type."""

    def add_parser(self, *args: Any, **kwargs: Any) -> argparse.ArgumentParser:
        """Add a parser, and return it."""
        ...


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="lifefold",
        description="Run fleets of AI agents whose every lifecycle is a fold: (state, event) -> (state, effects).",
        epilog="Exit codes: 0 success, 1 something failed, 2 bad input, 3 an unexpected error, 4 held"
        " (run --no-wait), 130 left early.",
    )
    top.add_argument("--version", action=_ShowVersion, nargs=0, help="print the version")
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    acting = (_add_telling, _add_deciding, _add_budget, _add_giving)
    for add in (_add_running, _add_asking, *acting, _add_check, _add_simulate, _add_showing):
        add(commands)
    desk_grammar.add_reading(partial(_add, commands), _log_option)
    top.set_defaults(known=tuple(commands.choices))
    return top


def _add_running(commands: _Commands) -> None:
    run = _add(
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
    run.add_argument(
        "--no-wait",
        action="store_true",
        help="leave with exit code 4 when only an operator can move the fleet on; a later run continues the log",
    )
    run.add_argument(
        "--accept", action="store_true", help="accept the changes of the fleet file since the plan in force"
    )
    _rest_option(run)
    _log_option(run, "the log (default: the latest .lifefold/NAME.db beside the fleet file)")
    _live_option(run)

    plan = _add(commands, "plan", "planning:plan", "show how a fleet file differs from the plan in force in its log")
    plan.add_argument("fleet", metavar="FLEET.toml", help="the fleet file")
    plan.add_argument("--accept", action="store_true", help="accept the difference; a runner at work follows it")
    _rest_option(plan)
    _log_option(plan, "the log (default: the latest .lifefold/NAME.db beside the fleet file)")

    demo = _add(commands, "demo", "running:demo", "run a fleet of scripted agents in a new git repository")
    demo.add_argument("--folder", metavar="PATH", help="the folder for it (default: a new temporary folder)")
    _live_option(demo)

    init = _add(commands, "init", "making:init", "write a fleet file and a working example agent")
    init.add_argument("folder", nargs="?", default=".", help="the folder (default: the current one)")

    doctor = _add(
        commands, "doctor", "examining:doctor", "show what of this machine a fleet can use, and what is missing"
    )
    doctor.add_argument("fleet", metavar="FLEET.toml", nargs="?", help="the fleet file (default: fleets in general)")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    _add(commands, "schema", "describing:schema", "print the JSON Schema of a fleet file, for editors")


def _add_asking(commands: _Commands) -> None:
    for name, about in (
        ("status", "show the agents: desired state, state in the log, and process"),
        ("tasks", "show the tasks: states, owners, and reasons of failures"),
        ("log", "show every transition in the log"),
    ):
        command = _add(commands, name, f"asking:{name}", about)
        _log_option(command)
        command.add_argument("--json", action="store_true", help="print JSON")
        if name == "log":
            _add_choosing(command)

    why = _add(commands, "why", "explaining:why", "explain the state of a task or a service, and what moves it on")
    why.add_argument("task", metavar="TASK", help="the task's id, or the name of a service")
    _log_option(why)
    why.add_argument("--json", action="store_true", help="print JSON")


def _add_choosing(log: argparse.ArgumentParser) -> None:
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
        "--follow",
        action="store_true",
        help="print new entries until Ctrl-C or the end of the fleet; with --json one object a line",
    )


def _add_telling(commands: _Commands) -> None:
    send = _add(
        commands, "send", "telling:send", "send an operator message to an agent or for a task; it interrupts a session"
    )
    send.add_argument("agent", metavar="AGENT|TASK", help="the name of an agent or of a task, or 'all'")
    send.add_argument("text", metavar="TEXT", help="the message")
    send.add_argument("--no-interrupt", action="store_true", help="deliver it with the next prompt")
    _log_option(send)

    attach = _add(
        commands, "attach", "attaching:attach", "pause an agent, and continue its conversation by hand in its worktree"
    )
    attach.add_argument("name", metavar="AGENT|TASK", help="the agent's name, or that of its task")
    attach.add_argument("--exec", action="store_true", help="run the agent program in this terminal")
    _log_option(attach)

    stop = _add(commands, "stop", "telling:stop", "stop agents for good: their sessions end, and no run restarts them")
    how = stop.add_mutually_exclusive_group()
    how.add_argument("--drain", action="store_true", help="after their present task is finished and merged")
    how.add_argument("--kill", action="store_true", help="at once: their sessions are killed without grace")
    pause = _add(commands, "pause", "telling:pause", "interrupt agents; they begin nothing until they are resumed")
    pause.add_argument("--reason", metavar="TEXT", default="", help="why")
    resume = _add(commands, "resume", "telling:resume", "resume paused agents, or try a resting account again")
    resume.add_argument("--account", metavar="NAME", default="", help="try this account again before its time")
    for command in (stop, pause, resume):
        command.add_argument("agents", metavar="AGENT", nargs="*", help="the agents' names (default: all)")
        _log_option(command)

    release = _add(commands, "release", "releasing:release", "release an agent, a service or a task from quarantine")
    release.add_argument("name", metavar="NAME", help="its name, as lifefold status shows it")
    _log_option(release)

    trust = _add(commands, "trust", "trusting:trust", "change the trust of an agent, where the fleet file has gates")
    trust.add_argument("agent", metavar="AGENT", help="the agent's name")
    moves = trust.add_mutually_exclusive_group(required=True)
    for move, about in (
        ("promote", "by one level; clears its violations"),
        ("demote", "by one level"),
        ("violation", "record a violation: it is demoted, and rises only when an operator promotes it"),
    ):
        moves.add_argument(f"--{move}", dest="move", action="store_const", const=move, help=about)
    trust.add_argument("--reason", metavar="TEXT", required=True, help="why")
    _log_option(trust)


def _add_deciding(commands: _Commands) -> None:
    approve = _add(
        commands,
        "approve",
        "deciding:approve",
        "approve tasks and permissions that wait for approval; without NAME, the plan",
    )
    approve.add_argument(
        "tasks", metavar="NAME", nargs="*", help="tasks, or permissions as `ann/Q3` (default: the plan as a whole)"
    )
    reject = _add(commands, "reject", "deciding:reject", "reject tasks or questions that wait, or the plan")
    reject.add_argument("tasks", metavar="NAME", nargs="*", help="tasks, or questions as `ann/Q3`")
    reject.add_argument("--plan", action="store_true", help="reject the plan as a whole")
    answer = _add(commands, "answer", "answering:answer", "answer a question of an agent in words")
    answer.add_argument("question", metavar="QUESTION", help="its name, as `ann/Q3` in lifefold status")
    answer.add_argument("text", metavar="TEXT", help="the answer")
    _log_option(answer)
    cancel = _add(commands, "cancel", "deciding:cancel", "cancel tasks; their sessions end")
    abort = _add(
        commands, "abort", "aborting:abort", "abort a tool call, the siblings of a task, or a task with its parts"
    )
    abort.add_argument("task", metavar="TASK", nargs="?", help="the task's id (default: LIFEFOLD_TASK)")
    abort.add_argument(
        "--scope",
        choices=("tool", "sibling", "session"),
        required=True,
        help="tool: reported by the agent at the task, which goes on; sibling: the other parts of the same task, with"
        " their parts; session: the task with its parts",
    )
    abort.add_argument("--tool", metavar="NAME", default="", help="the tool, with --scope tool")
    abort.add_argument(
        "--token", metavar="TOKEN", help="with --scope tool, the token of the task's claim (default: LIFEFOLD_TOKEN)"
    )
    abort.add_argument("--because", metavar="TEXT", default="", help="why")
    _log_option(abort, "the log (default: LIFEFOLD_DB, or the one in .lifefold/)")
    branch = _add(
        commands, "branch", "branching:branch", "accept the target branch at the commit to which an agent has moved it"
    )
    branch.add_argument("--accept", action="store_true", required=True, help="merge into it as it is")
    branch.add_argument("--reason", metavar="TEXT", default="", help="why")
    _log_option(branch)
    retry = _add(commands, "retry", "deciding:retry", "try failed tasks again, and let blocked tasks go on")
    for command in (cancel, retry):
        command.add_argument("tasks", metavar="TASK", nargs="+", help="the tasks' ids")
    for command in (approve, cancel):
        command.add_argument("--reason", metavar="TEXT", default="", help="why")
    reject.add_argument(
        "--reason", metavar="TEXT", default="", help="why, which a task needs; its next prompt or the agent has it"
    )
    for command in (approve, reject, cancel, retry):
        _log_option(command)


def _add_budget(commands: _Commands) -> None:
    budget = _add(commands, "budget", "budgeting:budget", "show the balances of budgets; with --add-..., raise one")
    budget.add_argument("--agent", metavar="AGENT", help="raise the budget of this agent (default: of the fleet)")
    budget.add_argument("--task", metavar="TASK", help="raise the budget of this task")
    budget.add_argument("--add-usd", metavar="X", help="US dollars to add")
    budget.add_argument("--add-tokens", metavar="N", help="tokens to add")
    budget.add_argument("--add-time", metavar="D", help="time to add, as 90m")
    budget.add_argument("--add-sessions", metavar="N", help="sessions to add")
    budget.add_argument("--reason", metavar="TEXT", default="", help="why")
    budget.add_argument("--json", action="store_true", help="print JSON")
    _log_option(budget)


def _add_giving(commands: _Commands) -> None:
    tasks = commands.add_parser("task", help="add a task to a fleet: task add", description="Add tasks to a fleet.")
    add = _add(tasks.add_subparsers(metavar="add", required=True), "add", "adding:add", "add a task to a fleet")
    add.add_argument("--id", metavar="ID", required=True, help="its id")
    add.add_argument("--prompt", metavar="TEXT", required=True, help="the prompt for the agent")
    add.add_argument(
        "--depends-on", metavar="ID", nargs="+", action="extend", default=[], help="tasks that must be closed first"
    )
    add.add_argument("--priority", metavar="N", type=int, help="1 is the highest (default: 2)")
    add.add_argument("--max-retries", metavar="N", type=int, help="the number of retries (default: 3)")
    add.add_argument(
        "--verify",
        metavar="COMMAND",
        action="append",
        default=[],
        help="a command that must exit with 0; no shell runs it",
    )
    add.add_argument("--role", metavar="ROLE", default="", help="only agents with this role get the task")
    add.add_argument("--file", metavar="PATH", action="append", default=[], help="a file or folder that it changes")
    add.add_argument("--trust", metavar="LEVEL", default="", help="only agents with this trust get it")
    add.add_argument("--max-subtasks", metavar="N", type=int, help="the most tasks it may be split into (default: 0)")
    add.add_argument("--subtasks-timeout", metavar="D", help="the longest wait for those tasks, as 2h")
    add.add_argument("--orphaned", metavar="WHAT", help="after the death of its session: fail, requeue, or verify")
    add.add_argument("--on-nothing", metavar="WHAT", help="after a session without a change: fail or close")
    add.add_argument("--on-retry", metavar="WHAT", help="the conversation of a retry: resume or anew")
    add.add_argument("--budget-usd", metavar="X", help="its budget, its parts included, in US dollars")
    add.add_argument("--budget-tokens", metavar="N", help="its budget in tokens")
    add.add_argument("--budget-time", metavar="D", help="its budget in time, as 90m")
    add.add_argument("--budget-sessions", metavar="N", help="its budget in sessions")
    add.add_argument(
        "--approval",
        choices=("none", "merge"),
        default="none",
        help="merge: an operator must approve its work before the merge",
    )
    _log_option(add)

    finish = _add(
        commands, "finish", "adding:finish", "tell a fleet that runs with --watch that no more tasks will come"
    )
    finish.add_argument("--reason", metavar="TEXT", default="", help="why")
    _log_option(finish)

    split = _add(commands, "split", "adding:split", "split a task into parts: for the session that works at it")
    split.add_argument("task", metavar="TASK", nargs="?", help="the task's id (default: LIFEFOLD_TASK)")
    split.add_argument("--token", metavar="TOKEN", help="the token of its claim (default: LIFEFOLD_TOKEN)")
    split.add_argument(
        "--part", metavar="PROMPT", action="append", default=[], help="the prompt of a part; may be repeated"
    )
    _add(commands, "mcp", "serving:mcp", "serve an agent's tools for its own task over MCP: for its session only")
    shape = '[{"prompt": ..., "verify": [[...]], "files": [...]}]'
    split.add_argument("--json", metavar="FILE", help=f"a file with the parts, or - for the standard input, as {shape}")
    _log_option(split, "the log (default: LIFEFOLD_DB, or the one in .lifefold/)")


def _add_showing(commands: _Commands) -> None:
    machines = _add(commands, "machines", "showing:machines", "list the known lifecycles and systems")
    machines.add_argument("--json", action="store_true", help="print JSON")
    table = _add(commands, "table", "showing:table", "print the transition table of a lifecycle")
    table.add_argument("machine", metavar="MACHINE", help=_KNOWN)
    table.add_argument(
        "--format",
        choices=("plain", "markdown", "json"),
        default="plain",
        help="json has the transitions only; the others have activities, timers and special states, too",
    )
    diagram = _add(
        commands,
        "diagram",
        "showing:diagram",
        "print the diagram of a lifecycle, or of a system: its machines, rules and messages",
    )
    diagram.add_argument("machine", metavar="MACHINE", help=_KNOWN)
    diagram.add_argument("--format", choices=("mermaid", "dot", "svg", "scxml", "xstate"), default="mermaid")


def _add_simulate(commands: _Commands) -> None:
    simulate = _add(
        commands, "simulate", "simulating:simulate", "run a system in virtual time, with faults chosen by a seed"
    )
    simulate.add_argument("target", metavar="TARGET", help=_KNOWN)
    simulate.add_argument("--seeds", metavar="N", type=_positive, help="the number of seeds (default: 100)")
    simulate.add_argument("--seed", metavar="S", type=_natural, help="the first seed; without --seeds, the only one")
    simulate.add_argument("--jobs", metavar="J", type=_positive, default=1, help="the number of processes")
    simulate.add_argument(
        "--hours", metavar="H", type=_duration, default=24, help="virtual hours under faults, as 6 or 0.5 (default: 24)"
    )
    simulate.add_argument(
        "--fault", metavar="NAME=RATE", action="append", help="the rate of a fault; or none for no faults"
    )
    simulate.add_argument("--all-faults", action="store_true", help="use all faults in every run, not some")
    simulate.add_argument("--emit-test", metavar="FILE", help="write the failures as a test file for pytest")
    simulate.add_argument(
        "--soak",
        metavar="FOLDER",
        help="go on until stopped, from the last seed of FOLDER; keeps every seed that fails there",
    )
    simulate.add_argument("--unused", action="store_true", help=_UNUSED)
    simulate.add_argument("--json", action="store_true", help="print JSON")


_UNUSED: Final = "print all rows that were never taken and all rules that never answered"


def _add_check(commands: _Commands) -> None:
    check = _add(
        commands,
        "check",
        "checking:check",
        "search every reachable state of a lifecycle or a system, and check its properties",
    )
    check.add_argument("targets", metavar="TARGET", nargs="*", help=_KNOWN)
    check.add_argument("--states", metavar="N", type=_positive, help="the most states to search")
    check.add_argument("--depth", metavar="N", type=_positive, help="the most steps from the initial state")
    check.add_argument("--seconds", metavar="S", type=_positive, help="the longest time of the search, in seconds")
    check.add_argument("--memory", metavar="MIB", type=_positive, help="the most memory to use, in MiB")
    check.add_argument("--commands", metavar="N", type=_natural, help="the most commands of operators in a trace")
    check.add_argument(
        "--symmetry",
        action="store_true",
        default=None,
        help="treat states as one if only the names of equal aggregates differ",
    )
    check.add_argument("--accept-truncated", action="store_true", help="accept a search that a limit has ended")
    check.add_argument("--certificate", metavar="PATH", help="the file or folder of the certificate")
    check.add_argument("--verify", action="store_true", help="check whether the certificate holds for this code")
    check.add_argument("--search", action="store_true", help="with --verify: search again, even if nothing has changed")
    check.add_argument("--emit-test", metavar="FILE", help="write the broken properties as a test file for pytest")
    check.add_argument("--unused", action="store_true", help=_UNUSED)
    check.add_argument("--json", action="store_true", help="print JSON")


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _duration(text: str) -> float:
    if re.fullmatch(r"\d{1,6}(\.\d+)?", text) is None or float(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours above 0, as 6 or 0.5")
    return float(text)


class _ShowVersion(argparse.Action):
    """Prints the installed version, which is looked up only here because that takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: object) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom asked for

        print(f"lifefold {version('lifefold')}")
        parser.exit()


def _add(commands: _Commands, name: str, command: str, about: str) -> argparse.ArgumentParser:
    added = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    added.set_defaults(command=command)
    return added


def _rest_option(command: argparse.ArgumentParser) -> None:
    about = "with --accept: leave changed tasks that are over as they are, and accept the rest"
    command.add_argument("--rest", action="store_true", help=about)


def _log_option(command: argparse.ArgumentParser, about: str = "the log (default: the one in .lifefold/)") -> None:
    command.add_argument("--db", metavar="PATH", help=about)


def _live_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--no-live", action="store_true", help="print plain lines instead of a live display")
