"""The keys of the fleet, and the reading of its table."""

import os
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from lifefold.core.fleet import GatePlan, Preemption
from lifefold.core.fleet.system.plan import MOST_RETRIES, RETRIED_AS_OFTEN_AS_THE_TASK_SAYS
from lifefold.core.lifecycles.task import OnDeath
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.intensity import Intensity
from lifefold.core.policy.retry import RetryPolicy
from lifefold.effects import NotificationKind
from lifefold.interpreters.fleet_file import forms, values
from lifefold.interpreters.fleet_file.agents import MOST_RESTARTS, AgentKeys, warn_of_a_long_base
from lifefold.interpreters.fleet_file.budget import FleetBudgetKeys, read_budget, said_budget
from lifefold.interpreters.fleet_file.cluster import ClusterKeys
from lifefold.interpreters.fleet_file.gates import CLAIM, GATES, MERGE
from lifefold.interpreters.fleet_file.interpreters import InterpreterKeys
from lifefold.interpreters.fleet_file.keys import Key, Section, said, said_but_defaults
from lifefold.interpreters.fleet_file.model import DEFAULT_LEASE_MS, DEFAULT_VERIFY_TIMEOUT_MS, Fleet
from lifefold.interpreters.fleet_file.notify import COMMAND, NotifyKeys, read_hooks
from lifefold.interpreters.fleet_file.prices import PriceKeys
from lifefold.interpreters.fleet_file.questions import (
    QUESTIONS,
    AnswerKeys,
    QuestionKeys,
    read_questions,
    said_questions,
)
from lifefold.interpreters.fleet_file.table import Table
from lifefold.interpreters.fleet_file.tasks import NEEDS_REPOSITORY, ON_DEATH, TaskKeys, on_retry_of

LEAST_LEASE_MS = 1_000
RESTART = "restart"
"""The key of the table that turns restarts of agents on."""
PREEMPTION = "preemption"
"""The key of the table that turns preemption on."""
ABORTS = "aborts"
"""The key of the table that turns aborts of tools, siblings and subtrees on."""
BRANCH: Final = "branch"
"""The value of ``merge`` by which verified work stays on a ready branch."""

_RESTARTS = Intensity()
_RETRY = RETRIED_AS_OFTEN_AS_THE_TASK_SAYS


class RetryKeys(Section, header="[fleet.retry]"):
    """The retries of failed tasks."""

    backoff_base = Key(
        forms.duration(1),
        "the pause before the n-th retry of a task is `min(base * 2^(n-1), cap)`",
        _RETRY.backoff_base_ms,
    )
    backoff_cap = Key(forms.duration(1), "the longest pause before a retry", _RETRY.backoff_cap_ms)
    fatal_retries = Key(
        forms.integer(0, MOST_RETRIES),
        "the retries of a failure that does not pass by itself: an agent without login or credit",
        _RETRY.fatal_retries,
    )


class RestartKeys(Section, header="[fleet.restart]"):
    """Restarts agents that their errors have stopped, within the limits of `[agents.restart]`."""

    max_restarts = Key(
        forms.integer(1, MOST_RESTARTS),
        "the restarts of all agents together within `window`; an agent that needs one more is quarantined",
        _RESTARTS.max_restarts,
    )
    window = Key(forms.duration(1), "how long a restart counts", _RESTARTS.window_ms)


class PreemptionKeys(Section, header="[fleet.preemption]"):
    """Preempts a task for one of higher priority, if no agent is free."""

    deadline = Key(
        forms.duration(1),
        "how long the session of a preempted task may take to end; then it is killed",
        0,
        absent="the agent's `grace`",
    )


class AbortKeys(Section, header="[fleet.aborts]"):
    """Allows `lifefold abort`: of tools by agents, of siblings and subtrees by operators."""

    tool_to_sibling = Key(
        forms.BOOLEAN,
        "whether the abort of a tool aborts the other parts of the same task, too, with their parts",
        default=False,
    )
    sibling_to_session = Key(
        forms.BOOLEAN, "whether an abort of siblings aborts their common task, with all its parts", default=False
    )


