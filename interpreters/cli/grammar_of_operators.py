"""The grammar of the commands with which operators and agents change a fleet."""

from typing import Final

from lifefold.interpreters.cli.grammar_of_examples import EXAMPLES
from lifefold.interpreters.cli.grammar_parts import (
    Commands,
    add_command,
    add_examples,
    answers_option,
    log_option,
    reason_option,
)


def add_telling(commands: Commands) -> None:
    """Add the commands to agents, services and accounts."""
    send = add_command(
        commands, "send", "telling:send", "send an operator message to an agent or for a task; it interrupts a session"
    )
    send.add_argument("agent", metavar="AGENT|TASK", help="the name of an agent or of a task, or 'all'")
    send.add_argument("text", metavar="TEXT", help="the message")
    send.add_argument("--no-interrupt", action="store_true", help="deliver it with the next prompt")
    log_option(send)
    answers_option(send, "send")

    attach = add_command(
        commands, "attach", "attaching:attach", "pause an agent, and continue its conversation by hand in its worktree"
    )
    attach.add_argument("name", metavar="AGENT|TASK", help="the agent's name, or that of its task")
    attach.add_argument("--exec", action="store_true", help="run the agent program in this terminal")
    log_option(attach)
    answers_option(attach, "attach")

    stop = add_command(
        commands, "stop", "telling:stop", "stop agents for good: their sessions end, and no run restarts them"
    )
    how = stop.add_mutually_exclusive_group()
    how.add_argument("--drain", action="store_true", help="after their present task is finished and merged")
    how.add_argument("--kill", action="store_true", help="at once: their sessions are killed without grace")
    stop.add_argument("--all", action="store_true", help="all agents, without a question")
    stop.add_argument("--yes", action="store_true", help="do not ask")
    pause = add_command(
        commands, "pause", "telling:pause", "interrupt agents; they begin nothing until they are resumed"
    )
    reason_option(pause)
    resume = add_command(commands, "resume", "telling:resume", "resume paused agents, or try a resting account again")
    resume.add_argument("--account", metavar="NAME", default="", help="try this account again before its time")
    for name, command in (("stop", stop), ("pause", pause), ("resume", resume)):
        default = "all, after a question" if command is stop else "all"
        command.add_argument("agents", metavar="AGENT", nargs="*", help=f"the agents' names (default: {default})")
        log_option(command)
        answers_option(command, name)


def add_trusting(commands: Commands) -> None:
    """Add the end of a quarantine, and the changes of an agent's trust."""
    release = add_command(
        commands, "release", "releasing:release", "release an agent, a service or a task from quarantine"
    )
    release.add_argument("name", metavar="NAME", help="its name, as lifefold status shows it")
    log_option(release)
    answers_option(release, "release")

    trust = add_command(
        commands, "trust", "trusting:trust", "change the trust of an agent, where the fleet file has gates"
    )
    trust.add_argument("agent", metavar="AGENT", help="the agent's name")
    moves = trust.add_mutually_exclusive_group(required=True)
    for move, about in (
        ("promote", "by one level; clears its violations"),
        ("demote", "by one level"),
        ("violation", "record a violation: it is demoted, and rises only when an operator promotes it"),
    ):
        moves.add_argument(f"--{move}", dest="move", action="store_const", const=move, help=about)
    trust.add_argument("--reason", metavar="TEXT", required=True, help="why")
    log_option(trust)
    answers_option(trust, "trust")


