"""Every code sample of document 000 that can be run, unchanged but for its import line."""

# The samples stand here as they are printed there:
# ruff: noqa: ANN204, FBT001, G004, S311, T201, TRY300

import contextlib
import random
from typing import Any

import pytest

from lifefold.interpreters.facades.cooperative import Agent, AgentState, StateTransitionError
from virtual_clock import VirtualClock


def test_invalid_transition_sample(capsys: pytest.CaptureFixture[str]) -> None:
    """Document 000, StateTransitionError."""
    agent = Agent("agent-1", "Worker")
    # Agent starts in INITIALIZING

    try:
        # Invalid: cannot schedule without first calling start()
        agent.schedule("task-123")
    except StateTransitionError as e:
        print(f"Current state: {e.current_state}")  # 0 (INITIALIZING)
        print(f"Target state: {e.target_state}")  # 2 (SCHEDULED)
        print(str(e))  # "Invalid state transition: INITIALIZING -> SCHEDULED"
    assert capsys.readouterr().out.splitlines() == [
        "Current state: 0",
        "Target state: 2",
        "Invalid state transition: INITIALIZING -> SCHEDULED",
    ]


class WorkerAgent(Agent):
    def __init__(self, agent_id: str):
        super().__init__(agent_id, "Worker")
        self.work_queue: list[str] = []
        self.done: list[str] = []

    def on_startup(self) -> None:
        print(f"[{self.agent_id}] Starting up...")

    def on_scheduled(self, task_id: str) -> None:
        print(f"[{self.agent_id}] Scheduled for task: {task_id}")

    def on_suspend(self) -> None:
        print(f"[{self.agent_id}] Suspending, saving state...")

    def on_resume(self) -> None:
        print(f"[{self.agent_id}] Resuming from checkpoint...")

    def process_work(self) -> None:
        """Main work loop with preemption support."""
        for item in self.work_queue:
            if self.safe_point():
                print(f"[{self.agent_id}] Yielding to preemption")
                self.suspend()
                return

            self._process_item(item)

        self.complete()

    def _process_item(self, item: str) -> None:
        self.done.append(item)
        if item == "urgent":
            self.request_preemption("an urgent item")


def test_complete_example(capsys: pytest.CaptureFixture[str]) -> None:
    """Document 000, Complete Example."""
    # Usage
    agent = WorkerAgent("worker-1")
    assert agent.state == AgentState.INITIALIZING

    agent.start()
    assert agent.state == AgentState.RUNNABLE

    agent.schedule("task-abc")
    assert agent.state == AgentState.SCHEDULED

    agent.run()
    assert agent.state == AgentState.RUNNING

    # Agent processes work and completes
    agent.complete()
    assert agent.state == AgentState.COMPLETED
    assert agent.is_terminal()
    assert capsys.readouterr().out.splitlines() == [
        "[worker-1] Starting up...",
        "[worker-1] Scheduled for task: task-abc",
    ]


def test_the_work_loop_of_the_complete_example_yields_and_finishes(capsys: pytest.CaptureFixture[str]) -> None:
    """Document 000, Complete Example: ``process_work``, preempted once, resumed, and finished (A16)."""
    agent = WorkerAgent("worker-1")
    agent.start()
    agent.schedule("task-abc")
    agent.run()
    agent.work_queue = ["first", "urgent", "second"]
    agent.process_work()
    assert agent.state == AgentState.SUSPENDED
    assert agent.done == ["first", "urgent"]
    agent.resume()
    agent.run()
    agent.work_queue = ["second"]
    agent.process_work()
    assert agent.is_terminal()
    assert agent.done == ["first", "urgent", "second"]
    assert capsys.readouterr().out.splitlines()[2:] == [
        "[worker-1] Yielding to preemption",
        "[worker-1] Suspending, saving state...",
        "[worker-1] Resuming from checkpoint...",
    ]


class Unreachable:
    """A service that refuses the first so many connections."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals

    def connect(self) -> None:
        self.refusals -= 1
        if self.refusals >= 0:
            raise ConnectionError


def recoverable(service: Unreachable, time: VirtualClock) -> Agent:
    """Return an agent of the document's class ``RecoverableAgent``, FAILED; ``time`` stands for the module."""

    class RecoverableAgent(Agent):
        MAX_RETRIES = 5
        BASE_DELAY_S = 1.0

        def on_recovery_start(self) -> None:
            for attempt in range(self.MAX_RETRIES):
                try:
                    self._reconnect_to_service()
                    self.complete_recovery()
                    return
                except ConnectionError:
                    # Exponential backoff with jitter
                    delay = self.BASE_DELAY_S * (2**attempt)
                    jitter = random.uniform(0, delay * 0.1)
                    time.sleep(delay + jitter)

            self.fail_recovery(f"Failed after {self.MAX_RETRIES} attempts")

        def _reconnect_to_service(self) -> None:
            service.connect()

        def on_recovery_complete(self, success: bool) -> None:
            ended.append((success, self.state_name))

    ended: list[tuple[bool, str]] = []
    agent = RecoverableAgent("agent-1", "Recoverable", clock=time)
    vars(agent)["ended"] = ended
    agent.start()
    agent.schedule("T1")
    agent.run()
    agent.fail("connection lost")
    return agent


