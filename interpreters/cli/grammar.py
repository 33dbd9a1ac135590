"""The grammar of the ``lifefold`` command: which words there are, what each takes, and which module answers it.

Only the standard library's argument parser is imported here, so that ``lifefold --help`` is there at once.
"""

import argparse
import re
from typing import Any, NoReturn, Protocol

_KNOWN = "a name of `lifefold machines`, or module:attribute"


class _Commands(Protocol):
    """Where a command's parser is added; argparse has no public name for it."""

    def add_parser(self, *args: Any, **kwargs: Any) -> argparse.ArgumentParser:
        """Add one, and return it."""
        ...


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="lifefold",
        description="Run fleets of AI agents whose every lifecycle is a fold: (state, event) -> (state, effects).",
        epilog="Exit codes: 0 all is well, 1 something failed, 2 bad input, 3 an unexpected error, 4 held"
        " (run --no-wait), 130 left early.",
    )
    top.add_argument("--version", action=_ShowVersion, nargs=0, help="print the version")
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    acting = (_add_telling, _add_deciding, _add_budget, _add_giving)
    for add in (_add_running, _add_asking, *acting, _add_check, _add_simulate, _add_showing):
        add(commands)
    top.set_defaults(known=tuple(commands.choices))
    return top


def _add_running(commands: _Commands) -> None:
    run = _add(
        commands, "run", "running:run", "run a fleet until every task is settled; run it again to go on after a crash"
    )
    run.add_argument("fleet", metavar="FLEET.toml", help="the fleet file")
    run.add_argument(
        "--watch",
        action="store_true",
        help="wait for more tasks, from lifefold task add, until finish; so does any later run of the log it begins",
    )
    run.add_argument(
        "--again", action="store_true", help="when the fleet is over: do what was not done, in a new log, NAME.run-2.db"
    )
    run.add_argument(
        "--no-wait",
        action="store_true",
        help="do not wait for people: when only they can move the fleet on, leave with exit code 4; the log goes on",
    )
    run.add_argument(
        "--accept", action="store_true", help="accept what was changed in the fleet file since its log has it in force"
    )
    _log_option(run, "where the log is kept (default: the latest .lifefold/NAME.db beside the fleet file)")
    _live_option(run)

    plan = _add(commands, "plan", "planning:plan", "how a fleet file differs from the plan that is in force in its log")
    plan.add_argument("fleet", metavar="FLEET.toml", help="the fleet file")
    plan.add_argument(
        "--accept", action="store_true", help="accept the difference; a runner that is at work goes on by it"
    )
    _log_option(plan, "the log (default: the latest .lifefold/NAME.db beside the fleet file)")

    demo = _add(commands, "demo", "running:demo", "run a fleet of scripted agents on a real git repository made for it")
    demo.add_argument("--folder", metavar="PATH", help="where to make it (default: a new temporary folder)")
    _live_option(demo)

    init = _add(commands, "init", "making:init", "write a fleet file and a working example agent")
    init.add_argument("folder", nargs="?", default=".", help="where (default: here)")

    _add(commands, "schema", "describing:schema", "print the JSON Schema of a fleet file, by which editors check one")


def _add_asking(commands: _Commands) -> None:
    for name, about in (
        ("status", "the agents: what was asked of them, what the log says, and what is really there"),
        ("tasks", "the tasks: their states, owners, and why they failed"),
        ("log", "every transition that has happened, from the log"),
    ):
        command = _add(commands, name, f"asking:{name}", about)
        _log_option(command)
        command.add_argument("--json", action="store_true", help="print JSON")
        if name == "log":
            _add_choosing(command)

    why = _add(commands, "why", "explaining:why", "why a task, or a service, is where it is, and what moves it on")
    why.add_argument("task", metavar="TASK", help="the task's id, or the name of a service")
    _log_option(why)
    why.add_argument("--json", action="store_true", help="print JSON")


