"""Whole fleets under every choice the world has: each of them comes to its end, and nothing is left over."""

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet_driver import CODEC, Driver, effects_of
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, system
from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.fleet.system import board, board_properties
from lifefold.core.fleet.worker import assignment, shutdown
from lifefold.core.kernel import (
    Aggregate,
    Outcomes,
    Projection,
    Property,
    Reaction,
    SystemState,
    react,
    replace,
    written,
)
from lifefold.core.kernel.property import PropertyKind
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.session import Limits
from lifefold.effects import Activity, Begin, CheckOutWork

MORE = st.fixed_dictionaries(
    {},
    optional={
        "needs_approval": st.booleans(),
        "role": st.just("tester"),
        "files": st.lists(st.sampled_from(["a", "a/b", "c"]), max_size=2).map(tuple),
        "most_subtasks": st.integers(1, 5),
    },
)
"""What a task may have besides: it is like any other one, if it has none of these."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Make a small plan: a task depends on earlier ones only."""
    tasks: list[TaskPlan] = []
    for n in range(draw(st.integers(1, 5))):
        earlier = [each.id for each in tasks]
        after = tuple(draw(st.lists(st.sampled_from(earlier), max_size=2))) if earlier else ()
        each = TaskPlan(f"T{n}", "do it", (), after, draw(st.integers(1, 3)), draw(st.integers(0, 2)))
        tasks.append(replace(each, **draw(MORE)))
    limits = Limits(max_consecutive_errors=3, max_total_errors=4, grace_ms=draw(st.sampled_from([0, 5_000])))
    roles = st.sampled_from([("tester",), ()])
    agents = tuple(AgentPlan(f"a{n}", limits, roles=draw(roles)) for n in range(draw(st.integers(1, 3))))
    return Plan("plan", agents, tuple(tasks), approve_plan=draw(st.booleans()))


