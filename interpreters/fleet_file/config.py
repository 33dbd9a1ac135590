"""The keys of the fleet as a whole, and what its own table says."""

import os
from pathlib import Path

from msgspec.structs import replace

from lifefold.core.fleet import GatePlan, Preemption
from lifefold.core.fleet.system.plan import MOST_RETRIES, RETRIED_AS_OFTEN_AS_THE_TASK_SAYS
from lifefold.core.lifecycles.task import OnDeath
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.intensity import Intensity
from lifefold.core.policy.retry import RetryPolicy
from lifefold.interpreters.fleet_file import forms, values
from lifefold.interpreters.fleet_file.agents import MOST_RESTARTS, AgentKeys, warn_of_a_long_base
from lifefold.interpreters.fleet_file.budget import FleetBudgetKeys, read_budget, said_budget
from lifefold.interpreters.fleet_file.gates import CLAIM, GATES, MERGE
from lifefold.interpreters.fleet_file.interpreters import InterpreterKeys
from lifefold.interpreters.fleet_file.keys import Key, Section, said, said_but_defaults
from lifefold.interpreters.fleet_file.model import DEFAULT_LEASE_MS, DEFAULT_VERIFY_TIMEOUT_MS, Fleet
from lifefold.interpreters.fleet_file.table import Table
from lifefold.interpreters.fleet_file.tasks import NEEDS_REPOSITORY, ON_DEATH, TaskKeys

LEAST_LEASE_MS = 1_000
RESTART = "restart"
"""The key of a table that is not there unless agents are to be restarted."""
PREEMPTION = "preemption"
"""The same, unless tasks are to make room for those that come first."""
ABORTS = "aborts"
"""The same, unless tools, siblings and whole subtrees are to be aborted."""

_RESTARTS = Intensity()
_RETRY = RETRIED_AS_OFTEN_AS_THE_TASK_SAYS


class RetryKeys(Section, header="[fleet.retry]"):
    """When a task that failed is tried again."""

    backoff_base = Key(
        forms.duration(1),
        "before its n-th retry a task rests `min(base * 2^(n-1), cap)`",
        _RETRY.backoff_base_ms,
    )
    backoff_cap = Key(forms.duration(1), "the longest rest before a retry", _RETRY.backoff_cap_ms)
    fatal_retries = Key(
        forms.integer(0, MOST_RETRIES),
        "how often a failure that cannot pass is tried again: an agent that is not logged in, or has no credit left",
        _RETRY.fatal_retries,
    )


class RestartKeys(Section, header="[fleet.restart]"):
    """Has agents that have stopped by their errors restarted, each as often as its `[agents.restart]` says."""

    max_restarts = Key(
        forms.integer(1, MOST_RESTARTS),
        "agents are restarted so often within `window`, all of them together; who needs one more is quarantined",
        _RESTARTS.max_restarts,
    )
    window = Key(forms.duration(1), "how long a restart counts", _RESTARTS.window_ms)


class PreemptionKeys(Section, header="[fleet.preemption]"):
    """Has a task make room for one that comes first, when nobody is free for that one."""

    deadline = Key(
        forms.duration(1),
        "how long the session at a task that makes room may take to end when it is asked to; then it is killed",
        0,
        absent="the agent's `grace`",
    )


class AbortKeys(Section, header="[fleet.aborts]"):
    """Lets agents say that a tool was aborted, and people abort siblings and subtrees: `lifefold abort`."""

    tool_to_sibling = Key(
        forms.BOOLEAN,
        "whether the abort of a tool aborts the other parts of the same task, too, with all that is below them",
        default=False,
    )
    sibling_to_session = Key(
        forms.BOOLEAN,
        "whether an abort of siblings aborts the task that they are parts of, with all that is below it",
        default=False,
    )


class FleetKeys(Section, header="[fleet]"):
    """The fleet as a whole."""

    name = Key(forms.NAME, "what it is called; its log is `.lifefold/NAME.db`", "", required=True)
    repository = Key(
        forms.TEXT,
        "the git repository the agents work on, or a folder in it; without it each task has a plain folder,"
        " which may lie in no repository, and nothing is merged",
        "",
    )
    lease = Key(
        forms.duration(LEAST_LEASE_MS),
        "how long sessions go on when their runner is gone; a new run within that time adopts them, and after it they"
        " are ended, which is a failed attempt",
        DEFAULT_LEASE_MS,
    )
    verify_timeout = Key(forms.duration(1), "how long one verification command may take", DEFAULT_VERIFY_TIMEOUT_MS)
    approve_plan = Key(forms.BOOLEAN, "whether a person must approve the tasks before any is given out", default=False)
    approval_timeout = Key(
        forms.duration(1),
        "how long a person is waited for who has to agree to a merge; then silence is a refusal",
        0,
        absent="as long as it takes",
    )
    orphaned = Key(
        ON_DEATH,
        'what becomes of a task whose session dies: `"fail"`: it has failed, and is retried; `"requeue"`: it is given'
        ' back, and no retry is counted; `"verify"`: if anything differs from where the claim began, its `verify`'
        " decides: it is done and merged, or has failed",
        OnDeath.FAIL,
    )
    gates = Key[GatePlan | None](
        GATES,
        f"how far an agent must be trusted for which transition of a task: `{CLAIM}` is to take it, `{MERGE}` to have"
        " its work merged without a person's approval; without any, and without `trust`, trust does not count",
        None,
    )
    env = Key[dict[str, str]](
        forms.VARIABLES, "variables of the environment of all agents, services and verification commands", {}
    )
    env_pass = Key[tuple[str, ...]](
        forms.VARIABLE_NAMES,
        "which variables of the runner's environment all of them get besides the usual ones; see below",
        (),
    )
    redact = Key[tuple[str, ...]](
        forms.VARIABLE_NAMES,
        "which variables are secrets although their names do not say so: their values are in no record; see below",
        (),
    )
    retry = RetryKeys
    budget = FleetBudgetKeys
    restart = RestartKeys
    preemption = PreemptionKeys
    aborts = AbortKeys