def _add_choosing(log: argparse.ArgumentParser) -> None:
    log.add_argument(
        "--task",
        metavar="ID",
        action="append",
        default=[],
        help="only what concerns this task, or another one so named",
    )
    log.add_argument(
        "--agent", metavar="NAME", action="append", default=[], help="only what concerns this agent, or another one"
    )
    log.add_argument("--since", metavar="WHEN", help="only what has happened since: 10m ago, or 2026-11-20T09:30")
    log.add_argument(
        "--follow",
        action="store_true",
        help="go on as entries come, until Ctrl-C or the fleet is over; JSON is then an object a line",
    )


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
    how = stop.add_mutually_exclusive_group()
    how.add_argument("--drain", action="store_true", help="when what they have in hand is finished and brought home")
    how.add_argument("--kill", action="store_true", help="at once: their sessions are killed, without any grace")
    pause = _add(
        commands, "pause", "telling:pause", "interrupt agents, and let them begin nothing until they are resumed"
    )
    pause.add_argument("--reason", metavar="TEXT", default="", help="why")
    resume = _add(commands, "resume", "telling:resume", "let agents go on that were paused")
    for command in (stop, pause, resume):
        command.add_argument("agents", metavar="AGENT", nargs="*", help="the agents' names (default: all)")
        _log_option(command)

    release = _add(
        commands, "release", "releasing:release", "let an agent, a service or a task go on that is quarantined"
    )
    release.add_argument("name", metavar="NAME", help="its name, as lifefold status shows it")
    _log_option(release)

    trust = _add(commands, "trust", "trusting:trust", "say how far an agent is trusted, where the fleet file has gates")
    trust.add_argument("agent", metavar="AGENT", help="the agent's name")
    moves = trust.add_mutually_exclusive_group(required=True)
    for move, about in (
        ("promote", "by one level; its violations are forgiven"),
        ("demote", "by one level"),
        ("violation", "it did what it must not: it is demoted, and rises only when a person promotes it"),
    ):
        moves.add_argument(f"--{move}", dest="move", action="store_const", const=move, help=about)
    trust.add_argument("--reason", metavar="TEXT", required=True, help="why")
    _log_option(trust)


def _add_deciding(commands: _Commands) -> None:
    approve = _add(
        commands, "approve", "deciding:approve", "approve tasks that wait for your word; without TASK, the plan"
    )
    approve.add_argument("tasks", metavar="TASK", nargs="*", help="the tasks' ids (default: the plan as a whole)")
    reject = _add(commands, "reject", "deciding:reject", "reject tasks that wait for your word, or the plan")
    reject.add_argument("tasks", metavar="TASK", nargs="*", help="the tasks' ids")
    reject.add_argument("--plan", action="store_true", help="reject the plan as a whole")
    cancel = _add(commands, "cancel", "deciding:cancel", "cancel tasks that nobody wants any more; their sessions end")
    abort = _add(
        commands, "abort", "aborting:abort", "abort a tool, the siblings of a task, or a task with all that is below it"
    )
    abort.add_argument("task", metavar="TASK", nargs="?", help="the task's id (default: LIFEFOLD_TASK)")
    abort.add_argument(
        "--scope",
        choices=("tool", "sibling", "session"),
        required=True,
        help="tool: the agent at the task says so, and goes on; sibling: the other parts of the same task, each with"
        " all that is below it; session: the task with all that is below it",
    )
    abort.add_argument("--tool", metavar="NAME", default="", help="which tool, with --scope tool")
    abort.add_argument(
        "--token", metavar="TOKEN", help="with --scope tool, the token of the task's claim (default: LIFEFOLD_TOKEN)"
    )
    abort.add_argument("--because", metavar="TEXT", default="", help="why")
    _log_option(abort, "the log (default: LIFEFOLD_DB, or the one in .lifefold/)")
    branch = _add(commands, "branch", "branching:branch", "accept the fleet's branch where an agent has moved it")
    branch.add_argument("--accept", action="store_true", required=True, help="merge into it as it is")
    branch.add_argument("--reason", metavar="TEXT", default="", help="why")
    _log_option(branch)
    retry = _add(commands, "retry", "deciding:retry", "have tasks tried again that failed, or go on that are blocked")
    for command in (cancel, retry):
        command.add_argument("tasks", metavar="TASK", nargs="+", help="the tasks' ids")
    for command in (approve, cancel):
        command.add_argument("--reason", metavar="TEXT", default="", help="why")
    reject.add_argument("--reason", metavar="TEXT", required=True, help="why; whoever tries it again is told")
    for command in (approve, reject, cancel, retry):
        _log_option(command)


