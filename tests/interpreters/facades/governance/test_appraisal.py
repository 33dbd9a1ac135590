"""Document 004's assessments of agents through its own interface."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from lifefold.core.policy.access import AccessLevel, Capabilities
from lifefold.interpreters.facades.governance import (
    AgentState,
    AgentStateThresholds,
    GraduatedAccess,
    TimeoutEstimate,
    classify_agent_state,
    estimate_timeout,
)

MAPPING: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "starting, age < 60 s": ({"status": "starting", "started_at": 1_000, "now": 1_059}, "SPAWNING"),
    "starting, age > 60 s": ({"status": "starting", "started_at": 1_000, "now": 1_060.1}, "DEAD"),
    "working, heard of": (
        {"status": "working", "started_at": 0, "now": 9_000, "last_heartbeat": 8_701, "pid": 7},
        "RUNNING",
    ),
    "working, silent": (
        {"status": "working", "started_at": 0, "now": 9_000, "last_heartbeat": 8_699, "pid": 7},
        "STALLED",
    ),
    "merging": ({"status": "merging", "now": 10, "pid": 7}, "MERGING"),
    "committing": ({"status": "committing", "now": 10, "pid": 7}, "MERGING"),
    "pushing": ({"status": "pushing", "now": 10, "pid": 7}, "MERGING"),
    "idle": ({"status": "idle", "now": 10, "pid": 7}, "IDLE"),
    "dead": ({"status": "dead", "now": 10, "pid": 7}, "DEAD"),
    "unclassified": ({"status": "dreaming", "now": 10, "pid": 7}, "UNKNOWN"),
}
"""Document 004, "Mapping to Core FSM States"; strictly more than the threshold (E29)."""


@pytest.mark.parametrize("line", MAPPING)
def test_an_agent_is_shown_as_the_document_maps_it(line: str) -> None:
    """Document 004, "Mapping to Core FSM States" (E30)."""
    metadata, shown = MAPPING[line]
    assert classify_agent_state(**metadata) == shown


def test_the_thresholds_are_the_documents_and_can_be_set() -> None:
    """Document 004: stall threshold 300 s, spawn timeout 60 s."""
    assert AgentStateThresholds() == (300.0, 60.0)
    eager = AgentStateThresholds(stall_threshold_s=1, spawn_timeout_s=0.5)
    assert classify_agent_state("running", pid=1, started_at=0, now=1.001, thresholds=eager) is AgentState.STALLED
    assert classify_agent_state("claimed", started_at=0, now=0.501, thresholds=eager) is AgentState.DEAD


def test_the_present_is_meant_if_no_time_is_given() -> None:
    """By the wall clock."""
    assert classify_agent_state("starting", started_at=time.time()) is AgentState.SPAWNING
    assert classify_agent_state("starting", started_at=time.time() - 100) is AgentState.DEAD


@pytest.mark.parametrize(("scope", "minutes"), [("small", 15), ("medium", 30), ("large", 60), ("XL", 120)])
def test_a_scope_has_the_documents_time(scope: str, minutes: int) -> None:
    """Document 004, "Adaptive Timeout"."""
    assert estimate_timeout(scope) == TimeoutEstimate(minutes * 60.0, 0.5)


def test_an_unknown_scope_is_refused() -> None:
    """It is not taken for a medium one."""
    with pytest.raises(ValueError, match="scope must be one of small, medium, large, xl, not 'enormous'"):
        estimate_timeout("enormous")


@pytest.mark.parametrize("status", ["starting", "claimed", "spawning"])
@pytest.mark.parametrize("pid", [None, 1])
def test_a_session_whose_start_is_not_known_is_not_overdue(status: str, pid: int | None) -> None:
    """It did not start in 1970: it is SPAWNING, and one that runs is RUNNING."""
    assert classify_agent_state(status, pid=pid) is AgentState.SPAWNING
    assert classify_agent_state("running", pid=1) is AgentState.RUNNING
    assert classify_agent_state("running", pid=1, last_heartbeat=1.0, now=1_000.0) is AgentState.STALLED


def test_history_is_given_in_seconds() -> None:
    """Role, status, duration (E33)."""
    assert estimate_timeout("small", role="coder", history=[("coder", "done", 1_000.0)]) == (1_500.0, 0.8)
    assert estimate_timeout("small", "low", "haiku", owned_files=2).timeout_s == 375


def test_an_unknown_agent_begins_with_restricted_permissions() -> None:
    """Document 004, "Graduated Access Control": they expand as it proves reliable (E34)."""
    access = GraduatedAccess({("done", "closed"): AccessLevel.PROBATIONARY})
    assert access.level("a") is AccessLevel.UNTRUSTED
    assert access.capabilities("a") == Capabilities(write=False, network=False, max_files=0, folders=("docs/",))
    assert not access.may("a", "done", "closed")
    assert access.record_success("a") is AccessLevel.PROBATIONARY
    assert access.may("a", "done", "closed")
    assert access.may("b", "open", "claimed")


def test_a_trust_level_rises_and_falls() -> None:
    """Failure is neutral, a violation demotes and blocks, a hand forgives (E35)."""
    access = GraduatedAccess()
    for _ in range(3):
        access.record_success("a")
    assert access.record_failure("a") is AccessLevel.TRUSTED
    assert access.record_violation("a") is AccessLevel.PROBATIONARY
    assert access.record_success("a") is AccessLevel.PROBATIONARY
    assert access.promote("a") is AccessLevel.TRUSTED
    assert access.demote("a") is AccessLevel.PROBATIONARY
    assert (access.trust("a").successes, access.trust("a").violations) == (4, 0)


def test_no_success_is_lost_between_threads() -> None:
    """Each is recorded."""
    access = GraduatedAccess()

    def work() -> None:
        for _ in range(500):
            access.record_success("a")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert access.trust("a").successes == 2_000


def test_an_empty_name_earns_no_trust() -> None:
    """An agent without a name is at the lowest level, and stays there: all agents without one would share it."""
    access = GraduatedAccess()
    assert access.level("") is AccessLevel.UNTRUSTED
    for call in (access.record_success, access.record_violation, access.promote, access.demote):
        with pytest.raises(ValueError, match="agent_id must not be empty"):
            call("")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"started_at": "now"}, "started_at must be a number of seconds, not str"),
        ({"started_at": True}, "started_at must be a number of seconds, not bool"),
        ({"last_heartbeat": float("nan")}, "last_heartbeat must be within 100000000000 s, not nan"),
        ({"now": 10**12}, "now must be within 100000000000 s, not 1000000000000"),
        ({"pid": "7"}, "pid must be an int, not str"),
        ({"pid": -1}, "pid must be between 0 and"),
        ({"thresholds": AgentStateThresholds(stall_threshold_s=True)}, "stall_threshold_s must be a number of seconds"),
    ],
)
def test_a_judgement_of_nonsense_is_refused_by_its_name(given: dict[str, Any], said: str) -> None:
    """The message names the wrong value, and the accepted ones."""
    with pytest.raises((TypeError, ValueError), match=said):
        classify_agent_state("working", **given)


@pytest.mark.parametrize("run", [5, ("role",), ("role", "done", "long"), ("role", "done", 1.0, 2), (5, "done", 1.0)])
def test_a_past_run_has_three_parts(run: Any) -> None:
    """What is not one says which it is."""
    with pytest.raises((TypeError, ValueError), match=r"history, run 2"):
        estimate_timeout(history=[("role", "done", 1.0), run])


def test_thresholds_are_a_pair_of_times() -> None:
    """Whatever else is refused."""
    odd: Any
    for odd in (5, None, "ab", (1.0, 2.0)):
        with pytest.raises(TypeError):
            classify_agent_state("idle", thresholds=odd)
    with pytest.raises(ValueError, match="must be at least 0"):
        classify_agent_state("idle", thresholds=AgentStateThresholds(-1))


ODD: Final[list[Any]] = [
    None, 0, -1, 2.5, 10**400, float("nan"), float("inf"), "", "large", "high", "\ud800", [], {}, object(), True,
    [("coder", "done", 5)], [("coder",)],
]  # fmt: skip


def test_ten_thousand_calls_with_odd_arguments_raise_nothing_undocumented() -> None:
    """The seed is fixed, so a failure is found again."""
    chance = random.Random(7)  # noqa: S311 - a fixed seed
    access = GraduatedAccess()
    named: dict[Callable[..., Any], str] = {
        classify_agent_state: "pid started_at last_heartbeat now",
        estimate_timeout: "scope complexity model role owned_files history",
        access.record_success: "",
        access.level: "",
        access.may: "",
    }
    done = 0
    for _ in range(10_000):
        call = chance.choice(list(named))
        given = {name: chance.choice(ODD) for name in named[call].split() if chance.random() < 0.3}
        first = [] if call is estimate_timeout else [chance.choice(ODD)]
        more = [chance.choice(ODD), chance.choice(ODD)] if call == access.may else []
        try:
            call(*first, *more, **given)
            done += 1
        except (TypeError, ValueError):
            pass
    assert done > 500