def test_a_recovery_that_succeeds_within_its_hook() -> None:
    """Document 000, Retry Strategies, Example implementation, and Successful Recovery (A21, A22)."""
    time = VirtualClock()
    agent = recoverable(Unreachable(3), time)
    agent.recover()
    assert agent.state == AgentState.RUNNABLE
    assert vars(agent)["ended"] == [(True, "RUNNABLE")]
    assert 7_000 <= time() <= 7_700
    assert agent.failures == ()


def test_a_recovery_that_fails_within_its_hook() -> None:
    """Document 000, Retry Strategies, Example implementation, and Failed Recovery (A21, A22)."""
    agent = recoverable(Unreachable(9), VirtualClock())
    agent.recover()
    assert agent.state == AgentState.FAILED
    assert agent.failure_reason == "Failed after 5 attempts"
    assert vars(agent)["ended"] == [(False, "FAILED")]


def test_successful_recovery_sequence() -> None:
    """Document 000, Recovery Flow, Successful Recovery, with the calls from outside."""
    agent = Agent("agent-1", "Worker")
    agent.start()
    agent.schedule("T1")
    agent.run()
    agent.fail("connection lost")
    assert agent.state_name == "FAILED"
    agent.recover()
    assert agent.state_name == "RECOVERING"
    agent.complete_recovery()
    assert agent.state_name == "RUNNABLE"


def test_failed_recovery_sequence() -> None:
    """Document 000, Recovery Flow, Failed Recovery, with the calls from outside."""
    agent = Agent("agent-1", "Worker")
    agent.start()
    agent.schedule("T1")
    agent.run()
    agent.fail("database error")
    agent.recover()
    agent.fail_recovery("max retries exceeded")
    assert agent.state_name == "FAILED"
    assert agent.failure_reason == "max retries exceeded"


class ItemsAgent(Agent):
    def __init__(self) -> None:
        super().__init__("items")
        self.processed: list[int] = []

    def process_items(self, items: list[int]) -> None:
        for item in items:
            # Check for preemption at each iteration
            if self.safe_point():
                self.suspend()
                return

            self.process_single_item(item)

    def process_single_item(self, item: int) -> None:
        self.processed.append(item)
        if item == 2:
            self.on_control({"content_type": "application/json", "payload": b'{"type":"PREEMPT_REQUEST"}'})


def test_a_loop_with_safe_points_yields() -> None:
    """Document 000, Preemption Protocol, safe_point()."""
    agent = ItemsAgent()
    agent.start()
    agent.schedule("T1")
    agent.run()
    agent.process_items([1, 2, 3])
    assert agent.processed == [1, 2]
    assert agent.state == AgentState.SUSPENDED


class Database:
    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.log: list[object] = []

    def begin_transaction(self) -> None:
        self.log.append("begin")
        self.agent.request_preemption("in the middle")

    def write(self, changes: object) -> None:
        self.log += [changes, self.agent.safe_point()]

    def commit(self) -> None:
        self.log.append("commit")


class TransactionAgent(Agent):
    db: Database
    pending_changes = "changes"

    def commit_transaction(self) -> None:
        # This section must complete atomically
        with self.non_preemptible(deadline_ms=5000):
            self.db.begin_transaction()
            self.db.write(self.pending_changes)
            self.db.commit()


def test_a_critical_section_is_not_preempted() -> None:
    """Document 000, Preemption Protocol, non_preemptible(deadline_ms) (A15)."""
    agent = TransactionAgent("bank")
    agent.db = Database(agent)
    agent.start()
    agent.schedule("T1")
    agent.run()
    assert isinstance(agent.non_preemptible(), contextlib.AbstractContextManager)
    agent.commit_transaction()
    assert agent.db.log == ["begin", "changes", False, "commit"]
    assert agent.safe_point()


