"""The ``[[agents]]`` of a fleet file."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from lifefold.core.fleet import Caps
from lifefold.core.fleet.worker import stall_detector
from lifefold.core.lifecycles.session import Limits
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.adaptive_timeout import LONGEST_MS
from lifefold.core.policy.intensity import Restart
from lifefold.core.policy.recovery import Retry
from lifefold.interpreters.fleet_file import forms, programs, services, values
from lifefold.interpreters.fleet_file.budget import AgentBudgetKeys, check_caps, read_caps, with_time
from lifefold.interpreters.fleet_file.command import (
    COMMAND,
    placeholders,
    python_command,
    settled_command,
    what_is_wrong_with,
)
from lifefold.interpreters.fleet_file.gates import LEVEL
from lifefold.interpreters.fleet_file.keys import Key, Narrow, Section, heading, keys_of
from lifefold.interpreters.fleet_file.model import DEFAULT_OUTPUT_LIMIT_BYTES, Agent, Fleet, Service
from lifefold.interpreters.fleet_file.services import IS_SERVICE, RUNS_A_COMMAND
from lifefold.interpreters.fleet_file.table import Names, Table
from lifefold.interpreters.fleet_file.values import as_array, as_table
from lifefold.interpreters.units import format_duration

MOST_AGENTS = 1_000
MOST_ERRORS = 1_000_000
LEAST_OUTPUT_BYTES = 1_000
LEAST_SILENCE_MS = 1_000

UNTOLD = "neither {prompt} nor {prompt_file}: the agent must read its prompt from the file LIFEFOLD_PROMPT_FILE"

MOST_RESTARTS = 100

_LIMITS = Limits()
_RESTART = Restart()


class RestartKeys(Section, header="[agents.restart]"):
    """The restarts of an agent that its errors have stopped, in a fleet with `[fleet.restart]`."""

    max_restarts = Key(
        forms.integer(0, MOST_RESTARTS),
        "the restarts within `window`; one more is a quarantine; 0: never restarted",
        _RESTART.max_restarts,
    )
    window = Key(forms.duration(1), "how long a restart counts", _RESTART.window_ms)
    backoff_base = Key(
        forms.duration(1),
        "the pause before the n-th restart within `window` is `min(base * 2^(n-1), cap)`",
        _RESTART.pause.base_ms,
    )
    backoff_cap = Key(forms.duration(1), "the longest pause before a restart", _RESTART.pause.cap_ms)


ADAPTIVE_MS = 0
"""The value of a time-out that depends on the times of other sessions (E33)."""

TIMEOUT = forms.duration_or("adaptive", ADAPTIVE_MS)


class AgentKeys(Section, header="[[agents]]", named_by="name", least=1):
    """The agents and services."""

    name = Key(forms.NAME, "the name", "", required=True)
    count = Key(
        forms.integer(1, MOST_AGENTS),
        "the number of such agents; several are `name-1`, `name-2` and so on",
        1,
        unless=IS_SERVICE,
    )
    kind = programs.kind
    command = Key[tuple[str, ...]](
        COMMAND,
        "the program and its arguments, never a shell; `{prompt}`, `{prompt_file}`, `{task}`, `{worktree}`,"
        " `{fleet_dir}` are replaced, `{{` is a brace",
        (),
        required=True,
        when=RUNS_A_COMMAND,
    )
    target = Key(
        forms.TARGET,
        "your class, in a module beside the fleet file or installed",
        "",
        required=True,
        when=("kind", "python"),
    )
    model = programs.model
    permissions = programs.permissions
    args = programs.args
    program = programs.program
    roles = Key[tuple[str, ...]](forms.NAMES, "the roles for tasks with `role`", (), unless=IS_SERVICE)
    trust = Key(
        LEVEL,
        "the trust at the beginning, in a fleet with gates; it earns more",
        AccessLevel.UNTRUSTED,
        unless=IS_SERVICE,
    )
    account = Key(
        forms.NAME,
        "the account of its model service; agents of one account rest together at a limit; see [quota](fleet/quota.md)",
        "",
        absent="the kind of an agent program; none for a command",
        unless=IS_SERVICE,
    )
    env = Key[dict[str, str]](
        forms.VARIABLES, "variables of its environment; they replace those of the fleet and those passed on", {}
    )
    env_pass = Key[tuple[str, ...]](
        forms.VARIABLE_NAMES,
        "further variables of the runner that it gets, such as the key that it logs in"
        ' with; `["*"]` is all of them; see below',
        (),
    )
    session_timeout = Key[int | None](
        TIMEOUT,
        'the longest time of a session; without one a hung session is never ended (a warning says so). `"adaptive"`:'
        " half an hour,"
        " and 30 s for each of the task's `files`; more, up to two hours, if others of the same `role` took longer;"
        " of a service it is a duration",
        _LIMITS.session_timeout_ms,
        narrow=Narrow(IS_SERVICE, forms.duration(1)),
    )
    stall_timeout = Key[int | None](
        forms.duration(LEAST_SILENCE_MS),
        "a session without a sign of progress for this time is ended, as an error; see below",
        None,
        unless=IS_SERVICE,
    )
    stall_warn = Key[int | None](
        forms.duration(LEAST_SILENCE_MS),
        "the silence after which the operator gets a notice",
        None,
        absent="half of `stall_timeout`",
        unless=IS_SERVICE,
    )
    stall_interrupt = Key[int | None](
        forms.duration(LEAST_SILENCE_MS),
        "the silence after which the session gets SIGINT, once",
        None,
        unless=IS_SERVICE,
    )
    grace = Key(forms.duration(0), "the time between SIGTERM and SIGKILL", _LIMITS.grace_ms)
    max_consecutive_errors = Key(
        forms.integer(1, MOST_ERRORS),
        "the errors in a row at which the agent stops",
        _LIMITS.max_consecutive_errors,
        unless=IS_SERVICE,
    )
    max_total_errors = Key(
        forms.integer(1, MOST_ERRORS),
        "the errors in all at which the agent stops",
        _LIMITS.max_total_errors,
        unless=IS_SERVICE,
    )
    backoff_base = Key(
        forms.duration(1),
        "the pause after the n-th error in a row is `min(base * 2^(n-1), cap)`; mind `reset_errors_on`",
        _LIMITS.backoff_base_ms,
        unless=IS_SERVICE,
    )
    backoff_cap = Key(forms.duration(1), "the longest pause after an error", _LIMITS.backoff_cap_ms, unless=IS_SERVICE)
    jitter = Key(
        forms.FRACTION,
        "the largest share by which each pause is shortened, so that agents do not start together",
        _LIMITS.jitter,
        unless=IS_SERVICE,
    )
    reset_errors_on = Key[Literal["start", "success"]](
        forms.RESET_ERRORS_ON,
        "the end of a row of errors: a session that starts, or only one that succeeds; see below",
        _LIMITS.reset_errors_on,
        unless=IS_SERVICE,
    )
    output_limit = Key(
        forms.size(LEAST_OUTPUT_BYTES),
        "the output of each session, on disk; the middle of a longer one is dropped",
        DEFAULT_OUTPUT_LIMIT_BYTES,
    )
    triggers = services.triggers
    directory = services.directory
    restart_policy = services.restart_policy
    max_restarts = services.max_restarts
    restart_backoff = services.restart_backoff
    max_consecutive_failures = services.max_consecutive_failures
    idle_timeout = services.idle_timeout
    max_lifetime = services.max_lifetime
    drain_timeout = services.drain_timeout
    budget = AgentBudgetKeys
    restart = RestartKeys


def read_agents(root: Table, folder: Path, fleet: Fleet) -> tuple[list[Agent], list[Service]]:
    """Return all agents, those of a ``count`` numbered from 1, and services; paths are relative to ``folder``.

    The budgets of agents must fit the budget of the ``fleet``; agents get its variables, too.
    """
    budget = fleet.budget
    names = Names()
    limited: list[tuple[Table, Caps]] = []
    found = [
        each
        for table in root.tables(AgentKeys)
        if not programs.refuse_kind(table)
        for each in (_services(table, folder, fleet) if _is_service(table) else _agents(table, folder, fleet, limited))
        if names.is_new(table, "name", each.name)
    ]
    agents = [each for each in found if isinstance(each, Agent)]
    share = with_time(budget, [each.limits for each in agents]).share
    for table, caps in limited:
        check_caps(table, caps, share)
    return agents, [each for each in found if isinstance(each, Service)]


def written_roles(root: Table) -> list[str]:
    """Return all roles in the file, also of refused agents, so that a task with one is not reported as well."""
    agents = as_array(root.values.get(heading(AgentKeys).key)) or []
    tables = [table for agent in agents if (table := as_table(agent)) is not None]
    roles = [role for table in tables for role in as_array(table.get(AgentKeys.roles.name)) or []]
    return [role for role in roles if isinstance(role, str)]


def _is_service(table: Table) -> bool:
    return table.values.get(AgentKeys.kind.name) == "service"


def _services(table: Table, folder: Path, fleet: Fleet) -> Iterator[Service]:
    name, _ = table.read(AgentKeys.name), table.read(AgentKeys.kind)
    written = table.read(AgentKeys.command)
    limits = Limits(grace_ms=table.read(AgentKeys.grace), session_timeout_ms=table.read(AgentKeys.session_timeout))
    env, env_pass = _variables(table, fleet)
    service = services.read_service(table, name, written, limits, folder)
    output_limit_bytes = table.read(AgentKeys.output_limit)
    table.finish()
    if "session_timeout" not in table:
        table.warn("session_timeout", "no session_timeout: a run that hangs is never ended")
    command = settled_command(written, folder) if written else ()
    if command:
        _check_program(table, written, command, env)
        used = [(n, name) for n, argument in enumerate(command) for name in placeholders(argument)]
        for place, placeholder in used:
            if placeholder in {"task", "worktree"}:
                accepted = "{prompt}, {prompt_file} and {fleet_dir}: a service has no task"
                table.problem("command", f'found "{{{placeholder}}}"; accepted: {accepted}', place)
    if name:
        yield replace(service, command=command, env=env, env_pass=env_pass, output_limit_bytes=output_limit_bytes)


def _variables(table: Table, fleet: Fleet) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the variables of an agent, and the names of those of the runner; both with the fleet's."""
    env, names = table.read(AgentKeys.env), table.read(AgentKeys.env_pass)
    return {**fleet.env, **env}, tuple(dict.fromkeys((*fleet.env_pass, *names)))