class FileKeys(Section):
    """Who works, on what, within which limits: a fleet of lifefold."""

    fleet = FleetKeys
    agents = AgentKeys
    tasks = TaskKeys
    interpreters = InterpreterKeys


def fleet_of(table: Table, source: Path) -> Fleet:
    """Return what the table of that name says, with nobody in it yet."""
    fleet = Fleet(
        name=table.read(FleetKeys.name),
        repository=_repository(table, source.parent),
        lease_ms=table.read(FleetKeys.lease),
        verify_timeout_ms=table.read(FleetKeys.verify_timeout),
        source=source,
        approve_plan=table.read(FleetKeys.approve_plan),
        approval_ms=table.read(FleetKeys.approval_timeout),
        retry=_retry(table.table(RetryKeys)),
        budget=read_budget(table.table(FleetBudgetKeys)),
        gates=table.read(FleetKeys.gates),
        orphaned=table.read(FleetKeys.orphaned),
        restarts=_restarts(table.table(RestartKeys)) if RESTART in table else None,
        preemption=_preemption(table.table(PreemptionKeys)) if PREEMPTION in table else None,
        aborts=_aborts(table.table(AbortKeys)) if ABORTS in table else None,
        env=dict(table.read(FleetKeys.env)),
        env_pass=table.read(FleetKeys.env_pass),
        redact=table.read(FleetKeys.redact),
    )
    table.finish()
    if fleet.orphaned is OnDeath.VERIFY and FleetKeys.repository.name not in table:
        table.problem("orphaned", f"found {values.shown(fleet.orphaned)}; accepted: {NEEDS_REPOSITORY}")
    return fleet


def _retry(table: Table) -> RetryPolicy:
    """Return when a task is tried again; how often, each task says itself."""
    policy = replace(
        _RETRY,
        fatal_retries=table.read(RetryKeys.fatal_retries),
        backoff_base_ms=table.read(RetryKeys.backoff_base),
        backoff_cap_ms=table.read(RetryKeys.backoff_cap),
    )
    table.finish()
    warn_of_a_long_base(table, policy.backoff_base_ms, policy.backoff_cap_ms)
    return policy


def _restarts(table: Table) -> Intensity:
    """Return how often agents are restarted, all of them together."""
    intensity = Intensity(table.read(RestartKeys.max_restarts), table.read(RestartKeys.window))
    table.finish()
    return intensity


def _preemption(table: Table) -> Preemption:
    """Return how tasks make room for those that come first."""
    found = Preemption(table.read(PreemptionKeys.deadline))
    table.finish()
    return found


def _aborts(table: Table) -> AbortPolicy:
    """Return what an abort comes to (E37)."""
    found = AbortPolicy(table.read(AbortKeys.tool_to_sibling), table.read(AbortKeys.sibling_to_session))
    table.finish()
    return found


def written_in(fleet: Fleet, table: Table) -> dict[str, object]:
    """Return what the tables [fleet] and [fleet.retry] mean, as a file would write it."""
    written = said({FleetKeys.name: fleet.name, FleetKeys.lease: fleet.lease_ms})
    written |= said({FleetKeys.verify_timeout: fleet.verify_timeout_ms})
    if fleet.repository is not None:
        written |= said({FleetKeys.repository: Path(table.read(FleetKeys.repository)).as_posix()})
    written |= said_but_defaults(
        {
            FleetKeys.approve_plan: fleet.approve_plan,
            FleetKeys.approval_timeout: fleet.approval_ms,
            FleetKeys.gates: fleet.gates,
            FleetKeys.orphaned: fleet.orphaned,
        }
    )
    retry = said_but_defaults(
        {
            RetryKeys.backoff_base: fleet.retry.backoff_base_ms,
            RetryKeys.backoff_cap: fleet.retry.backoff_cap_ms,
            RetryKeys.fatal_retries: fleet.retry.fatal_retries,
        }
    )
    restart = (
        {
            RestartKeys.max_restarts: fleet.restarts.max_restarts,
            RestartKeys.window: fleet.restarts.window_ms,
        }
        if fleet.restarts
        else {}
    )
    tables = {"retry": retry, RESTART: said(restart)}
    written |= {name: each for name, each in tables.items() if each} | said_budget(fleet.budget)
    if fleet.preemption is not None:
        written[PREEMPTION] = said_but_defaults({PreemptionKeys.deadline: fleet.preemption.within_ms})
    if fleet.aborts is not None:
        written[ABORTS] = said_but_defaults(
            {
                AbortKeys.tool_to_sibling: fleet.aborts.tool_to_sibling,
                AbortKeys.sibling_to_session: fleet.aborts.sibling_to_session,
            }
        )
    return written


def _repository(table: Table, folder: Path) -> Path | None:
    written = table.read(FleetKeys.repository)
    if not written:
        return None
    repository = Path(os.path.realpath(folder / written))
    if not os.path.isdir(repository):  # noqa: PTH112 - never raises
        accepted = "a folder, from the fleet file's folder; leave it out for plain folders"
        table.problem("repository", f"found {values.shown(written)}, which is no folder; accepted: {accepted}")
    return repository
