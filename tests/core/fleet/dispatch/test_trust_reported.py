"""What a person is told of trust: by ``why``, and by ``status`` (E34)."""

from aggregate_hand import Hand
from board_hand import ask, go, make, opened, park
from lifefold.core.fleet import AgentPlan, GatePlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.kernel import Aggregate, Reaction, react, replace
from lifefold.core.policy.access import AccessLevel, Trust
from lifefold.interpreters.explain import pending, status, task_status, why

UNTRUSTED, PROBATIONARY, TRUSTED, ELEVATED = AccessLevel


def trusted_board(*tasks: fleet_task.FleetTask, **trust: Trust) -> Hand:
    """Return a board of tasks and of agents with their records."""
    return opened(
        *tasks,
        worker_slots={},
        **{f"worker_slot:{name}": worker_slot.WorkerSlot(trust=each) for name, each in trust.items()},
    )


def explained(of: Hand, name: str) -> why.Explanation:
    """Return what is said of a task to a person."""
    return why.explain(why.look({"board": of.aggregate}, name, of.now_ms), why.Story(name))


def test_a_task_above_all_trust_levels_names_the_agents_to_promote() -> None:
    """Those who have its role and are there."""
    worker_slots = {
        "worker_slot:ann": worker_slot.WorkerSlot(roles=("cook",), trust=Trust()),
        "worker_slot:bob": worker_slot.WorkerSlot(trust=Trust()),
        "worker_slot:cid": worker_slot.WorkerSlot(roles=("cook",), trust=Trust()),
    }
    of = go(opened(make("T1"), make("T2", level=TRUSTED, role="cook"), worker_slots={}, **worker_slots), "cid")
    said = explained(of, "T2")
    assert said.sentence == "T2 is blocked: takes an agent with the role cook that is trusted, and there is none."
    assert said.onward == "T2 goes on when an agent has earned the level trusted, or an operator promotes one."
    assert [(option.command, option.to) for option in said.options] == [("trust", "ann"), ("cancel", "T2")]
    waits = pending.waiting({"board": of.aggregate})
    assert [(each.about, each.names, each.command) for each in waits] == [("trust", ("T2",), "trust")]


def test_a_task_that_waits_for_a_trusted_agent_says_so() -> None:
    """It is open: he is there, and at something else."""
    of = ask(trusted_board(make("T1"), make("T2", level=TRUSTED, ordinal=1), ann=Trust(TRUSTED), bob=Trust()))
    assert "no agent that is trusted is free: ann is at T1" in explained(of, "T2").sentence
    assert "bob" not in explained(of, "T2").sentence


def test_work_that_is_seen_for_want_of_trust_says_whose_it_is() -> None:
    """Work that a person wanted to see anyway says nothing of that."""
    gated, asked = make("T1", merges=TRUSTED), make("T2", merges=TRUSTED, always_needs_approval=True, ordinal=1)
    of = ask(park(ask(trusted_board(gated, asked, ann=Trust(PROBATIONARY))), "T1"))
    assert "because ann is not trusted" in explained(of, "T1").sentence
    assert "ann is not trusted" not in explained(park(of, "T2"), "T2").sentence
    born = Hand(
        "board", {"task:T3": make("T3", merges=TRUSTED), "worker_slot:ann": worker_slot.WorkerSlot(trust=Trust())}
    )
    (claimed,) = [step for step in ask(born).reaction.transitions if isinstance(step.event, fleet_task.Entrusted)]
    (line,) = why.tell(why.Story("T3"), "board", claimed).lines
    assert line.words() == "given, with approval before the merge because it is only untrusted, to ann"


def test_a_status_has_the_levels_of_agents_and_tasks() -> None:
    """Where nothing is gated there are none."""
    plan = Plan(
        "p", (AgentPlan("ann", trust=TRUSTED),), (TaskPlan("T1", "do it"),), gates=GatePlan(PROBATIONARY, TRUSTED)
    )
    for gated, level_of, accepts in (
        (plan, "trusted", ("probationary", "trusted")),
        (replace(plan, gates=None), "", ("", "")),
    ):
        there: dict[str, Aggregate] = {}
        for name, envelope in opening(gated, 0):
            of = system.type_of(name)
            reaction = react(of, of.start(name), envelope)
            assert isinstance(reaction, Reaction)
            there[name] = reaction.aggregate
        (agent,), (shown,) = status.agents(there), task_status.tasks(there)
        assert (agent.level, agent.successes, agent.violations) == (level_of, 0, 0)
        assert ((shown.level, shown.merges), shown.needs_approval) == (accepts, False)