def _agents(table: Table, folder: Path, fleet: Fleet, limited: list[tuple[Table, Caps]]) -> Iterator[Agent]:
    name = table.read(AgentKeys.name)
    count = table.read(AgentKeys.count)
    roles = tuple(dict.fromkeys(table.read(AgentKeys.roles)))
    trust = table.read(AgentKeys.trust)
    env, env_pass = _variables(table, fleet)
    kind = table.read(AgentKeys.kind)
    program, command = programs.read_program(table, kind, folder, env)
    account = table.read(AgentKeys.account) or programs.own_account(program)
    written, target = _runs(table, kind)
    timeout_ms = table.read(AgentKeys.session_timeout)
    adaptive = timeout_ms == ADAPTIVE_MS
    limits = _limits(table, LONGEST_MS if adaptive else timeout_ms)
    stall = _stall(table)
    restart = _restart(table.table(RestartKeys))
    output_limit_bytes = table.read(AgentKeys.output_limit)
    budget = table.table(AgentBudgetKeys)
    caps = read_caps(budget)
    limited.append((budget, caps))
    place = table.place("target") if target else ""
    services.refuse_triggers(table)
    table.finish(partial(programs.of_other_kinds, keys_of(AgentKeys), kind))
    if target:
        command = python_command(target, folder)
    elif written:
        command = settled_command(written, folder)
        _check_command(table, written, command, env)
    for number in range(1, count + 1) if name else ():
        numbered = name if count == 1 else f"{name}-{number}"
        yield Agent(
            numbered,
            command,
            written,
            env,
            limits,
            output_limit_bytes,
            target,
            place,
            roles,
            trust,
            caps,
            stall,
            restart,
            adaptive,
            env_pass,
            program,
            account,
        )


