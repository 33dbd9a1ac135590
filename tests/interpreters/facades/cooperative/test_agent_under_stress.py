"""An agent that is called with invalid arguments, or from several threads at once."""

import random
from collections.abc import Callable
from functools import partial
from threading import Barrier, Thread
from typing import Any, Final

from lifefold.core.kernel import LifecycleEvent
from lifefold.core.lifecycles import runtime
from lifefold.interpreters.facades.cooperative import Agent, StateTransitionError
from recording_agent import Recording, running
from virtual_clock import VirtualClock

ODD: Final[tuple[Any, ...]] = (
    None, "", "T1", "\ud800", b"x", 0, -1, 5, 12, True, 1.5, float("nan"), 10**30, [], {}, object(), type, "x" * 10_000,
)  # fmt: skip
METHODS: Final = (
    "start schedule run wait wait_resources suspend resume complete ready fail shutdown recover complete_recovery"
    " fail_recovery safe_point request_preemption force_preemption on_control can_transition_to is_terminal tick"
).split()


def test_ten_thousand_calls_with_odd_arguments_raise_only_what_is_documented() -> None:
    """And the invariants hold after each; the dice are seeded."""
    dice, clock = random.Random(0), VirtualClock()  # noqa: S311 - a test
    agent, seen = Agent("a", clock=clock), set[str]()
    for _ in range(10_000):
        method = dice.choice(METHODS)
        arguments = [dice.choice(ODD) for _ in range(dice.choice([0, 0, 1, 1, 2]))]
        clock.now_ms += dice.choice([0, 0, 0, 1, 1_000, 40_000])
        try:
            if dice.random() < 0.1:
                with agent.non_preemptible(deadline_ms=dice.choice(ODD)):
                    getattr(agent, method)(*arguments)
            else:
                getattr(agent, method)(*arguments)
        except (StateTransitionError, TypeError, ValueError) as error:
            seen.add(type(error).__name__)
        assert [holds.__name__ for holds in runtime.machine.invariants if not holds(agent.record)] == []
    assert seen == {"StateTransitionError", "TypeError", "ValueError"}
    assert agent.failures == ()


def together(*jobs: Callable[[], object]) -> list[BaseException]:
    """Let each job run in a thread of its own, all started at once; return what they raised."""
    start, raised = Barrier(len(jobs)), list[BaseException]()

    def work(job: Callable[[], object]) -> None:
        try:
            start.wait(timeout=30)
            job()
        except BaseException as error:  # noqa: BLE001 - it is reported
            raised.append(error)

    threads = [Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    return raised


def test_two_threads_preempt_while_a_third_runs_and_no_request_is_lost() -> None:
    """Each round both requests come before the safe point, as barriers see to it; then the agent yields once (A16)."""
    rounds, agent = 25, running()
    asked, answered = Barrier(3), Barrier(3)

    def preempt() -> None:
        for n in range(rounds):
            agent.request_preemption(f"round {n}")
            asked.wait(timeout=30)
            answered.wait(timeout=30)

    def work() -> None:
        for _ in range(rounds):
            with agent.non_preemptible():
                asked.wait(timeout=30)
                assert not agent.safe_point()
            assert agent.safe_point()
            agent.suspend()
            assert not agent.safe_point()
            agent.resume()
            agent.run()
            answered.wait(timeout=30)

    assert together(preempt, preempt, work) == []
    assert agent.state_name == "RUNNING"
    assert agent.record.preemption == runtime.Preemption()
    assert [heard[0] for heard in agent.heard].count("on_preempt_request") == 2 * rounds
    assert [heard for heard in agent.heard if heard == ("RUNNING", "SUSPENDED")] == [("RUNNING", "SUSPENDED")] * rounds


def test_of_two_threads_that_finish_the_same_task_one_wins() -> None:
    """pytransitions/transitions#640: a transition is taken whole, by one; the other is refused (A12)."""
    for _ in range(25):
        agent = running()
        raised = together(agent.complete, partial(agent.fail, "x"))
        assert [type(error) for error in raised] == [StateTransitionError]
        assert agent.state_name in {"COMPLETED", "FAILED"}
        assert (agent.failure_reason == "x") == (agent.state_name == "FAILED")
        assert len(agent.heard) == 1


def test_sections_of_two_threads_are_told_apart() -> None:
    """Leaving ends the caller's own section, in any order (A18)."""
    agent = running()
    agent.request_preemption("now")
    inside, left = Barrier(2), Barrier(2)

    def first() -> None:
        with agent.non_preemptible():
            inside.wait(timeout=30)
        left.wait(timeout=30)

    def second() -> None:
        with agent.non_preemptible():
            inside.wait(timeout=30)
            left.wait(timeout=30)
            assert not agent.safe_point()

    assert together(first, second) == []
    assert agent.safe_point()


def test_threads_that_retire_an_agent_retire_it_once() -> None:
    """One entry in the audit (A9)."""
    audited: list[LifecycleEvent] = []
    agent = Recording(audit=audited.append)
    assert together(agent.retire, agent.retire, agent.retire) == []
    assert len(audited) == 1
