"""The guarantee: roles, shared files, retries and approvals of a task are as written."""

from pathlib import Path

import pytest

from lifefold.core.fleet import AgentPlan, Budget, GatePlan, Plan, TaskPlan
from lifefold.core.fleet.system.plan import RETRIED_AS_OFTEN_AS_THE_TASK_SAYS
from lifefold.core.kernel import replace
from lifefold.core.lifecycles.session import Limits
from lifefold.core.policy.access import AccessLevel
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, describe_difference, load
from lifefold.interpreters.fleet_file.budget import with_time

FILE = """\
[fleet]
name = "demo"
{fleet}

[[agents]]
name = "coder"
command = ["sh", "{{prompt}}"]
session_timeout = "30m"
{agent}

[[tasks]]
id = "T1"
prompt = "Write"
{task}
"""
LIMITS = Limits(session_timeout_ms=1_800_000)
UNLIMITED = with_time(Budget(), [LIMITS])


def written(folder: Path, *, fleet: str = "", agent: str = "", task: str = "") -> Path:
    path = folder / "fleet.toml"
    path.write_text(FILE.format(fleet=fleet, agent=agent, task=task))
    return path


def read(folder: Path, *, fleet: str = "", agent: str = "", task: str = "") -> Fleet:
    return load(written(folder, fleet=fleet, agent=agent, task=task))


def test_nothing_of_it_is_asked_for_unless_it_is_written(tmp_path: Path) -> None:
    """No approval, no roles, no files, no subtasks; only what cannot pass is not tried again."""
    plan = Plan("demo", (AgentPlan("coder", LIMITS, follows=True),), (TaskPlan("T1", "Write"),), budget=UNLIMITED)
    assert read(tmp_path).plan == plan
    assert (plan.approve_plan, plan.approval_ms, plan.retry.fatal_retries) == (False, 0, 0)
    assert (plan.retry.max_retries, plan.retry.backoff_base_ms, plan.retry.backoff_cap_ms) == (1_000, 30_000, 300_000)