class FleetKeys(Section, header="[fleet]"):
    """The fleet as a whole."""

    name = Key(forms.NAME, "the name; the log is `.lifefold/NAME.db`", "", required=True)
    repository = Key(
        forms.TEXT,
        "the git repository of the work, or a folder in it; without it each task has a plain folder,"
        " outside any repository, and nothing is merged",
        "",
    )
    merge = Key(
        forms.MERGE,
        "where verified work goes: `target` merges it into the target branch; with `branch` it stays on a branch named"
        " after its task, for a pull request, and no task can have `depends_on` or `max_subtasks`",
        "target",
    )
    lease = Key(
        forms.duration(LEAST_LEASE_MS),
        "how long sessions go on without a runner; a new run within that time adopts them, and after it they"
        " end, as a failed attempt",
        DEFAULT_LEASE_MS,
    )
    verify_timeout = Key(forms.duration(1), "the longest time of one verification command", DEFAULT_VERIFY_TIMEOUT_MS)
    approve_plan = Key(forms.BOOLEAN, "whether an operator must approve the plan before any task begins", default=False)
    approval_timeout = Key(
        forms.duration(1), "how long a merge waits for its approval; then it is refused", 0, absent="without limit"
    )
    orphaned = Key(
        ON_DEATH,
        'the outcome of a task after the death of its session: `"fail"`: it fails, and is retried; `"requeue"`: it is'
        ' returned without a counted retry; `"verify"`: if the session has changed anything, the `verify` commands'
        " decide whether it is merged or fails",
        OnDeath.FAIL,
    )
    on_retry = Key(
        forms.ON_RETRY,
        "the conversation of a retry by the same agent: `resume` continues the one of the last attempt, `anew` begins"
        " another one; only agents whose programs keep conversations have any",
        "resume",
    )
    gates = Key[GatePlan | None](
        GATES,
        f"the trust that an agent needs for a transition of a task: `{CLAIM}` to take it, `{MERGE}` to have its work"
        " merged without an approval; without gates and `trust`, trust does not count",
        None,
    )
    env = Key[dict[str, str]](forms.VARIABLES, "variables of all agents, services and verification commands", {})
    env_pass = Key[tuple[str, ...]](
        forms.VARIABLE_NAMES, "further variables of the runner that all of them get; see below", ()
    )
    redact = Key[tuple[str, ...]](
        forms.VARIABLE_NAMES, "further variables that are secrets; no record has their values; see below", ()
    )
    on_closed = Key[tuple[str, ...]](
        COMMAND, "a command that is run when a task is closed: short for a table `[[notify]]`", (), absent="none"
    )
    on_failed = Key[tuple[str, ...]](
        COMMAND, "a command that is run when a task has failed: short for a table `[[notify]]`", (), absent="none"
    )
    retry = RetryKeys
    budget = FleetBudgetKeys
    restart = RestartKeys
    preemption = PreemptionKeys
    aborts = AbortKeys
    questions = QuestionKeys


_HOOKS = {FleetKeys.on_closed: NotificationKind.CLOSED, FleetKeys.on_failed: NotificationKind.FAILED}


class FileKeys(Section):
    """A fleet of lifefold: agents, tasks and limits."""

    fleet = FleetKeys
    agents = AgentKeys
    tasks = TaskKeys
    answers = AnswerKeys
    prices = PriceKeys
    notify = NotifyKeys
    interpreters = InterpreterKeys
    cluster = ClusterKeys


def fleet_of(table: Table, source: Path) -> Fleet:
    """Return the fleet of the table `[fleet]`, without agents and tasks."""
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
        anew=table.read(FleetKeys.on_retry) == "anew",
        restarts=_restarts(table.table(RestartKeys)) if RESTART in table else None,
        preemption=_preemption(table.table(PreemptionKeys)) if PREEMPTION in table else None,
        aborts=_aborts(table.table(AbortKeys)) if ABORTS in table else None,
        questions=read_questions(table.table(QuestionKeys)) if QUESTIONS in table else None,
        env=dict(table.read(FleetKeys.env)),
        env_pass=table.read(FleetKeys.env_pass),
        redact=table.read(FleetKeys.redact),
        notify=read_hooks(table, _HOOKS, source.parent),
        to_branch=table.read(FleetKeys.merge) == BRANCH,
    )
    table.finish()
    if fleet.orphaned is OnDeath.VERIFY and FleetKeys.repository.name not in table:
        table.problem("orphaned", f"found {values.shown(fleet.orphaned)}; accepted: {NEEDS_REPOSITORY}")
    if fleet.to_branch and FleetKeys.repository.name not in table:
        accepted = f'"{BRANCH}" in a fleet with a repository'
        table.problem(FleetKeys.merge.name, f'found "{BRANCH}"; accepted: {accepted}')
    return fleet


def _retry(table: Table) -> RetryPolicy:
    """Return the policy of retries; each task has its own number of retries."""
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
    """Return the limit of restarts of all agents together."""
    intensity = Intensity(table.read(RestartKeys.max_restarts), table.read(RestartKeys.window))
    table.finish()
    return intensity


def _preemption(table: Table) -> Preemption:
    """Return the policy of preemption."""
    found = Preemption(table.read(PreemptionKeys.deadline))
    table.finish()
    return found


def _aborts(table: Table) -> AbortPolicy:
    """Return the escalation of aborts (E37)."""
    found = AbortPolicy(table.read(AbortKeys.tool_to_sibling), table.read(AbortKeys.sibling_to_session))
    table.finish()
    return found


def written_in(fleet: Fleet, table: Table) -> dict[str, object]:
    """Return the values of the tables [fleet] and [fleet.retry] in the form of a file."""
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
            FleetKeys.on_retry: on_retry_of(fleet.anew),
            FleetKeys.merge: BRANCH if fleet.to_branch else "target",
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
        {RestartKeys.max_restarts: fleet.restarts.max_restarts, RestartKeys.window: fleet.restarts.window_ms}
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
    return written | said_questions(fleet.questions)


def _repository(table: Table, folder: Path) -> Path | None:
    written = table.read(FleetKeys.repository)
    if not written:
        return None
    repository = Path(os.path.realpath(folder / written))
    if not os.path.isdir(repository):  # noqa: PTH112 - never raises
        accepted = "a folder, from the fleet file's folder; leave it out for plain folders"
        table.problem("repository", f"found {values.shown(written)}, which is not a folder; accepted: {accepted}")
    return repository
