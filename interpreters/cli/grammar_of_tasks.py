"""The grammar of the commands that change a task, and of the command that removes an ended fleet."""

from lifefold.interpreters.cli.grammar_parts import Commands, add_command, answers_option, log_option


def add_editing(commands: Commands) -> None:
    """Add ``edit``."""
    edit = add_command(
        commands, "edit", "editing:edit", "change a task while the fleet lives: in the fleet file and in the plan"
    )
    edit.add_argument("task", metavar="TASK", help="the task's id")
    prompts = edit.add_mutually_exclusive_group()
    prompts.add_argument("--prompt", metavar="TEXT", help="its prompt")
    prompts.add_argument("--prompt-file", metavar="FILE", help="a file with its prompt")
    prompts.add_argument("--editor", action="store_true", help="change its prompt in VISUAL or EDITOR")
    edit.add_argument(
        "--verify", metavar="COMMAND", action="append", help="the command that must exit with 0; may be repeated"
    )
    edit.add_argument("--priority", metavar="N", type=int, help="1 is the highest")
    edit.add_argument("--max-retries", metavar="N", type=int, help="the number of retries")
    edit.add_argument("--budget-usd", metavar="X", help="its budget in US dollars")
    edit.add_argument("--budget-tokens", metavar="N", help="its budget in tokens")
    edit.add_argument("--budget-time", metavar="D", help="its budget in time, as 90m")
    edit.add_argument("--budget-sessions", metavar="N", help="its budget in sessions")
    edit.add_argument("--yes", action="store_true", help="do not ask")
    log_option(edit)
    answers_option(edit, "edit")


def add_cleaning(commands: Commands) -> None:
    """Add ``clean``."""
    clean = add_command(
        commands, "clean", "cleaning:clean", "remove what a fleet that is over has left: logs, worktrees, branches"
    )
    about = "a log, or a fleet file for its latest log (default: the one in .lifefold/); the runs before it, too"
    clean.add_argument("log", metavar="LOG|FLEET.toml", nargs="?", help=about)
    clean.add_argument("--unmerged", action="store_true", help="remove work that is not merged, too")
    clean.add_argument("--yes", action="store_true", help="do not ask")
    answers_option(clean, "clean", has_key=False)
