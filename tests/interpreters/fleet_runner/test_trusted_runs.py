"""Fleets whose agents have to earn what they may do, with real processes and real git."""

from typing import Any

import anyio

from back_ends import on_asyncio
from fleet_operator import run, say, when
from fleet_sandbox import Sandbox
from lifefold.core.lifecycles import approval, task
from lifefold.interpreters.fleet_runner import Runner, Verdict

GATES = 'gates = { "DONE -> CLOSED" = "probationary" }'
REASON = ("--reason", "because")


def told(sandbox: Sandbox, what: str) -> dict[str, Any]:
    """Return the tasks or the agents as the log has them, by name."""
    found = sandbox.json(what)
    return {each.get("id", each.get("name")): each for each in (found["agents"] if what == "status" else found)}


@on_asyncio
def test_an_untrusted_agents_first_work_is_seen_before_it_is_merged_and_its_next_is_not(
    sandbox: Sandbox, backend: str
) -> None:
    """What takes more trust is blocked until then, and done when it is earned (E34)."""
    sandbox.prepare("plain-1", "plain-2").demand("", GATES).demand("plain-2", 'trust = "probationary"')
    asked: list[list[str]] = []

    def arrange(runner: Runner) -> None:
        def agree(_step: object) -> None:
            asked.append(sandbox.merges())
            say(runner, "board", "task:plain-1", approval.ApprovalGranted())

        when(runner, "task:plain-1", task.State.PENDING_APPROVAL, agree)
        when(runner, "task:plain-2", task.State.PENDING_APPROVAL, lambda _: asked.append(["again"]))

    assert anyio.run(run, sandbox, arrange, backend=backend) is Verdict.ALL_CLOSED
    assert asked == [[]]
    assert sandbox.merges() == ["Merge plain-2: Write plain-2.txt", "Merge plain-1: Write plain-1.txt"]
    agent = told(sandbox, "status")["agent"]
    assert (agent["level"], agent["successes"], agent["violations"]) == ("probationary", 2, 0)
    assert told(sandbox, "tasks")["plain-2"]["level"] == "probationary"
    assert "probationary" in sandbox.call("status").stdout
    assert "TRUST" in sandbox.call("tasks").stdout
    assert sandbox.processes() == []


def test_a_person_promotes_demotes_and_blames_an_agent_by_a_command(sandbox: Sandbox) -> None:
    """A watched fleet waits for that, and says so. The decision is in the log, with its operator and its reason."""
    sandbox.prepare("plain-1").demand("plain-1", 'trust = "trusted"')
    with sandbox.running("--watch") as fleet:
        fleet.until("plain-1 takes an agent that is trusted", "lifefold trust agent --promote")
        assert [each["about"] for each in sandbox.json("status")["waiting"]] == ["trust", "tasks"]
        way = sandbox.call("why", "plain-1").stdout
        assert "when an agent has earned the level trusted, or an operator promotes one" in way
        assert "trust agent --promote --reason" in way
        said = [
            sandbox.call("trust", "agent", move, *REASON).stdout.strip()
            for move in ("--violation", "--promote", "--demote", "--promote", "--promote")
        ]
        assert said == [
            "agent: it is still untrusted, with 1 violation, and rises only when an operator promotes it",
            "agent: it is probationary; its violations are forgiven",
            "agent: it is untrusted",
            "agent: it is probationary",
            "agent: it is trusted",
        ]
        fleet.until("plain-1", "CLOSED")
        sandbox.call("finish")
        fleet.rest()
    assert fleet.process.returncode == 0
    assert sandbox.merges() == ["Merge plain-1: Write plain-1.txt"]


def test_what_is_said_of_trust_that_changes_nothing_is_refused(sandbox: Sandbox) -> None:
    """In a fleet without gates, of an unknown agent, and of one at the lowest level; a reason is needed."""
    sandbox.prepare("plain-1").demand("", "approve_plan = true")
    with sandbox.running() as fleet:
        fleet.until("the plan waits for your approval")
        assert "gates nothing" in sandbox.call("trust", "agent", "--promote", *REASON, code=2).stdout
        assert "agent" in sandbox.call("trust", "agnt", "--promote", *REASON, code=2).stderr
        sandbox.call("trust", "agent", "--promote", code=2)
        added = ("task", "add", "--id", "plain-2", "--prompt", "do it", "--trust")
        assert "gates nothing" in sandbox.call(*added, "trusted", code=2).stderr
        assert "--trust" in sandbox.call(*added, "much", code=2).stderr
        sandbox.call("reject", "--plan", *REASON)
        fleet.rest()


def test_a_task_that_is_added_takes_the_trust_that_it_says_and_that_the_fleet_asks_for(sandbox: Sandbox) -> None:
    """As one of the fleet file does."""
    sandbox.prepare("plain-1").demand("", 'gates = { "OPEN -> CLAIMED" = "probationary" }')
    agents = sandbox.fleet.read_text().replace('grace = "300ms"', 'grace = "300ms"\ntrust = "probationary"')
    sandbox.fleet.write_text(agents)
    with sandbox.running("--watch") as fleet:
        fleet.until("all tasks are settled")
        sandbox.call("task", "add", "--id", "plain-2", "--prompt", "Write plain-2.txt")
        more = sandbox.call("task", "add", "--id", "plain-3", "--prompt", "Write it", "--trust", "elevated")
        assert "it is blocked, because it takes an agent that is elevated, and there is none" in more.stdout
        retried = sandbox.call("retry", "plain-3", code=2).stdout
        assert "lifefold trust agent --promote" in retried
        fleet.until("plain-2", "CLOSED")
        assert "untrusted" in sandbox.call("trust", "agent", "--violation", *REASON).stdout
        assert "untrusted already" in sandbox.call("trust", "agent", "--demote", *REASON, code=2).stdout
        sandbox.call("finish")
        fleet.rest()
    assert [told(sandbox, "tasks")[f"plain-{n}"]["level"] for n in (1, 2, 3)] == [
        "probationary", "probationary", "elevated"
    ]  # fmt: skip