def _runs(table: Table, kind: str) -> tuple[tuple[str, ...], str]:
    """Return the command, or the target of an agent of kind ``python``; an agent program has neither."""
    match kind:
        case "python":
            return (), table.read(AgentKeys.target)
        case "command":
            return table.read(AgentKeys.command), ""
        case _:
            return (), ""


def _limits(table: Table, timeout_ms: int | None) -> Limits:
    limits = Limits(
        max_consecutive_errors=table.read(AgentKeys.max_consecutive_errors),
        max_total_errors=table.read(AgentKeys.max_total_errors),
        backoff_base_ms=table.read(AgentKeys.backoff_base),
        backoff_cap_ms=table.read(AgentKeys.backoff_cap),
        jitter=table.read(AgentKeys.jitter),
        grace_ms=table.read(AgentKeys.grace),
        session_timeout_ms=timeout_ms,
        reset_errors_on=table.read(AgentKeys.reset_errors_on),
    )
    if "session_timeout" not in table and "stall_timeout" not in table:
        table.warn("session_timeout", "no session_timeout: a session that hangs is never ended")
    warn_of_a_long_base(table, limits.backoff_base_ms, limits.backoff_cap_ms)
    return limits


def _stall(table: Table) -> stall_detector.Limits | None:
    """Return what silence an agent may keep; None if it is not watched."""
    end_ms = table.read(AgentKeys.stall_timeout)
    written = {key.name: table.read(key) for key in (AgentKeys.stall_warn, AgentKeys.stall_interrupt)}
    if end_ms is None:
        for name in [name for name in written if name in table]:
            table.warn(name, "no stall_timeout: its sessions have no stall detector")
        return None
    warn_ms, nudge_ms = written["stall_warn"] or end_ms // 2, written["stall_interrupt"]
    steps = {"stall_warn": warn_ms, "stall_interrupt": nudge_ms, "stall_timeout": end_ms}
    for (name, ms), (later, later_ms) in pairwise([(name, ms) for name, ms in steps.items() if ms is not None]):
        if later_ms <= ms:
            shorter, longer = format_duration(ms), format_duration(later_ms)
            if name in table:
                table.problem(name, f"found {shorter}; accepted: less than {later}, {longer}")
            else:
                table.problem(later, f"found {longer}; accepted: more than {name}, {shorter}")
            return None
    return stall_detector.Limits(warn_ms, nudge_ms, end_ms)