def _add_budget(commands: _Commands) -> None:
    budget = _add(commands, "budget", "budgeting:budget", "how budgets stand; with --add-..., let more be spent")
    budget.add_argument("--agent", metavar="AGENT", help="that agent's budget is raised (default: the fleet's)")
    budget.add_argument("--task", metavar="TASK", help="the budget for that task is raised")
    budget.add_argument("--add-usd", metavar="X", help="so many dollars more")
    budget.add_argument("--add-tokens", metavar="N", help="so many tokens more")
    budget.add_argument("--add-time", metavar="D", help="so much more time, as 90m")
    budget.add_argument("--add-sessions", metavar="N", help="so many sessions more")
    budget.add_argument("--reason", metavar="TEXT", default="", help="why")
    budget.add_argument("--json", action="store_true", help="print JSON")
    _log_option(budget)


def _add_giving(commands: _Commands) -> None:
    tasks = commands.add_parser("task", help="put a task on a fleet's board: task add", description="Give work.")
    add = _add(tasks.add_subparsers(metavar="add", required=True), "add", "adding:add", "put a task on a fleet's board")
    add.add_argument("--id", metavar="ID", required=True, help="what it is called")
    add.add_argument("--prompt", metavar="TEXT", required=True, help="what the agent is told")
    add.add_argument(
        "--depends-on", metavar="ID", nargs="+", action="extend", default=[], help="tasks that must be closed first"
    )
    add.add_argument("--priority", metavar="N", type=int, help="1 is the highest (default: 2)")
    add.add_argument("--max-retries", metavar="N", type=int, help="how often it is tried again (default: 3)")
    add.add_argument(
        "--verify", metavar="COMMAND", action="append", default=[], help="a command that must exit 0; no shell reads it"
    )
    add.add_argument("--role", metavar="ROLE", default="", help="only an agent that has it is given the task")
    add.add_argument(
        "--file", metavar="PATH", action="append", default=[], help="what it will change: a file, or a folder"
    )
    add.add_argument("--trust", metavar="LEVEL", default="", help="only an agent that is trusted so far is given it")
    add.add_argument("--max-subtasks", metavar="N", type=int, help="into how many tasks it may be split (default: 0)")
    add.add_argument("--subtasks-timeout", metavar="D", help="how long it waits for those, as 2h")
    add.add_argument(
        "--orphaned", metavar="WHAT", help="what becomes of it when its session dies: fail, requeue, verify"
    )
    add.add_argument("--on-nothing", metavar="WHAT", help="what becomes of it when nothing was changed: fail, close")
    add.add_argument("--budget-usd", metavar="X", help="what may be spent on it, and on its parts, in US dollars")
    add.add_argument("--budget-tokens", metavar="N", help="the same of tokens")
    add.add_argument("--budget-time", metavar="D", help="the same of time, as 90m")
    add.add_argument("--budget-sessions", metavar="N", help="the same of sessions")
    add.add_argument(
        "--approval",
        choices=("none", "merge"),
        default="none",
        help="merge: a person must agree before its work is merged",
    )
    _log_option(add)

    finish = _add(commands, "finish", "adding:finish", "tell a fleet that runs with --watch that no more tasks come")
    finish.add_argument("--reason", metavar="TEXT", default="", help="why")
    _log_option(finish)

    split = _add(commands, "split", "adding:split", "split a task into parts: for the agent that has it in hand")
    split.add_argument("task", metavar="TASK", nargs="?", help="the task's id (default: LIFEFOLD_TASK)")
    split.add_argument("--token", metavar="TOKEN", help="the token of its claim (default: LIFEFOLD_TOKEN)")
    split.add_argument("--part", metavar="PROMPT", action="append", default=[], help="what a part's agent is told")
    shape = '[{"prompt": ..., "verify": [[...]], "files": [...]}]'
    split.add_argument("--json", metavar="FILE", help=f"the parts from a file, or - from the input, as {shape}")
    _log_option(split, "the log (default: LIFEFOLD_DB, or the one in .lifefold/)")


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
        "--hours", metavar="H", type=_duration, default=24, help="virtual hours under faults, as 6 or 0.5 (default: 24)"
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
    check.add_argument("--search", action="store_true", help="with --verify: search again, also if nothing has changed")
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


def _duration(text: str) -> float:
    if re.fullmatch(r"\d{1,6}(\.\d+)?", text) is None or float(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of hours above 0, as 6 or 0.5")
    return float(text)


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