def test_everything_that_is_written_reaches_the_plan(tmp_path: Path) -> None:
    """In the core's own words and units."""
    found = read(
        tmp_path,
        fleet="""
            approve_plan = true
            approval_timeout = "2h"
            [fleet.retry]
            backoff_base = "10ms"
            backoff_cap = "1s"
            fatal_retries = 2
        """,
        agent='roles = ["review", "docs", "review"]',
        task="""
            role = "docs"
            files = ["docs/", "./README.md", "src//app.py", "docs"]
            approval = "merge"
            max_subtasks = 3
            subtasks_timeout = "5m"
        """,
    )
    files = ("docs", "README.md", "src/app.py")
    task = TaskPlan("T1", "Write", role="docs", files=files, needs_approval=True, most_subtasks=3, subtasks_ms=300_000)
    retry = replace(RETRIED_AS_OFTEN_AS_THE_TASK_SAYS, backoff_base_ms=10, backoff_cap_ms=1_000, fatal_retries=2)
    agent = AgentPlan("coder", LIMITS, roles=("review", "docs"), follows=True)
    plan = Plan("demo", (agent,), (task,), approve_plan=True, approval_ms=7_200_000, retry=retry, budget=UNLIMITED)
    assert found.plan == plan
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("where", "line", "key", "essentials"),
    [
        ("fleet", "approve_plan = 1", "fleet.approve_plan", "found 1, an integer; accepted: true or false"),
        ("fleet", 'approval_timeout = "0s"', "fleet.approval_timeout", 'at least "1ms"'),
        ("fleet", "retry = 3", "fleet.retry", "found 3, an integer; accepted: a table, [fleet.retry]"),
        ("fleet", 'retry.backoff_bas = "1s"', "fleet.retry.backoff_bas", 'did you mean "backoff_base"?'),
        ("fleet", "retry.backoff_base = 30", "fleet.retry.backoff_base", "found 30, an integer; accepted: a duration"),
        ("fleet", "retry.fatal_retries = -1", "fleet.retry.fatal_retries", "an integer from 0 to 1000"),
        ("agent", 'roles = "review"', "agents.coder.roles", 'found "review"; accepted: an array of names'),
        ("agent", 'roles = ["a", "b c"]', "agents.coder.roles[2]", 'found "b c"; accepted: 1 to 64 of the characters'),
        ("task", 'role = ""', "tasks.T1.role", 'found ""; accepted: 1 to 64 of the characters'),
        ("task", 'role = "docs"', "tasks.T1.role", 'found "docs", which no agent has; accepted: roles of agents'),
        ("agent", 'trust = "high"', "agents.coder.trust", 'found "high"; accepted: "untrusted" or "probationary"'),
        ("task", "trust = 2", "tasks.T1.trust", 'accepted: "untrusted" or "probationary" or "trusted" or "elevated"'),
        ("fleet", 'gates = "trusted"', "fleet.gates", 'found "trusted"; accepted: a table of levels'),
        ("fleet", 'gates = { "DONE -> CLOSED" = 1 }', "fleet.gates.DONE -> CLOSED", 'accepted: "untrusted" or'),
        (
            "fleet",
            'gates = { "DONE -> FAILED" = "trusted" }',
            "fleet.gates.DONE -> FAILED",
            'found "DONE -> FAILED"; accepted: the transitions of a task with gates: "OPEN -> CLAIMED"',
        ),
        (
            "fleet",
            'gates = { "OPEN -> CLAIMED" = "trusted" }',
            "fleet.gates",
            "no agent has the trust to begin with any task; accepted: an agent with the trust for a task",
        ),
        ("task", 'approval = "yes"', "tasks.T1.approval", 'found "yes"; accepted: "none" or "merge"'),
        ("task", "max_subtasks = 101", "tasks.T1.max_subtasks", "accepted: an integer from 0 to 100"),
        ("task", 'subtasks_timeout = "0ms"', "tasks.T1.subtasks_timeout", 'at least "1ms"'),
        ("task", 'files = "a"', "tasks.T1.files", 'found "a"; accepted: an array of paths'),
        ("task", 'files = ["a", ""]', "tasks.T1.files[2]", 'found ""; accepted: the path of a file or a folder'),
        *(
            ("task", f"files = ['{path}']", "tasks.T1.files[1]", "none that is absolute, and none with .. or \\ in it")
            for path in ("/etc", "~/x", "..", "a/../b", "a/..", ".", "./", "a\\b", " ", "a\tb")
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_what_is_accepted(
    tmp_path: Path, where: str, line: str, key: str, essentials: str
) -> None:
    """As for every other key."""
    path = written(tmp_path, **{where: line})
    with pytest.raises(FleetFileError) as refused:
        load(path)
    (problem,) = refused.value.problems
    assert problem.line == path.read_text().splitlines().index(line) + 1
    assert problem.key == key
    assert essentials in problem.message


def test_a_role_that_is_misspelt_is_told_with_the_one_that_may_be_meant(tmp_path: Path) -> None:
    """No agent would ever take the task."""
    with pytest.raises(FleetFileError, match=r'accepted: roles of agents in this file; did you mean "review"\?'):
        read(tmp_path, agent='roles = ["review"]', task='role = "reviews"')


@pytest.mark.parametrize(
    ("where", "line", "essentials"),
    [
        (
            "fleet",
            'retry.backoff_base = "10m"',
            "fleet.retry.backoff_base: longer than backoff_cap, so every pause lasts 5m",
        ),
        ("fleet", 'approval_timeout = "2h"', 'fleet.approval_timeout: no task has approval = "merge"'),
        ("task", 'subtasks_timeout = "2h"', "tasks.T1.subtasks_timeout: no max_subtasks: the task is never split"),
        ("task", 'files = ["src/*.py"]', 'tasks.T1.files: "src/*.py" is taken for a name, not for a pattern'),
    ],
)
def test_what_is_hardly_meant_is_a_warning(tmp_path: Path, where: str, line: str, essentials: str) -> None:
    """It does no harm, and nothing else."""
    (warning,) = read(tmp_path, **{where: line}).warnings
    assert essentials in warning


def test_a_task_with_the_role_of_a_refused_agent_is_no_further_mistake(tmp_path: Path) -> None:
    """Only what is wrong is told."""
    path = written(tmp_path, agent='roles = ["review", 7]', task='role = "review"')
    path.write_text(path.read_text().replace('"coder"', '"co der"'))
    with pytest.raises(FleetFileError) as refused:
        load(path)
    assert [problem.key for problem in refused.value.problems] == ["agents.co der.name", "agents.co der.roles[2]"]


def test_a_role_that_no_task_asks_for_is_no_mistake(tmp_path: Path) -> None:
    """Tasks come and go, agents stay."""
    assert read(tmp_path, agent='roles = ["review"]').warnings == ()


def test_what_is_written_as_its_default_changes_no_meaning(tmp_path: Path) -> None:
    """A log that was begun when these keys were not known goes on with the same file."""
    same = read(
        tmp_path,
        fleet='approve_plan = false\nretry = { backoff_base = "30s", fatal_retries = 0 }',
        agent="roles = []",
        task='files = []\napproval = "none"\nmax_subtasks = 0\nsubtasks_timeout = "30m"',
    )
    assert same.meaning == read(tmp_path).meaning
    assert not {"role", "files", "approval", "retry", "approve_plan"} & set(same.meaning.replace('"', " ").split())


@pytest.mark.parametrize(
    ("where", "one", "other", "difference"),
    [
        ("fleet", "approve_plan = true", "", "fleet.approve_plan: was true, is absent"),
        ("fleet", "", 'approval_timeout = "2h"', "fleet.approval_timeout: was absent, is 2h"),
        ("fleet", "", 'retry.backoff_cap = "2h"', "fleet.retry.backoff_cap: was absent, is 2h"),
        ("fleet", "retry.fatal_retries = 1", "retry.fatal_retries = 2", "fleet.retry.fatal_retries: was 1, is 2"),
        ("agent", 'roles = ["a"]', 'roles = ["b"]', 'agents.coder.roles: was ["a"], is ["b"]'),
        ("fleet", "", 'gates = { "DONE -> CLOSED" = "trusted" }', "fleet.gates.DONE -> CLOSED: was absent, is trusted"),
        ("agent", "", 'trust = "trusted"', "agents.coder.trust: was absent, is trusted"),
        ("task", "", 'trust = "untrusted"\napproval = "merge"', "tasks.T1.approval: was absent, is merge"),
        ("task", 'files = ["a", "b"]', 'files = ["a"]', 'tasks.T1.files: was ["a", "b"], is ["a"]'),
        ("task", "", 'approval = "merge"', "tasks.T1.approval: was absent, is merge"),
        ("task", "max_subtasks = 1", "max_subtasks = 2", "tasks.T1.max_subtasks: was 1, is 2"),
        ("task", 'subtasks_timeout = "1h"', 'subtasks_timeout = "2h"', "tasks.T1.subtasks_timeout: was 1h, is 2h"),
    ],
)
def test_a_difference_is_told_in_the_files_words(
    tmp_path: Path, where: str, one: str, other: str, difference: str
) -> None:
    """Each of these keys belongs to what a log was begun with."""
    before, after = read(tmp_path, **{where: one}), read(tmp_path, **{where: other})
    assert describe_difference(before.meaning, after.meaning) == (difference,)


def test_trust_counts_if_and_only_if_anything_of_it_is_written(tmp_path: Path) -> None:
    """Gates, where an agent begins, or what a task takes; without them every agent may do everything (E34)."""
    assert read(tmp_path).plan.gates is None
    assert read(tmp_path, agent='trust = "trusted"').plan.gates == GatePlan()
    assert read(tmp_path, fleet="gates = {}").plan.gates == GatePlan()
    found = read(
        tmp_path,
        fleet='gates = { "OPEN -> CLAIMED" = "probationary", "DONE -> CLOSED" = "elevated" }\napproval_timeout = "5m"',
        agent='trust = "trusted"',
        task='trust = "trusted"',
    )
    assert found.plan.gates == GatePlan(AccessLevel.PROBATIONARY, AccessLevel.ELEVATED)
    assert found.plan.agents[0].trust is found.plan.tasks[0].trust is AccessLevel.TRUSTED
    assert found.warnings == ()


def test_a_fleet_in_which_no_agent_may_begin_is_only_begun_with_watch(tmp_path: Path) -> None:
    """Who then promotes one."""
    path = written(tmp_path, task='trust = "elevated"')
    with pytest.raises(FleetFileError, match="no agent has the trust to begin"):
        load(path)
    assert load(path, watch=True).plan.gates == GatePlan()


def test_the_order_of_a_tasks_files_does_not_matter(tmp_path: Path) -> None:
    """Nor how they are spelt."""
    one, other = read(tmp_path, task='files = ["a", "b/c"]'), read(tmp_path, task='files = ["./b//c/", "a/."]')
    assert one.meaning == other.meaning


def test_another_role_is_another_fleet(tmp_path: Path) -> None:
    """Another agent would do the work."""
    roles = 'roles = ["a", "b"]'
    one, other = (read(tmp_path, agent=roles, task=f'role = "{role}"') for role in "ab")
    assert describe_difference(one.meaning, other.meaning) == ("tasks.T1.role: was a, is b",)