def _restart(table: Table) -> Restart:
    """Return how often an agent is restarted."""
    base_ms, cap_ms = table.read(RestartKeys.backoff_base), table.read(RestartKeys.backoff_cap)
    restart = Restart(
        max_restarts=table.read(RestartKeys.max_restarts),
        window_ms=table.read(RestartKeys.window),
        pause=Retry(base_ms=base_ms, cap_ms=cap_ms),
    )
    table.finish()
    warn_of_a_long_base(table, base_ms, cap_ms)
    return restart


def warn_of_a_long_base(table: Table, base_ms: int, cap_ms: int) -> None:
    """Warn if pauses cannot grow."""
    if base_ms > cap_ms:
        table.warn("backoff_base", f"longer than backoff_cap, so every pause lasts {format_duration(cap_ms)}")


def _check_command(table: Table, written: tuple[str, ...], command: tuple[str, ...], env: dict[str, str]) -> None:
    _check_program(table, written, command, env)
    used = {name for argument in command for name in placeholders(argument)}
    if not used & {"prompt", "prompt_file"}:
        table.warn("command", UNTOLD)


def _check_program(table: Table, written: tuple[str, ...], command: tuple[str, ...], env: dict[str, str]) -> None:
    wrong = what_is_wrong_with(command[0], env)
    if wrong:
        accepted = "a program on PATH, or the path of one, from the fleet file's folder; it must be executable"
        one_word = "; each argument is a text of its own" if " " in command[0] else ""
        table.problem("command", f"found {values.shown(written[0])}, which {wrong}; accepted: {accepted}{one_word}", 0)
