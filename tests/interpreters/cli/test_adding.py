"""Tasks that are added to a board later: by operators, and by agents that split their task."""

import io
import json
from pathlib import Path

import pytest

from fleet_log import ME, FleetLog, folded, said
from lifefold.core.fleet import AgentPlan, Budget, Caps, TaskPlan
from lifefold.core.fleet.board import budget, fleet_task, intake, worker_slot
from lifefold.core.kernel import Created
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Amounts, Resource
from lifefold.core.policy.retry import RetryPolicy
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.fleet_file.budget import TaskBudgetKeys
from lifefold.interpreters.fleet_file.keys import keys_of
from lifefold.interpreters.fleet_file.tasks import TaskKeys
from printed_commands import tell

T1 = TaskPlan("T1", "do it", max_retries=0, most_subtasks=3)
T2 = TaskPlan("T2", "do that")
POLICY = RetryPolicy(backoff_base_ms=7)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "fleet.db"


def test_a_task_that_is_added_is_as_one_of_the_fleet_file(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With everything that is said of it, and with what the fleet says of all its tasks."""
    FleetLog(log, T1, agents=(AgentPlan("ann", roles=("review",)),), retry=POLICY, approval_ms=9)
    words = "task add --id T3 --prompt look --priority 1 --max-retries 5 --role review --file src/ --file a.py"
    more = ["--depends-on", "T1", "--approval", "merge", "--verify", "python3 -c 'print(1)'"]
    assert tell(log, capsys, *words.split(), *more).startswith("T3: added;")
    record = folded(log).record("board", "task:T3")
    assert record == fleet_task.FleetTask(
        state=task.State.OPEN,
        id="T3",
        prompt="look",
        verify=(("python3", "-c", "print(1)"),),
        depends_on=("T1",),
        priority=1,
        ordinal=1,
        max_retries=5,
        limit=5,
        role="review",
        files=("src", "a.py"),
        needs_approval=True,
        always_needs_approval=True,
        approval_ms=9,
        retry=POLICY,
    )
    (told,) = said(log)
    assert (told.entity, type(told.event), told.actor) == ("task:T3", Created, ME)
    tell(log, capsys, "task", "add", "--id", "T4", "--prompt", "x")
    later = folded(log).record("board", "task:T4")
    assert (later.ordinal, later.priority, later.max_retries) == (2, 2, 3)


BAD_TASKS: dict[str, tuple[list[str], str]] = {
    "id": (["--id", "../x", "--prompt", "x"], "--id: found"),
    "id twice": (["--id", "t1", "--prompt", "x"], "there is a task T1 already"),
    "prompt": (["--id", "N", "--prompt", " "], "--prompt: found"),
    "long": (["--id", "N", "--prompt", "x" * 100_001], "found 100001 bytes"),
    "no text": (["--id", "N", "--prompt", "caf\udce9"], "UTF-8"),
    "priority": (["--id", "N", "--prompt", "x", "--priority", "0"], "--priority: found 0"),
    "retries": (["--id", "N", "--prompt", "x", "--max-retries", "-1"], "--max-retries: found -1"),
    "quotes": (["--id", "N", "--prompt", "x", "--verify", "a 'b"], '--verify: "a \'b" is not a command'),
    "nothing": (["--id", "N", "--prompt", "x", "--verify", ""], "--verify[1]: found an empty array"),
    "program": (["--id", "N", "--prompt", "x", "--verify", "/no/such x"], "found '/no/such', which cannot be run"),
    "file": (["--id", "N", "--prompt", "x", "--file", "/etc"], "--file[1]: found"),
    "dependency": (["--id", "N", "--prompt", "x", "--depends-on", "T7"], "there is no task 'T7'; there are T1, T2"),
    "role": (["--id", "N", "--prompt", "x", "--role", "cook"], "there is no role 'cook'; there are none"),
}


def test_what_no_fleet_file_could_have_is_refused_by_its_option(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was found, and what is accepted; nothing is left in the log."""
    FleetLog(log, T1, T2)
    for words, complaint in BAD_TASKS.values():
        assert complaint in tell(log, capsys, "task", "add", *words, code=2)
    assert said(log) == []


def test_a_task_that_is_added_waits_for_what_it_depends_on_and_for_the_plan(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If that will not be done it is said so at once; as long as the plan waits for a person, so does the task."""
    FleetLog(log, T1, T2).failed("T1")
    after = ["--prompt", "x", "--depends-on", "T1"]
    assert "it is blocked, because it depends on T1, which has failed" in tell(
        log, capsys, "task", "add", "--id", "T3", *after
    )
    assert folded(log).record("board", "task:T3").state == "BLOCKED"
    planned = log.with_name("planned.db")
    FleetLog(planned, T1, approve_plan=True)
    assert "lifefold approve T3" in tell(planned, capsys, "task", "add", "--id", "T3", "--prompt", "x")
    tell(planned, capsys, "approve")
    assert folded(planned).record("board", "task:T3").state == "OPEN"
    assert tell(planned, capsys, "task", "add", "--id", "T4", "--prompt", "x").startswith("T4: added;")


def test_nothing_is_added_where_no_agent_is_left(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says so, and what to do instead."""
    FleetLog(log, T1).failed("T1")
    printed = tell(log, capsys, "task", "add", "--id", "T3", "--prompt", "x", code=2)
    assert "T3: refused: all tasks are settled, and the fleet is over" in printed
    assert "task:T3" not in folded(log).aggregates["board"].entities


def test_a_fleet_that_is_kept_alive_is_told_once_that_no_more_tasks_come(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With no task at all it takes the first one, as its log says of all; another fleet ends anyway."""
    FleetLog(log, watch=True)
    assert tell(log, capsys, "task", "add", "--id", "T1", "--prompt", "x").startswith("T1: added;")
    assert folded(log).record("board", "task:T1").ordinal == 0
    assert tell(log, capsys, "finish", "--reason", "night").startswith("fleet: it ends when its tasks are settled;")
    assert said(log)[-1].event == intake.LastTaskIn("night")
    assert "finish was given already" in tell(log, capsys, "finish", code=2)
    tell(log, capsys, "cancel", "T1")
    assert tell(log, capsys, "finish", code=2).startswith("fleet: refused: it is over already\n")
    assert "the fleet is over" in tell(log, capsys, "task", "add", "--id", "T2", "--prompt", "x", code=2)
    other = log.with_name("other.db")
    FleetLog(other, T1)
    assert "started without --watch" in tell(other, capsys, "finish", code=2)


def test_a_task_for_a_role_that_no_agent_has_any_more_says_so(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """When it is added, and when it is retried: it goes on when an accepted fleet file has such an agent."""
    of = FleetLog(log, T1, agents=(AgentPlan("ann"), AgentPlan("bob", roles=("cook",))))
    of.happens("board", "worker_slot:bob", worker_slot.WorkerGone("enough"))
    words = ["task", "add", "--id", "T3", "--prompt", "x", "--role", "cook"]
    reason = "it is blocked, because it asks for the role cook, and no worker is left that has it"
    assert reason in tell(log, capsys, *words)
    assert folded(log).record("board", "task:T3").state == "BLOCKED"
    printed = tell(log, capsys, "retry", "T3", code=2)
    assert (
        "T3: refused: it is blocked: it asks for the role cook, and no worker is left that has it; it goes on when"
        in printed
    )


def test_an_agent_splits_its_task_with_what_its_environment_says(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Task, claim and log are known to its session; the parts are tasks of their own, and the whole waits for them."""
    FleetLog(log, T1).claimed("T1")
    for name, value in (("TASK", "T1"), ("TOKEN", "1-"), ("DB", str(log))):
        monkeypatch.setenv(f"LIFEFOLD_{name}", value)
    assert main(["split", "--part", "do the first", "--part", "do the second"]) == 0
    assert "T1: split into T1+1 T1+2; this session has ended" in capsys.readouterr().out
    board = folded(log)
    assert board.record("board", "task:T1").state == "WAITING_FOR_SUBTASKS"
    assert [board.record("board", f"task:T1+{n}").prompt for n in (1, 2)] == ["do the first", "do the second"]
    assert "T1: refused: it is waiting for its parts" in tell(log, capsys, "split", "--part", "x", code=2)
    assert '"parent": "T1"' in tell(log, capsys, "tasks", "--json")


def test_parts_may_be_described_in_a_document(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file or from the input: prompts, commands that verify them, files that they change."""
    FleetLog(log, T1).claimed("T1")
    parts = [{"prompt": "a", "verify": [["true"]], "files": ["src/"]}, {"prompt": "b"}]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(parts)))
    assert "T1+1 T1+2" in tell(log, capsys, "split", "T1", "--token", "1", "--json", "-")
    first = folded(log).record("board", "task:T1+1")
    assert (first.verify, first.files) == ((("true",),), ("src",))


def test_a_split_that_is_stale_or_too_large_is_refused(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With whose the task is now, or how many parts it may have; what is no number of a claim is bad input."""
    of = FleetLog(log, T1, T2, agents=(AgentPlan("ann"), AgentPlan("bob"))).claimed("T1")
    of.happens("board", "task:T1", task.Released(1, "taken away")).claimed("T1", "bob").claimed("T2")

    def refused(*words: str) -> str:
        return tell(log, capsys, "split", *words, code=2)

    assert "claim 1 of it is over; bob has it now, under claim 2" in refused("T1", "--token", "1", "--part", "x")
    assert "4 are too many: it may have 3 subtasks" in refused("T1", "--token", "2", *["--part", "x"] * 4)
    assert "has no max_subtasks" in refused("T2", "--token", "1", "--part", "x")
    assert "the token of a claim" in refused("T1", "--token", "one", "--part", "x")
    assert "there is no task 'T9'" in refused("T9", "--token", "1", "--part", "x")
    assert "LIFEFOLD_TOKEN" in refused("T1", "--part", "x")
    assert "LIFEFOLD_TASK" in refused("--part", "x")
    assert "--part PROMPT" in refused("T1", "--token", "2")
    assert said(log) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "cannot be read"),
        ("[]", "an array of one part or more"),
        ('["a"]', "part 1: found no keys"),
        ('[{"prompt": "a"}, {"prompt": "b", "role": "x"}]', "part 2: found prompt, role"),
        ('[{"prompt": ""}]', "part 1, prompt: found"),
        ('[{"prompt": "a", "verify": [["make"], [1]]}]', "part 1, verify[2][1]: found 1, an integer"),
    ],
)
def test_a_document_that_describes_no_parts_is_bad_input(
    log: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    """The message names the part, the found value, and the accepted ones."""
    file = log.with_name("parts.json")
    file.write_text(text)
    assert complaint in tell(log, capsys, "split", "T1", "--token", "1", "--json", str(file), code=2)


def test_every_key_that_a_fleet_file_has_for_a_task_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    """A prompt's file is the shell's business; what several are written with is an option for one."""
    with pytest.raises(SystemExit):
        main(["task", "add", "--help"])
    said_there = capsys.readouterr().out
    keys = set(keys_of(TaskKeys)) - {"prompt_file", "files"} | {"file"}
    keys |= {f"budget_{name}" for name in keys_of(TaskBudgetKeys)}
    assert {key for key in keys if f"--{key.replace('_', '-')} " not in said_there} == set()


BUDGET = Budget(Caps(microusd=9_000_000), Amounts(microusd=1_000_000, sessions=1), 60_000, charges_the_silent=True)
MEANING = json.dumps({"fleet": {"budget": {"session_tokens": 50}}})


def test_a_task_that_is_added_has_limits_and_a_way_to_die_of_its_own(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A budget is on the board before its task; its reservation and its period are those of the fleet."""
    FleetLog(log, T1, budget=BUDGET, meaning=MEANING)
    words = "task add --id T3 --prompt x --max-subtasks 4 --subtasks-timeout 2h --orphaned requeue --on-retry anew"
    printed = tell(log, capsys, *words.split(), "--budget-usd", "2.5", "--budget-tokens", "100")
    assert printed.splitlines()[0].startswith("budget of T3: limited;")
    assert printed.splitlines()[1].startswith("T3: added;")
    of = folded(log)
    record: fleet_task.FleetTask = of.record("board", "task:T3")
    assert record.anew
    assert (record.most_subtasks, record.subtasks_ms, record.orphaned) == (4, 7_200_000, task.OnDeath.REQUEUE)
    money: budget.Budget = of.record("board", "budget:task/T3")
    assert [(line.resource, line.share, line.account.cap) for line in money.lines] == [
        (Resource.MONEY, 1_000_000, 2_500_000),
        (Resource.TOKENS, 50, 100),
    ]
    assert (money.period_ms, money.charges_the_silent) == (60_000, True)
    assert [told.entity for told in said(log)] == ["budget:task/T3", "task:T3"]
    assert "task T3" in tell(log, capsys, "budget")


BAD_LIMITS = {
    "money": (["--budget-usd", "much"], '--budget-usd: found "much"'),
    "less than a share": (["--budget-usd", "0.5"], "--budget-usd: found 0.5; accepted: at least the reservation"),
    "not metered": (["--budget-time", "2h"], "--budget-time: the reservation of a session is missing"),
    "subtasks": (["--max-subtasks", "-1"], "--max-subtasks: found -1"),
    "subtasks time": (["--subtasks-timeout", "long"], '--subtasks-timeout: found "long"'),
    "orphaned": (["--orphaned", "bury"], '--orphaned: found "bury"'),
    "nothing to verify": (["--orphaned", "verify"], "for a task with commands in verify"),
    "no repository": (["--orphaned", "verify", "--verify", "true"], "in a fleet with a repository"),
}


@pytest.mark.parametrize("name", BAD_LIMITS)
def test_limits_that_no_fleet_file_could_have_are_refused(
    log: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """By the words in which a fleet file is refused."""
    FleetLog(log, T1, budget=BUDGET)
    words, complaint = BAD_LIMITS[name]
    assert complaint in tell(log, capsys, "task", "add", "--id", "N", "--prompt", "x", *words, code=2)
    assert said(log) == []


def test_a_fleet_that_meters_nothing_takes_no_limits(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The cost would be lost."""
    FleetLog(log, T1)
    words = ["task", "add", "--id", "N", "--prompt", "x", "--budget-sessions", "2"]
    assert "this fleet does not meter usage, because its file has no budget" in tell(log, capsys, *words, code=2)
    assert said(log) == []