def long_script(seed: int, length: int) -> list[int]:
    """Return numbers that look like chance and are the same every time."""
    blocks = (blake2b(f"{seed}:{n}".encode()).digest() for n in range(length // 64 + 1))
    return [number % 24 for block in blocks for number in block][:length]


SCRIPTS = st.one_of(
    st.lists(st.integers(0, 23), max_size=100),
    st.builds(long_script, st.integers(0, 10**6), st.integers(0, 2_000)),
)


def must_have_its_view(name: str, reaction: Reaction) -> None:
    """Hold the board's view against what is found again without it, after every input."""
    if name == "board":
        of = reaction.aggregate
        assert board_properties.view_agrees(of)
        waiting = work_of(of).waiting
        since = [of.entities[ref].entered_ms for ref in waiting]
        assert since == sorted(since), "the worker slots wait in their order"
        assert len(set(waiting)) == len(waiting)


ALWAYS: list[Property[Any]] = [each for each in system.properties if each.property_kind is PropertyKind.ALWAYS]


def must_have_properties(aggregates: Mapping[str, Aggregate], name: str, reaction: Reaction) -> None:
    """Hold what the fleet promises against all of it, and against the part that a step can have touched."""
    there = {each for each in aggregates if each.startswith("worker/")} | {"board"}
    sent = [(to, each.name, count) for each in aggregates.values() for to, count in each.sent.items()]
    under_way = sum(
        count - (aggregates[to].received.get(sender, 0) if to in there else 0) for to, sender, count in sent
    )
    for each in ALWAYS:
        projection, localized = each.projection, each.localized
        assert projection is not None
        part = localized(SystemState(aggregates), name, reaction.transitions) if localized is not None else None
        for system_state in (SystemState(aggregates), *([part] if part is not None else [])):
            seen = {of: projection(aggregate) for of, aggregate in system_state.aggregates.items()}
            assert each.holds(Projection(seen, under_way)), each.name


def must_have_no_idle_worker(name: str, reaction: Reaction) -> None:
    """No worker waits beside a ready task: claims are made at once."""
    if name == "board":
        assert board_properties.no_agent_waits_beside_work(reaction.aggregate)


def must_have_finished(driver: Driver) -> None:
    """Assert that a fleet has come to its end."""
    of = driver.aggregates["board"]
    tasks = [each.record for ref, each in of.entities.items() if ref.startswith("task:")]
    present = [
        each
        for ref, each in of.entities.items()
        if ref.startswith("worker_slot:") and each.state is not worker_slot.State.GONE
    ]
    assert board.finished(of)
    assert all(task.settled(record) for record in tasks) or not present
    assert not present
    for agent in driver.plan.agents:
        mine = driver.aggregates[f"worker/{agent.name}"]
        assert shutdown.settled(mine)
        assert shutdown.quiet(mine)
    owned = [record for record in tasks if record.owner and record.state is not task.State.CLOSED]
    assert owned == []


@given(plans(), SCRIPTS)
def test_any_fleet_ends_with_every_task_settled_or_no_worker_present(plan: Plan, script: list[int]) -> None:
    """Whatever fails, however long it takes, whatever is delivered late or twice."""
    driver = Driver(plan, script)
    driver.watch = must_have_its_view
    must_have_finished(driver.run())


@given(plans(), SCRIPTS)
def test_any_fleet_ends_under_all_operator_commands_and_runner_crashes(plan: Plan, script: list[int]) -> None:
    """Messages, holds, stops, cancellations and crashes at any moment."""
    driver = Driver(plan, script, people=True)
    driver.watch = must_have_its_view
    must_have_finished(driver.run())


HARMLESS = re.compile(
    r"session: UrgentMessage is not possible in (CoolingDown|Stopped) |task: DependencyLost is not possible in BLOCKED "
)


@given(plans(), SCRIPTS, st.booleans())
def test_no_rule_ever_asks_for_what_is_refused(plan: Plan, script: list[int], people: bool) -> None:  # noqa: FBT001 - drawn
    """The rules know the state that they speak to, with two exceptions that change nothing.

    An interruption that waited for a session that then never ran is over with it, and the message stays in the mailbox
    (D14). A task that depends on a failed one in two ways is blocked by the first and asked to block by the second.
    """
    driver = Driver(plan, script, people=people).run()
    assert [each.reason for _, each in driver.refused_rules() if not HARMLESS.match(each.reason)] == []


@given(plans(), SCRIPTS)
def test_the_fleet_has_its_properties_at_every_step(plan: Plan, script: list[int]) -> None:
    """Seen as a whole, and seen only in the parts that a step can have touched."""
    driver = Driver(plan, script, people=True)
    driver.watch = lambda name, reaction: must_have_properties(driver.aggregates, name, reaction)
    driver.run()


@given(plans(), SCRIPTS)
def test_no_worker_waits_while_there_is_work(plan: Plan, script: list[int]) -> None:
    """After every input, either no task is ready or no worker slot waits."""
    driver = Driver(plan, script, people=True)
    driver.watch = must_have_no_idle_worker
    driver.run()


def must_agree_on_claims(aggregates: Mapping[str, Aggregate]) -> None:
    """Where no message is on its way between the board and a worker, both have the same task under the same claim."""
    of = aggregates.get("board", Aggregate("board"))
    for name in aggregates.keys() - {"board"}:
        mine = aggregates[name]
        if of.sent.get(name, 0) != mine.received.get("board", 0) or mine.sent.get("board", 0) != of.received.get(
            name, 0
        ):
            continue
        work: assignment.Assignment = mine.record("assignment")
        owned = {
            (each.record.id, each.record.epoch)
            for ref, each in of.entities.items()
            if ref.startswith("task:") and each.record.owner == mine.key
        }
        held = (
            {(work.brief.task, work.brief.epoch)} if work.state not in {"Idle", "Wanting"} else set[tuple[str, int]]()
        )
        assert owned <= held, (name, work, owned)
        assert held <= owned or work.state is assignment.State.MERGING, (name, work, owned)


@given(plans(), SCRIPTS)
def test_a_worker_works_on_what_the_board_has_as_its_own_and_on_nothing_else(plan: Plan, script: list[int]) -> None:
    """Through all cancels, blocks and recalls; only a merge that had begun before is finished (E20)."""
    driver = Driver(plan, script, people=True)
    driver.watch = lambda _name, _reaction: must_agree_on_claims(driver.aggregates)
    driver.run()


def begins_of(reaction: Reaction, kind: type[Activity]) -> list[Activity]:
    """Return the activities of one kind that begin."""
    return [
        begin.activity
        for begin in effects_of(reaction, Begin)
        if isinstance(begin, Begin) and isinstance(begin.activity, kind)
    ]


@given(plans(), SCRIPTS)
def test_no_place_is_made_while_something_of_the_last_task_still_runs_in_it(plan: Plan, script: list[int]) -> None:
    """A recalled session, or a recalled verification, is confirmed dead before another task is checked out."""

    def watch(name: str, reaction: Reaction) -> None:
        if begins_of(reaction, CheckOutWork):
            running = [part for each in reaction.aggregate.entities.values() for part in each.running]
            assert {part.slot for part in running} <= {"CheckOutWork", "BuildPrompt"}, name

    driver = Driver(plan, script, people=True)
    driver.watch = watch
    driver.run()


@pytest.mark.parametrize("agents", [1, 3])
def test_a_fleet_in_which_no_place_can_be_made_ends_with_its_tasks_as_they_were(agents: int) -> None:
    """Every agent backs off, and stops at its threshold; no task has lost a retry, and each says why it is not done."""
    limits = Limits(max_consecutive_errors=3)
    plan = Plan(
        "plan", tuple(AgentPlan(f"a{n}", limits) for n in range(agents)), (TaskPlan("T1", "x"), TaskPlan("T2", "y"))
    )
    driver = Driver(plan)
    driver.broken = {agent.name for agent in plan.agents}
    must_have_finished(driver.run())
    assert driver.now_ms >= 2_000 + 4_000
    for ref in ("task:T1", "task:T2"):
        record = driver.record("board", ref)
        assert (record.state, record.retries, record.failure) == (task.State.OPEN, 0, "")
        assert record.reason.endswith("could not make its place: no branch") or not record.epoch
    assert {driver.record(f"worker/{agent.name}", "session").total_errors for agent in plan.agents} == {3}


def test_one_agent_that_can_make_no_place_costs_no_task_anything() -> None:
    """The healthy one does all of them while the other backs off and stops."""
    agents = tuple(AgentPlan(name, Limits(max_consecutive_errors=2)) for name in ("ann", "bob"))
    driver = Driver(Plan("plan", agents, tuple(TaskPlan(f"T{n}", "x", max_retries=0) for n in range(20))))
    driver.broken = {"ann"}
    must_have_finished(driver.run())
    assert set(driver.states("task").values()) == {"CLOSED"}


@given(plans(), SCRIPTS)
def test_the_fold_of_the_log_is_the_fleet(plan: Plan, script: list[int]) -> None:
    """The aggregates come out of the inputs by the rules, and out of the outcomes without them."""
    driver = Driver(plan, script, people=True).run()
    decided: dict[str, Aggregate] = {}
    folded: dict[str, Aggregate] = {}
    outcomes = Outcomes(CODEC)
    for name, entry in driver.log:
        of, envelope = system.type_of(name), CODEC.decode(name, entry)
        before = decided.get(name) or of.start(name)
        reaction = react(of, before, envelope)
        assert isinstance(reaction, Reaction)
        again = outcomes.applied(of, folded.get(name) or of.start(name), envelope, written(before, envelope, reaction))
        assert again == reaction
        decided[name], folded[name] = reaction.aggregate, again.aggregate
    assert folded == decided == driver.aggregates


@given(plans(), SCRIPTS)
def test_a_message_is_taken_exactly_once(plan: Plan, script: list[int]) -> None:
    """What an aggregate was told is what others have sent it, when all is over."""
    driver = Driver(plan, script, people=True).run()
    for name, aggregate in driver.aggregates.items():
        for receiver, count in aggregate.sent.items():
            assert driver.aggregates[receiver].received[name] == count


@pytest.mark.parametrize("agents", [1, 2, 5])
def test_a_kind_world_closes_every_task(agents: int) -> None:
    """With nothing going wrong, everything gets done by anybody."""
    tasks = tuple(TaskPlan(f"T{n}", "do it", depends_on=(f"T{n - 3}",) if n > 2 else ()) for n in range(10))
    driver = Driver(Plan("plan", tuple(AgentPlan(f"a{n}") for n in range(agents)), tasks)).run()
    assert set(driver.states("task").values()) == {"CLOSED"}
    assert set(driver.states("worker_slot").values()) == {"Gone"}
    must_have_finished(driver)
