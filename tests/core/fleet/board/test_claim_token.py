"""The token of a claim: no two are alike, and all that follows from a claim has the right one."""

from hypothesis import given
from hypothesis import strategies as st

from board_hand import ask, make, opened
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.board.claim_token import KEY_CHARS, TOKEN_BYTES, token_of
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Opened

KEYS = st.text(st.sampled_from("0123456789abcdef"), min_size=KEY_CHARS, max_size=KEY_CHARS)
CLAIMS = st.tuples(KEYS, st.text(min_size=1, max_size=64), st.integers(0, 10_000))


@given(CLAIMS, CLAIMS)
def test_no_two_claims_have_the_same_token(one: tuple[str, str, int], other: tuple[str, str, int]) -> None:
    """Neither of one task, nor of one number, nor of one log."""
    assert (token_of(*one) == token_of(*other)) is (one == other)
    assert len(token_of(*one)) == 2 * TOKEN_BYTES


def test_without_a_key_there_is_no_token() -> None:
    """A fleet in a check, or in a simulation, has none."""
    assert token_of("", "T1", 1) == ""


def test_a_session_is_told_the_token_of_its_claim_and_parts_have_the_key_of_the_whole() -> None:
    """What the board hands to a worker is what the board asks for; a part's session may speak of the part."""
    of = ask(opened(make("T1", most_subtasks=2, key="k")))
    (brief,) = [event.brief for _, _, event in of.told() if isinstance(event, assignment.Assigned)]
    assert (brief.task, brief.token) == ("T1", token_of("k", "T1", 1))
    parts = (fleet_task.Subtask(), fleet_task.Subtask())
    assert of.must_refuse("task:T1", fleet_task.Split(1, parts)).kind == "illegal"
    of.give("task:T1", fleet_task.Split(1, parts, brief.token))
    assert {of.record(f"task:T1+{n}").key for n in (1, 2)} == {"k"}


def test_the_tasks_of_a_plan_have_its_key() -> None:
    """It is an input: the core draws none."""
    plan = Plan("fleet", (AgentPlan("ann"),), (TaskPlan("T1", "x"),), key="k")
    (_, opened_by), *_ = opening(plan, 0)
    assert isinstance(opened_by.event, Opened)
    first = opened_by.event.records["task:T1"]
    assert isinstance(first, fleet_task.FleetTask)
    assert first.key == "k"
