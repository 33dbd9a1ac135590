"""The costs of a fleet: shown for each agent and task, and for all, where a session has reported them."""

import signal
from pathlib import Path

import pytest

from fleet_log import FleetLog
from fleet_sandbox import Sandbox
from lifefold.core.fleet import TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.kernel import Aggregate, Entity, Reaction, Transition
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import Usage
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.story import happenings
from lifefold.interpreters.cli.wording import cost, money, spent

COSTS = r"""
print('{"lifefold": {"cost_usd": 1.234, "input_tokens": 1200, "output_tokens": 340}}', flush=True)
"""


@pytest.mark.parametrize(
    ("microusd", "words"),
    [(1, "<$0.01"), (9_999, "<$0.01"), (10_000, "$0.01"), (1_235_000, "$1.24"), (1_234_567_890_000, "$1,234,567.89")],
)
def test_money_is_said_in_dollars_and_cents(microusd: int, words: str) -> None:
    """Rounded; and less than a cent is not nothing."""
    assert money(microusd) == words


def test_tokens_without_a_known_cost_are_counted() -> None:
    """And unknown costs are not shown."""
    assert [cost(each) for each in (Usage(1_240_000, 9, 9), Usage(0, 1_200, 340), Usage())] == [
        "$1.24",
        "1,540 tokens",
        "-",
    ]
    assert [spent(each) for each in (Usage(1_240_000, 1_200, 340), Usage(1_240_000), Usage(0, 0, 5), Usage())] == [
        "$1.24, 1,200 tokens in, 340 out",
        "$1.24",
        "0 tokens in, 5 out",
        "",
    ]


def test_the_end_of_a_session_has_its_cost_in_words() -> None:
    """After how it ended; without a cost it is as it always was."""
    for usage, words in ((Usage(120_000, 1_200, 340), ", $0.12, 1,200 tokens in, 340 out"), (Usage(), "")):
        entity = Entity("session", session.Session())
        ended = Transition("session", entity, entity, session.SessionExited(session.Success(), usage), 0, "", ())
        (happening,) = happenings("worker/ann", Reaction(Aggregate("worker/ann"), transitions=(ended,)))
        assert happening.cause == f"SessionExited: Success{words}"


def test_the_end_of_a_session_tells_a_total_from_a_cost() -> None:
    """With the conversation that it is of."""
    entity = Entity("session", session.Session())
    exited = session.SessionExited(session.Success(), Usage(120_000), "C1", is_total=True)
    ended = Transition("session", entity, entity, exited, 0, "", ())
    (happening,) = happenings("worker/ann", Reaction(Aggregate("worker/ann"), transitions=(ended,)))
    assert happening.cause == "SessionExited: Success, conversation C1, $0.12 in the whole conversation"


def test_new_terms_of_a_task_are_named_by_their_keys_in_the_log() -> None:
    """The record of the task, which the event has as well, is not printed."""
    entity = Entity("task:T1", fleet_task.FleetTask(id="T1"))
    event = fleet_task.Replanned(fleet_task.FleetTask(id="T1", prompt="better"), what="its prompt")
    step = Transition("task", entity, entity, event, 0, "", ())
    (happening,) = happenings("board", Reaction(Aggregate("board"), transitions=(step,)))
    assert happening.cause == "Replanned: its prompt"


def test_costs_are_shown_and_a_run_that_goes_on_begins_with_what_was_spent(tmp_path: Path) -> None:
    """In the tables, in the head, in the log, in JSON and in the summary, which is of the whole log."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", "slow-2", repository=False, gates=["slow-2"])
    agent = sandbox.folder / "agent.py"
    agent.write_text(agent.read_text() + 'if behaviour == "plain":' + COSTS.replace("\nprint", "\n    print"))
    with sandbox.running() as run, sandbox.at_gate("slow-2"):
        run.until("task slow-2", "IN_PROGRESS")
        tasks = sandbox.call("tasks").stdout.splitlines()
        assert [line.split()[6] for line in tasks] == ["COST", "$1.23", "-"]
        head, _, agent_line = sandbox.call("status").stdout.splitlines()
        assert "1 of 2 tasks closed, 1 running; spent $1.23, 1,200 tokens in, 340 out" in head
        assert agent_line.endswith("$1.23")
        run.signal(signal.SIGINT)
        assert "; spent $1.23, 1,200 tokens in, 340 out; the log is " in run.rest()
    assert "SessionExited: Success, $1.23, 1,200 tokens in, 340 out\n" in sandbox.call("log", "--all").stdout
    known = {"cost_usd": 1.234, "input_tokens": 1_200, "output_tokens": 340}
    status, (plain, slow) = sandbox.json("status"), sandbox.json("tasks")
    assert [known == {key: each[key] for key in known} for each in (status, status["agents"][0], plain)] == [True] * 3
    assert [slow[key] for key in known] == [None] * 3
    agent.write_text(agent.read_text().replace('if behaviour == "slow"', 'if behaviour == "never"') + COSTS)
    assert "2 of 2 tasks closed; spent $2.47, 2,400 tokens in, 680 out; the log is " in sandbox.run()


def test_where_nothing_is_known_to_be_spent_nothing_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No column of hyphens, and in JSON no number."""
    log = tmp_path / "fleet.db"
    FleetLog(log, TaskPlan("T1", "do it"))
    for command in ("status", "tasks"):
        assert main([command, "--db", str(log)]) == 0
    shown = capsys.readouterr().out
    assert "COST" not in shown
    assert "spent" not in shown
    assert main(["status", "--json", "--db", str(log)]) == 0
    assert '"cost_usd": null' in capsys.readouterr().out