class MyAgent(Agent):
    def on_startup(self) -> None:
        """Called during agent startup initialization."""
        self.logger.info("Agent starting up")
        self._init_connections()

    def on_shutdown(self) -> None:
        """Called during agent shutdown."""
        self.logger.info("Agent shutting down")
        self._close_connections()

    def on_scheduled(self, task_id: str) -> None:
        """Called when the agent is scheduled with a task."""
        self.logger.info(f"Assigned task: {task_id}")
        self._prepare_for_task(task_id)

    def on_state_change(self, old_state: int, new_state: int) -> None:
        """Called whenever the agent state changes."""
        self.logger.debug(f"State: {AgentState.name(old_state)} -> {AgentState.name(new_state)}")

    def on_preempt_request(self, reason: str) -> None:
        """Called when a preemption is requested."""
        self.logger.warning(f"Preemption requested: {reason}")

    def on_suspend(self) -> None:
        """Called when the agent is suspended."""
        self._save_checkpoint()

    def on_resume(self) -> None:
        """Called when the agent resumes from suspension."""
        self._load_checkpoint()

    def on_recovery_start(self) -> None:
        """Called when recovery begins after a failure."""
        self.logger.info("Starting recovery")

    def on_recovery_complete(self, success: bool) -> None:
        """Called when recovery completes."""
        if success:
            self.logger.info("Recovery successful")
        else:
            self.logger.error("Recovery failed")

    def _init_connections(self) -> None:
        self.logger.info("* init")

    def _close_connections(self) -> None:
        self.logger.info("* close")

    def _prepare_for_task(self, task_id: str) -> None:
        self.logger.info(f"* prepare {task_id}")

    def _save_checkpoint(self) -> None:
        self.logger.info("* save")

    def _load_checkpoint(self) -> None:
        self.logger.info("* load")


def test_lifecycle_hooks_sample(caplog: pytest.LogCaptureFixture) -> None:
    """Document 000, Lifecycle Hooks: every hook, in the order observed of the document's system (A11, A21)."""
    caplog.set_level("DEBUG", logger="lifefold.agent")
    agent = MyAgent("agent-1", "Mine")
    agent.start()
    agent.schedule("T1")
    agent.run()
    agent.request_preemption("more urgent")
    agent.suspend()
    agent.resume()
    agent.run()
    agent.fail("it broke")
    agent.recover()
    agent.fail_recovery("not yet")
    agent.recover()
    agent.complete_recovery()
    agent.schedule("T2")
    agent.run()
    agent.shutdown()
    assert caplog.messages == [
        "Agent starting up", "* init", "State: INITIALIZING -> RUNNABLE",
        "State: RUNNABLE -> SCHEDULED", "Assigned task: T1", "* prepare T1",
        "State: SCHEDULED -> RUNNING",
        "Preemption requested: more urgent",
        "* save", "State: RUNNING -> SUSPENDED",
        "State: SUSPENDED -> RESUMED", "* load",
        "State: RESUMED -> RUNNING",
        "State: RUNNING -> FAILED",
        "State: FAILED -> RECOVERING", "Starting recovery",
        "State: RECOVERING -> FAILED", "Recovery failed",
        "State: FAILED -> RECOVERING", "Starting recovery",
        "State: RECOVERING -> RUNNABLE", "Recovery successful", "task T1 failed: not yet",
        "State: RUNNABLE -> SCHEDULED", "Assigned task: T2", "* prepare T2",
        "State: SCHEDULED -> RUNNING",
        "Agent shutting down", "* close", "State: RUNNING -> SHUTTING_DOWN",
    ]  # fmt: skip


REFERENCE: dict[str, tuple[int, str, str]] = {
    "start": (0, "", "RUNNABLE"),
    "schedule": (1, "T1", "SCHEDULED"),
    "run": (2, "", "RUNNING"),
    "wait": (3, "", "WAITING"),
    "wait_resources": (3, "", "WAITING_RESOURCES"),
    "suspend": (3, "", "SUSPENDED"),
    "resume": (6, "", "RESUMED"),
    "complete": (3, "", "COMPLETED"),
    "fail": (3, "why", "FAILED"),
    "shutdown": (3, "", "SHUTTING_DOWN"),
    "recover": (9, "", "RECOVERING"),
    "complete_recovery": (11, "", "RUNNABLE"),
    "fail_recovery": (11, "why", "FAILED"),
}

WAY: dict[int, tuple[tuple[Any, ...], ...]] = {
    0: (),
    1: (("start",),),
    2: (("start",), ("schedule", "T1")),
    3: (("start",), ("schedule", "T1"), ("run",)),
    6: (("start",), ("schedule", "T1"), ("run",), ("suspend",)),
    9: (("start",), ("schedule", "T1"), ("run",), ("fail", "x")),
    11: (("start",), ("schedule", "T1"), ("run",), ("fail", "x"), ("recover",)),
}


@pytest.mark.parametrize("method", REFERENCE)
def test_the_methods_have_the_documents_signatures_and_effects(method: str) -> None:
    """Document 000, Transition Method Reference and Utility Methods."""
    source, argument, target = REFERENCE[method]
    agent = Agent("agent-1")
    for name, *arguments in WAY[source]:
        getattr(agent, name)(*arguments)
    number = getattr(AgentState, target)
    assert agent.state == source
    assert agent.can_transition_to(number)
    assert getattr(agent, method)(*([argument] if argument else [])) is None
    assert (agent.state, agent.state_name) == (number, target)
    assert not agent.can_transition_to(99)