def add_deciding(commands: Commands) -> None:
    """Add the decisions about tasks, questions and the target branch."""
    approve = add_command(
        commands,
        "approve",
        "approving:approve",
        "approve tasks and permissions that wait for approval; without NAME, the plan",
    )
    approve.add_argument(
        "tasks", metavar="NAME", nargs="*", help="tasks, or permissions as `ann/Q3` (default: the plan as a whole)"
    )
    approve.add_argument("--all", action="store_true", help="all that waits: plan, tasks and permissions; asks first")
    approve.add_argument("--yes", action="store_true", help="with --all: do not ask")
    reason_option(approve)
    log_option(approve)
    answers_option(approve, "approve")
    reject = add_command(commands, "reject", "deciding:reject", "reject tasks or questions that wait, or the plan")
    reject.add_argument("tasks", metavar="NAME", nargs="*", help="tasks, or questions as `ann/Q3`")
    reject.add_argument("--plan", action="store_true", help="reject the plan as a whole")
    reason_option(reject, about="why, which a task needs; its next prompt or the agent has it")
    log_option(reject)
    answers_option(reject, "reject")
    answer = add_command(commands, "answer", "answering:answer", "answer a question of an agent in words")
    answer.add_argument("question", metavar="QUESTION", help="its name, as `ann/Q3` in lifefold status")
    answer.add_argument("text", metavar="TEXT", help="the answer")
    log_option(answer)
    answers_option(answer, "answer")
    cancel = add_command(commands, "cancel", "deciding:cancel", "cancel tasks; their sessions end")
    cancel.add_argument("tasks", metavar="TASK", nargs="+", help="the tasks' ids")
    reason_option(cancel)
    log_option(cancel)
    answers_option(cancel, "cancel")
    _add_abort(commands)
    branch = add_command(
        commands, "branch", "branching:branch", "accept the target branch at the commit to which an agent has moved it"
    )
    branch.add_argument("--accept", action="store_true", required=True, help="merge into it as it is")
    reason_option(branch)
    log_option(branch)
    answers_option(branch, "branch")
    retry = add_command(commands, "retry", "deciding:retry", "try failed tasks again, and let blocked tasks go on")
    retry.add_argument("tasks", metavar="TASK", nargs="+", help="the tasks' ids")
    log_option(retry)
    answers_option(retry, "retry")


def _add_abort(commands: Commands) -> None:
    abort = add_command(
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
    reason_option(abort, "--because")
    log_option(abort, _FOR_SESSIONS)
    answers_option(abort, "abort")


def add_budget(commands: Commands) -> None:
    """Add the command for budgets."""
    budget = add_command(
        commands, "budget", "budgeting:budget", "show the balances of budgets; with --add-..., raise one"
    )
    budget.add_argument("--agent", metavar="AGENT", help="raise the budget of this agent (default: of the fleet)")
    budget.add_argument("--task", metavar="TASK", help="raise the budget of this task")
    budget.add_argument("--add-usd", metavar="X", help="US dollars to add")
    budget.add_argument("--add-tokens", metavar="N", help="tokens to add")
    budget.add_argument("--add-time", metavar="D", help="time to add, as 90m")
    budget.add_argument("--add-sessions", metavar="N", help="sessions to add")
    reason_option(budget)
    log_option(budget)
    answers_option(budget, "budget", about="print JSON")


def add_giving(commands: Commands) -> None:
    """Add ``task add``."""
    tasks = commands.add_parser("task", help="add a task to a fleet: task add", description="Add tasks to a fleet.")
    add = add_command(tasks.add_subparsers(metavar="add", required=True), "add", "adding:add", "add a task to a fleet")
    add.add_argument("--id", metavar="ID", help="its id")
    add.add_argument("--prompt", metavar="TEXT", help="the prompt for the agent")
    about = "a list of tasks instead: [[tasks]] in TOML, or the same in JSON; - is the standard input"
    add.add_argument("--from", dest="source", metavar="FILE", help=about)
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
    log_option(add)
    answers_option(add, "task add")
    add_examples(add, *EXAMPLES["task add"])


def add_more(commands: Commands) -> None:
    """Add the commands that end the intake and split a task, and the server of an agent."""
    finish = add_command(
        commands, "finish", "adding:finish", "tell a fleet that runs with --watch that no more tasks will come"
    )
    reason_option(finish)
    log_option(finish)
    answers_option(finish, "finish")

    split = add_command(commands, "split", "adding:split", "split a task into parts: for the session that works at it")
    split.add_argument("task", metavar="TASK", nargs="?", help="the task's id (default: LIFEFOLD_TASK)")
    split.add_argument("--token", metavar="TOKEN", help="the token of its claim (default: LIFEFOLD_TOKEN)")
    split.add_argument(
        "--part", metavar="PROMPT", action="append", default=[], help="the prompt of a part; may be repeated"
    )
    add_command(
        commands, "mcp", "serving:mcp", "serve an agent's tools for its own task over MCP: for its session only"
    )
    shape = '[{"prompt": ..., "verify": [[...]], "files": [...]}]'
    split.add_argument("--json", metavar="FILE", help=f"a file with the parts, or - for the standard input, as {shape}")
    log_option(split, _FOR_SESSIONS)


_FOR_SESSIONS: Final = "the log (default: LIFEFOLD_DB, or the one in .lifefold/)"
