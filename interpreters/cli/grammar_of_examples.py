"""Examples in the help of the commands: what is typed after ``lifefold``, and what it does.

The reading commands of the desk have theirs beside their grammar.
"""

import argparse
from collections.abc import Mapping
from typing import Final

from lifefold.interpreters.cli.grammar_parts import add_examples

EXAMPLES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "run": (
        ("run fleet.toml", "until every task is settled"),
        ("run fleet.toml --dry-run", "what it would do, in which order"),
        ("run fleet.toml --watch", "and wait for more tasks"),
        ("run fleet.toml --again", "do what was not done, in a new log"),
    ),
    "plan": (
        ("plan fleet.toml", "how the file differs from the plan in force"),
        ("plan fleet.toml --accept", "put the difference in force"),
    ),
    "demo": (("demo", "in a new temporary folder"), ("demo --folder trial", "in a folder of yours")),
    "init": (("init ~/my-fleet", "a fleet file and an example agent"),),
    "doctor": (("doctor", "what this machine has"), ("doctor fleet.toml", "what this fleet needs")),
    "schema": (("schema > fleet.schema.json", "for an editor"),),
    "unit": (
        ("unit fleet.toml > ~/.config/systemd/user/fleet.service", "for the service manager of the user"),
        ("unit fleet.toml --watch --serve", "a fleet that waits for more, with its desk"),
    ),
    "upgrade": (
        ("upgrade .lifefold/fleet.db --dry-run", "what a start with this version would mean"),
        ("upgrade oven:system oven.db", "the log of a program of your own"),
    ),
    "serve": (
        ("serve", "all fleets of this machine"),
        ("serve --port 9000", "at another port"),
        ("serve report.json", "the counterexamples of lifefold check TARGET --json > report.json, step by step"),
    ),
    "status": (("status", "the agents"), ("status --json", "for a program")),
    "hosts": (("hosts", "the hosts"), ("hosts --json", "for a program")),
    "tasks": (("tasks", "the tasks"), ("tasks --json", "for a program")),
    "log": (
        ("log --task notes", "what concerns a task"),
        ("log --since 10m --follow", "the last ten minutes, and what follows"),
        ("log --task notes --format sequence", "a sequence diagram, for Mermaid"),
    ),
    "why": (("why notes", "why the task is in its state"),),
    "send": (
        ("send ann 'use the new schema'", "interrupts ann"),
        ("send notes 'keep it short'", "for whichever agent has the task"),
        ("send all 'look at main' --no-interrupt", "with the next prompt of all agents"),
    ),
    "attach": (("attach ann --exec", "her conversation, in this terminal"),),
    "stop": (
        ("stop ann --drain", "after her present task"),
        ("stop", "all agents, after a question"),
        ("stop --all --kill", "all agents, at once and unasked"),
    ),
    "pause": (("pause", "all agents"), ("pause ann --reason lunch", "one agent")),
    "resume": (("resume", "all agents"), ("resume --account default", "try a resting account")),
    "release": (("release ann", "ann goes on in her state"),),
    "trust": (("trust ann --promote --reason 'good work'", "one level up"),),
    "approve": (
        ("approve", "the plan"),
        ("approve notes ann/Q3", "finished work, and a permission"),
        ("approve --all", "all that waits, after a question"),
    ),
    "reject": (
        ("reject notes --reason 'no tests'", "the next prompt has the reason"),
        ("reject --plan --reason 'too much'", "the plan"),
    ),
    "answer": (("answer ann/Q3 'the blue one'", "a question in words"),),
    "cancel": (("cancel notes index", "two tasks"),),
    "abort": (("abort notes --scope session --because wrong", "the task, with its parts"),),
    "branch": (("branch --accept", "merge into the branch as it is"),),
    "retry": (("retry notes", "once more, at once"),),
    "clean": (
        ("clean fleet.toml", "its logs, worktrees and merged branches, after a question"),
        ("clean .lifefold/notes.db --unmerged --yes", "all of it, also work that is not merged"),
    ),
    "completion": (
        ("completion bash >> ~/.bashrc", "for every new bash"),
        ("completion fish > ~/.config/fish/completions/lifefold.fish", "for fish"),
    ),
    "edit": (
        ("edit notes --editor", "its prompt, in your editor"),
        ("edit notes --verify 'test -s notes.txt' --yes", "its verification"),
    ),
    "budget": (
        ("budget", "what is left"),
        ("budget --add-usd 5", "more for the fleet"),
        ("budget --task notes --add-time 90m", "more for a task"),
    ),
    "finish": (("finish", "no more tasks will come"),),
    "split": (("split --part 'write it' --part 'test it'", "the own task, in its session"),),
    "mcp": (("mcp", "for an agent program, in its session"),),
    "task add": (
        ("task add --id notes --prompt 'Write the notes'", "a task more"),
        ("task add --id index --prompt 'Write it' --depends-on notes", "after another one"),
        ("task add --from more.toml", "a list of tasks: all, or none"),
    ),
    "check": (("check fleet", "all properties of a fleet"), ("check session", "those of a lifecycle")),
    "simulate": (("simulate fleet --seeds 20", "twenty runs with faults"),),
    "machines": (("machines", "the names for check, simulate, table and diagram"),),
    "table": (("table session", "the lifecycle of a session"),),
    "diagram": (("diagram task --format dot", "for Graphviz"),),
}
"""The examples by command."""


def illustrate(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """Add the examples to the help of the commands."""
    for name, command in commands.items():
        if name in EXAMPLES:
            add_examples(command, *EXAMPLES[name])
