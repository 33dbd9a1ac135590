"""A runtime of agents under concurrent threads, concurrent processes, and invalid calls."""

import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, Final

import pytest

from lifefold.core.lifecycles.status import State
from lifefold.interpreters.facades.status import (
    AgentConfig,
    AgentError,
    AgentFailed,
    AgentState,
    AlreadyRunning,
    BudgetRefused,
    Runtime,
    SqliteStateManager,
)
from recorded_runtime import RecordedRuntime, UneasyStore, well

SUPPORT: Final = Path(__file__).parents[3] / "support"
CONFIG: Final = AgentConfig("coder", budget_microusd=1_000)


def test_the_slower_call_decides_again() -> None:
    """On what the other one has made of the agent: a stop meets one that has failed meanwhile (B16)."""
    store = UneasyStore()
    recorded = RecordedRuntime(store)
    agent_id = recorded.runtime.spawn_agent()
    store.before_save = lambda: recorded.another().fail(agent_id, "boom")
    assert recorded.runtime.stop_agent(agent_id).status is State.FAILED
    assert "agent_1 agent_stopped" not in recorded.told


def test_a_restart_that_was_too_late_takes_back_what_it_launched() -> None:
    """Another runtime has restarted the agent meanwhile (B9, B16)."""
    store = UneasyStore()
    recorded = RecordedRuntime(store)
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.stop_agent(agent_id)
    recorded.told.clear()
    store.before_save = lambda: recorded.another().restart(agent_id)
    with pytest.raises(AlreadyRunning):
        recorded.runtime.restart(agent_id)
    assert recorded.told == ["agent_1 launch 2", "agent_1 launch 2", "agent_1 agent_started", "agent_1 release 2"]


def test_a_launch_is_taken_back_when_the_decision_that_counts_asks_for_none() -> None:
    """The agent has been restarted and has failed in the meantime; what was launched belongs to no agent (B8, B16)."""
    store = UneasyStore()
    recorded = RecordedRuntime(store)
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.stop_agent(agent_id)

    def meanwhile() -> None:
        other = Runtime(store)
        other.restart(agent_id)
        other.fail(agent_id, "boom")

    recorded.told.clear()
    store.before_save = meanwhile
    with pytest.raises(AgentFailed, match="boom"):
        recorded.runtime.restart(agent_id)
    assert recorded.told == ["agent_1 launch 2", "agent_1 release 2"]


@pytest.mark.parametrize("way", ["launch", "save"])
def test_a_launch_is_taken_back_whatever_prevents_the_repeated_start(way: str) -> None:
    """The second launch fails, or its start cannot be kept: neither of the two that were begun goes on (B11)."""
    store = UneasyStore()
    recorded = RecordedRuntime(store)
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.stop_agent(agent_id)

    def full(_agent_id: str, incarnation: int) -> None:
        if incarnation == 3 and way == "launch":
            raise OSError("disk full")

    def meanwhile() -> None:
        other = Runtime(store)
        other.restart(agent_id)
        other.stop_agent(agent_id)
        recorded.launch = full
        store.before_save = lambda: setattr(store, "full", way == "save")

    recorded.told.clear()
    store.before_save = meanwhile
    with pytest.raises(OSError, match="disk full"):
        recorded.runtime.restart(agent_id)
    begun = [line for line in recorded.told if "launch" in line]
    assert begun == ["agent_1 launch 2", "agent_1 launch 3"]
    assert [line for line in recorded.told if "release" in line] == [
        "agent_1 release 2", *(["agent_1 release 3"] if way == "save" else [])
    ]  # fmt: skip
    assert recorded.runtime.get_agent(agent_id).status is State.STOPPED


def test_a_start_that_is_under_way_is_not_begun_a_second_time() -> None:
    """Two calls of one runtime would launch the same agent twice, and release the one for the other (B9)."""
    recorded = RecordedRuntime()
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.stop_agent(agent_id)

    def again(_agent_id: str, _incarnation: int) -> None:
        recorded.launch = well
        with pytest.raises(AlreadyRunning, match="agent_1: is being started by another call"):
            recorded.runtime.restart(agent_id)

    recorded.told.clear()
    recorded.launch = again
    recorded.runtime.restart(agent_id)
    assert recorded.told == ["agent_1 launch 2", "agent_1 agent_started"]


def test_a_start_that_failed_can_be_tried_again() -> None:
    """The agent is STOPPED as before, and nothing is under way (B10)."""
    recorded = RecordedRuntime()
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.stop_agent(agent_id)

    def full(_agent_id: str, _incarnation: int) -> None:
        recorded.launch = well
        raise OSError("disk full")

    recorded.launch = full
    with pytest.raises(OSError, match="disk full"):
        recorded.runtime.restart(agent_id)
    recorded.runtime.restart(agent_id)
    assert recorded.runtime.get_agent(agent_id).status is State.RUNNING


def test_a_launch_is_not_repeated_for_a_decision_that_is() -> None:
    """Another runtime has changed other fields than the status meanwhile (B15, B16)."""
    store = UneasyStore()
    recorded = RecordedRuntime(store)
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.stop_agent(agent_id)
    recorded.told.clear()
    store.before_save = lambda: Runtime(store).fail(agent_id, "late")
    recorded.runtime.restart(agent_id)
    assert recorded.told == ["agent_1 launch 2", "agent_1 agent_started"]
    assert recorded.runtime.get_agent(agent_id).late_reports == 1


