"""When a fleet is over, and when only people can move it on."""

from pyrsistent import pmap

from lifefold.core.fleet import AgentPlan, Budget, Caps, Plan, TaskPlan, opening, system
from lifefold.core.fleet.board import budget, fleet_task
from lifefold.core.fleet.dispatch.budgets import FLEET, raising
from lifefold.core.fleet.system import completion
from lifefold.core.kernel import Aggregate, Envelope, Reaction, react, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.session import WorktreeReady


def begun(plan: Plan) -> dict[str, Aggregate]:
    """Return the aggregates of a fleet, as a plan opens them."""
    found: dict[str, Aggregate] = {}
    for name, envelope in opening(plan, 0):
        found[name] = take(system.type_of(name).start(name), envelope)
    return found


def take(of: Aggregate, envelope: Envelope) -> Aggregate:
    """Return an aggregate after an input that it must take."""
    answer = react(system.type_of(of.name), of, envelope)
    assert isinstance(answer, Reaction)
    return answer.aggregate


def with_job(fleet: dict[str, Aggregate], record: fleet_task.FleetTask) -> dict[str, Aggregate]:
    """Return a fleet whose board has a task as this one is."""
    desk = fleet["board"]
    entity = replace(desk.entities[f"task:{record.id}"], record=record)
    return {**fleet, "board": replace(desk, entities=desk.entities.set(f"task:{record.id}", entity))}


PLAN = Plan("f", (AgentPlan("ann"),), (TaskPlan("T1", "do it", needs_approval=True),), budget=Budget(Caps(sessions=1)))


def heard(fleet: dict[str, Aggregate]) -> dict[str, Aggregate]:
    """Return a fleet in which every message was taken, and has changed nothing."""
    taken = {name: {peer: each.sent[name] for peer, each in fleet.items() if name in each.sent} for name in fleet}
    return {name: replace(each, received=pmap(taken[name])) for name, each in fleet.items()}


def ready(plan: Plan = PLAN) -> dict[str, Aggregate]:
    """Return a fleet whose agent has its worktree, and waits for work."""
    fleet = begun(plan)
    ann = fleet["worker/ann"]
    (part,) = ann.entities["session"].running
    made = Envelope("session", WorktreeReady(), 0, "r", slot=part.slot, generation=part.generation)
    return heard({**fleet, "worker/ann": take(ann, made)})


def test_nothing_running_waits_for_operators() -> None:
    """Not before there is a board, while a worktree is made, nor when nothing is left."""
    assert not completion.waits_for_operators({})
    assert not completion.waits_for_operators(begun(PLAN))
    closed = with_job(ready(), fleet_task.FleetTask(task.State.CLOSED, "T1"))
    desk = closed["board"]
    view = replace(desk.views["work"], unsettled=0)
    closed["board"] = replace(desk, views=desk.views.set("work", view))
    assert completion.finished(closed["board"])
    assert not completion.waits_for_operators(closed)


def test_a_task_without_budget_or_answer_waits_for_operators_alone() -> None:
    """A fleet that waits for more tasks is no such fleet; nor one whose board lets time decide."""
    fleet = ready()
    blocked = with_job(fleet, fleet_task.FleetTask(task.State.BLOCKED, "T1", blocked_by=FLEET))
    assert completion.waits_for_money(blocked["board"])
    assert completion.waits_for_operators(blocked)
    assert not completion.finished(blocked["board"])
    assert not completion.waits_for_operators(ready(replace(PLAN, watch=True)))
    spent = replace(fleet["board"].record(FLEET), period_ms=9, state=budget.State.OPEN)
    desk = fleet["board"]
    timed = take(desk, Envelope(FLEET, budget.Reserve("ann"), 0, "rule"))
    assert not any(each.running for each in timed.entities.values()), "this one is not filled anew"
    assert spent.period_ms == 9
    resets = ready(replace(PLAN, budget=Budget(Caps(sessions=2), period_ms=9)))
    desk = take(resets["board"], Envelope(FLEET, budget.Reserve("ann"), 0, "rule"))
    assert not completion.waits_for_operators({**resets, "board": desk})


def test_a_fleet_with_a_message_in_flight_does_not_wait_for_operators_alone() -> None:
    """An approval without a runner has the board tell a worker to merge: no operator is needed."""
    fleet = with_job(ready(), fleet_task.FleetTask(task.State.BLOCKED, "T1", blocked_by=FLEET))
    desk = fleet["board"]
    told = {**fleet, "board": replace(desk, sent=desk.sent.set("worker/ann", desk.sent.get("worker/ann", 0) + 1))}
    assert completion.waits_for_operators(fleet)
    assert not completion.waits_for_operators(told)
    assert completion.waits_for_operators(heard(told))
    gone = replace(desk, sent=desk.sent.set("worker/bob", 1))
    assert completion.waits_for_operators({**fleet, "board": gone})


def test_the_command_that_raises_a_budget_says_how_much_the_next_claim_needs() -> None:
    """Of each resource, as the command takes it."""
    caps = Caps(microusd=1, tokens=1, time_ms=1, sessions=1)
    share = Amounts(microusd=15_000, tokens=5, time_ms=1_500, sessions=2)
    for resource, words in {
        "microusd": "--add-usd 0.02", "tokens": "--add-tokens 4", "time_ms": "--add-time 2s",
        "sessions": "--add-sessions 1",
    }.items():  # fmt: skip
        plan = replace(PLAN, budget=Budget(Caps(**{resource: getattr(caps, resource)}), share))
        assert raising(begun(plan)["board"].entities[FLEET]) == f"budget {words}"
