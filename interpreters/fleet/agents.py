"""The ``[[agents]]`` of a fleet file."""

from collections.abc import Iterator
from pathlib import Path

from lifefold.core.session import Limits
from lifefold.interpreters.fleet import values
from lifefold.interpreters.fleet.command import (
    parse_command,
    placeholders,
    python_command,
    settled_command,
    what_is_wrong_with,
)
from lifefold.interpreters.fleet.model import DEFAULT_OUTPUT_LIMIT_BYTES, Agent
from lifefold.interpreters.fleet.table import Names, Table
from lifefold.interpreters.fleet.units import format_duration

MOST_AGENTS = 1_000
MOST_ERRORS = 1_000_000
LEAST_OUTPUT_BYTES = 1_000

UNTOLD = (
    "neither {prompt} nor {prompt_file}: the agent has to read what to do from the file that LIFEFOLD_PROMPT_FILE names"
)


def read_agents(root: Table, folder: Path) -> list[Agent]:
    """Return all agents, those of a ``count`` numbered from 1; paths in commands are relative to ``folder``."""
    names = Names()
    return [
        agent
        for table in root.tables("agents", named_by="name")
        for agent in _agents(table, folder)
        if names.is_new(table, "name", agent.name)
    ]


def _agents(table: Table, folder: Path) -> Iterator[Agent]:
    name = table.required("name", values.name, "")
    count = table.optional("count", values.integer(1, MOST_AGENTS), 1)
    written, target = _runs(table)
    env: dict[str, str] = table.optional("env", values.variables, {})
    limits = _limits(table)
    output_limit_bytes = table.optional("output_limit", values.size(LEAST_OUTPUT_BYTES), DEFAULT_OUTPUT_LIMIT_BYTES)
    place = table.place("target") if target else ""
    table.finish()
    command = python_command(target, folder) if target else settled_command(written, folder) if written else ()
    if written and command:
        _check_command(table, written, command, env)
    for number in range(1, count + 1) if name else ():
        numbered = name if count == 1 else f"{name}-{number}"
        yield Agent(numbered, command, written, env, limits, output_limit_bytes, target, place)


def _runs(table: Table) -> tuple[tuple[str, ...], str]:
    """Return the command, or the target of an agent of kind ``python``; what is not there is empty."""
    if table.optional("kind", values.kind, "command") == "python":
        return (), table.required("target", values.target, "")
    return table.required("command", parse_command, ()), ""


def _limits(table: Table) -> Limits:
    default = Limits()
    limits = Limits(
        max_consecutive_errors=table.optional(
            "max_consecutive_errors", values.integer(1, MOST_ERRORS), default.max_consecutive_errors
        ),
        max_total_errors=table.optional("max_total_errors", values.integer(1, MOST_ERRORS), default.max_total_errors),
        backoff_base_ms=table.optional("backoff_base", values.duration(1), default.backoff_base_ms),
        backoff_cap_ms=table.optional("backoff_cap", values.duration(1), default.backoff_cap_ms),
        jitter=table.optional("jitter", values.fraction, default.jitter),
        grace_ms=table.optional("grace", values.duration(0), default.grace_ms),
        session_timeout_ms=table.optional("session_timeout", values.duration(1), default.session_timeout_ms),
        reset_errors_on=table.optional("reset_errors_on", values.start_or_success, default.reset_errors_on),
    )
    if "session_timeout" not in table:
        table.warn("session_timeout", "no session_timeout: a session that hangs is never ended")
    if limits.backoff_base_ms > limits.backoff_cap_ms:
        cap = format_duration(limits.backoff_cap_ms)
        table.warn("backoff_base", f"longer than backoff_cap, so every pause lasts {cap}")
    return limits


def _check_command(table: Table, written: tuple[str, ...], command: tuple[str, ...], env: dict[str, str]) -> None:
    wrong = what_is_wrong_with(command[0], env)
    if wrong:
        accepted = "a program on PATH, or the path of one, from the fleet file's folder; it must be executable"
        one_word = "; each argument is a text of its own" if " " in command[0] else ""
        table.problem("command", f"found {values.shown(written[0])}, which {wrong}; accepted: {accepted}{one_word}", 0)
    used = {name for argument in command for name in placeholders(argument)}
    if not used & {"prompt", "prompt_file"}:
        table.warn("command", UNTOLD)