def test_a_launch_belongs_to_its_incarnation() -> None:
    """An agent that was run and stopped in the meantime is launched again, as the one that it is now (B6, B16)."""
    store = UneasyStore()
    recorded = RecordedRuntime(store)
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.stop_agent(agent_id)

    def meanwhile() -> None:
        other = Runtime(store)
        other.restart(agent_id)
        other.stop_agent(agent_id)

    recorded.told.clear()
    store.before_save = meanwhile
    recorded.runtime.restart(agent_id)
    assert recorded.told == ["agent_1 launch 2", "agent_1 release 2", "agent_1 launch 3", "agent_1 agent_started"]


def test_ten_threads_spend_and_nothing_is_lost(recorded: RecordedRuntime) -> None:
    """The document's own example, ten at a time on one agent: every cost is counted, none twice (B16)."""
    agent_id = recorded.runtime.spawn_agent(AgentConfig(budget_microusd=10_000))
    start, admitted = Barrier(10), [0] * 10

    def spend(number: int) -> None:
        start.wait()
        for turn in range(20):
            with suppress(BudgetRefused):
                recorded.runtime.reserve(agent_id, f"{number}-{turn}", 100)
                recorded.runtime.settle(agent_id, f"{number}-{turn}", 90)
                admitted[number] += 1

    threads = [Thread(target=spend, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = recorded.runtime.get_agent(agent_id)
    assert now.spent_microusd == 90 * sum(admitted) <= 10_000
    assert sum(admitted) >= 100
    assert now.reserved_microusd == 0


def test_two_processes_on_one_file_lose_nothing(tmp_path: Path) -> None:
    """Real processes, a real file, and a budget that is not enough for both (B16)."""
    store = SqliteStateManager(tmp_path / "agents.db")
    agent_id = Runtime(store).spawn_agent(AgentConfig(budget_microusd=500))
    children = [
        subprocess.Popen(
            [sys.executable, SUPPORT / "spending_child.py", tmp_path / "agents.db", agent_id, name, "60"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    admitted = sum(int(child.communicate(timeout=60)[0]) for child in children)
    now = store.get_agent_state(agent_id)
    assert now.spent_microusd == 7 * admitted <= 500
    assert now.pii_detections == admitted
    assert admitted >= 70
    store.close()


def test_effects_follow_in_the_order_of_what_was_saved(recorded: RecordedRuntime) -> None:
    """Stops and restarts from several threads are told as one chain, each once, up to what is saved last (I3)."""
    agent_id, start = recorded.runtime.spawn_agent(), Barrier(4)

    def use() -> None:
        start.wait()
        for _ in range(15):
            for call in (recorded.runtime.stop_agent, recorded.runtime.restart):
                with suppress(AlreadyRunning):
                    call(agent_id)

    threads = [Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [line.partition(" ")[2] for line in recorded.told if " agent_" in line]
    assert told == (["agent_started", "agent_stopped"] * len(told))[: len(told)]
    now = recorded.runtime.get_agent(agent_id)
    assert told.count("agent_started") == now.incarnation
    assert told[-1] == ("agent_started" if now.status is State.RUNNING else "agent_stopped")


ODD: Final[tuple[Any, ...]] = (
    None, True, 0, 1, -1, 10**30, 1.5, float("nan"), "", "agent_1", "agent_2", "agent_3", "w", "\ud800", "\x00",
    "x" * 20_000, b"agent_1", [], {}, object(), CONFIG, AgentConfig,
)  # fmt: skip


ALONE: Final = "stop_agent restart replace record_pii_detection get_agent refresh".split()
"""What is asked of an agent without any more words."""


def test_ten_thousand_odd_calls_raise_only_what_is_documented() -> None:
    """Whatever is asked of it, nothing else comes out, and the agents stay what they must be."""
    chance = random.Random(1)  # noqa: S311 - a seed for a test
    recorded = RecordedRuntime()
    for _ in range(3):
        recorded.runtime.spawn_agent(CONFIG)
    names = "fail begin_task end_task reserve settle refund".split() + ALONE
    calls = [(getattr(recorded.runtime, name), name) for name in names]
    words: Final = {"stop_agent": ("drain", "force"), "restart": ("new_id",)}
    for _ in range(10_000):
        call, name = chance.choice(calls)
        given = [chance.choice(ODD) for _ in range({"fail": 3, "reserve": 3, "settle": 3}.get(name, 2))]
        if name in ALONE:
            given = given[:1]
        named = {word: chance.choice((*ODD, True, False)) for word in words.get(name, ()) if chance.random() < 0.5}
        with suppress(AgentError, TypeError, ValueError):
            call(*given, **named)
        with suppress(TypeError, ValueError):
            recorded.runtime.spawn_agent(chance.choice(ODD)) if chance.random() < 0.001 else None
    for state in recorded.runtime.list_agents():
        assert AgentState.from_json(state.to_json()) == state
        assert all(each.record.account.sound for each in state.leases)
