"""The adapter of the Agent Client Protocol reads the lines of its client, also those of real programs."""

import json
from collections.abc import Mapping

import pytest

from agent_outcomes import limits, works
from agent_recordings import recordings
from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import (
    Brief,
    Conversation,
    ConversationBegan,
    Cost,
    Counted,
    Ended,
    Fact,
    PermissionDenied,
    Permissions,
    Said,
    Spent,
    Tokens,
    Work,
    WorkStarted,
    adapter_of,
)
from lifefold.interpreters.testing import AdapterBench, AdapterConformance
from lifefold.interpreters.testing.adapters import read

ACP = adapter_of("acp")

UNASKED = "there is no operator to ask: this session has no claim of a fleet"

OUTCOMES = {
    "claude-continued": (Outcome.SUCCESS, "done"),
    "claude-denied": (Outcome.DENIED, f"edit: {UNASKED}"),
    "claude-failing-command": (Outcome.SUCCESS, "done"),
    "claude-killed": (Outcome.FAILED, "the turn was cancelled"),
    "claude-limit": (Outcome.LIMITED, "API Error: Request rejected (429)"),
    "claude-login": (Outcome.LOGIN_REFUSED, "Authentication required"),
    "claude-lost-conversation": (Outcome.CONVERSATION_LOST, "Resource not found"),
    "claude-permitted": (Outcome.SUCCESS, "done"),
    "claude-resumed": (Outcome.SUCCESS, "done"),
    "claude-success": (Outcome.SUCCESS, "done"),
    "claude-too-long": (Outcome.PROMPT_TOO_LONG, "Prompt is too long"),
    "codex-continued": (Outcome.SUCCESS, "done"),
    "codex-failing-command": (Outcome.SUCCESS, "done"),
    "codex-killed": (Outcome.CRASHED, "ended with status 1, without a result"),
    "codex-limit": (Outcome.LIMITED, "Internal error: You"),
    "codex-login": (Outcome.LOGIN_REFUSED, "Authentication required"),
    "codex-lost-conversation": (Outcome.CONVERSATION_LOST, "Internal error: no rollout found"),
    "codex-read-only": (Outcome.SUCCESS, "done"),
    "codex-resumed": (Outcome.SUCCESS, "done"),
    "codex-success": (Outcome.SUCCESS, "done"),
    "codex-written": (Outcome.SUCCESS, "done"),
    "gemini-denied": (Outcome.DENIED, f"edit: {UNASKED}"),
    "gemini-lost-conversation": (Outcome.CONVERSATION_LOST, "Internal error: Invalid session identifier"),
    "gemini-permitted": (Outcome.SUCCESS, "done"),
    "gemini-success": (Outcome.SUCCESS, "done"),
    "opencode-continued": (Outcome.SUCCESS, "done"),
    "opencode-denied": (Outcome.DENIED, f"edit: {UNASKED}"),
    "opencode-failing-command": (Outcome.SUCCESS, "done"),
    "opencode-killed": (Outcome.CRASHED, "ended with status 1, without a result"),
    "opencode-limit": (Outcome.LIMITED, "The usage limit has been reached"),
    "opencode-login": (Outcome.LOGIN_REFUSED, "Incorrect API key provided: none."),
    "opencode-lost-conversation": (Outcome.CONVERSATION_LOST, "OpenCode service failure"),
    "opencode-permitted": (Outcome.SUCCESS, "done"),
    "opencode-resumed": (Outcome.SUCCESS, "done"),
    "opencode-success": (Outcome.SUCCESS, "done"),
    "opencode-too-long": (Outcome.PROMPT_TOO_LONG, "Session too large to compact"),
    "opencode-written": (Outcome.SUCCESS, "done"),
}


def bench() -> AdapterBench:
    """Return the adapter with its recordings."""
    return AdapterBench(ACP, tuple(recordings("acp").values()))


class TestAcp(AdapterConformance):
    @pytest.fixture
    def bench(self) -> AdapterBench:
        return bench()


def session(*lines: Mapping[str, object], status: int | None = 0) -> tuple[Ended, tuple[Fact, ...]]:
    """Return the end and the facts of a session of these lines."""
    state, facts = read(ACP, [json.dumps(each).encode() for each in lines])
    return ACP.finish(state, status), facts


def of_recording(name: str) -> tuple[Ended, tuple[Fact, ...]]:
    """Return the end and the facts of a recording."""
    state, facts = read(ACP, recordings("acp")[name].lines)
    return ACP.finish(state, recordings("acp")[name].status), facts


def totals(facts: tuple[Fact, ...]) -> list[tuple[Counted, Cost]]:
    """Return the totals."""
    return [(each.counted, each.total) for each in facts if isinstance(each, Spent)]


def test_every_recording_has_an_outcome() -> None:
    assert sorted(recordings("acp")) == sorted(OUTCOMES)


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_recorded_session_ends_as_its_agent_says(name: str) -> None:
    outcome, reason = OUTCOMES[name]
    end, _ = of_recording(name)
    assert end.outcome is outcome
    assert end.reason.startswith(reason)


def test_opencode_tells_the_money_of_the_conversation_and_gemini_the_tokens_of_the_session() -> None:
    """The total after a resume contains the one before it."""
    (_, first), (_, resumed) = (totals(of_recording(f"opencode-{each}")[1])[-1] for each in ("success", "resumed"))
    assert (first.microusd, resumed.microusd) == (1_160, 2_320)
    assert totals(of_recording("gemini-permitted")[1])[-1] == (Counted.SESSION, Cost(Tokens(input=180, output=10)))


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("claude-permitted", Cost(Tokens(200, 80, output=14), 1_644)),
        ("codex-written", Cost(Tokens(400, 2000, output=14))),
    ],
)
def test_programs_for_claude_and_codex_tell_the_tokens_of_the_answers(name: str, total: Cost) -> None:
    """Two answers each. That of Claude Code has money, too, with that of a title."""
    assert totals(of_recording(name)[1])[-1][1] == total


def test_programs_for_claude_and_codex_tell_what_a_tool_is_used_on() -> None:
    """Also if the model has not written the input of the tool when it is announced."""
    begun = [
        each
        for name in ("claude-permitted", "codex-written")
        for each in of_recording(name)[1]
        if isinstance(each, WorkStarted)
    ]
    assert [(each.name, each.subject) for each in begun] == [
        ("edit", "made.txt"),
        ("execute", "printf %s 'hello ' > made.txt"),
    ]


def test_claude_tells_the_money_of_the_conversation_through_the_protocol() -> None:
    """Also after a session that was ended in the middle of a turn, which told none: the next total has its money."""
    first, resumed, continued = (
        totals(of_recording(f"claude-{each}")[1])[-1] for each in ("success", "resumed", "continued")
    )
    assert [counted for counted, _ in (first, resumed, continued)] == [Counted.CONVERSATION] * 3
    assert [cost.microusd for _, cost in (first, resumed, continued)] == [1_096, 1_513, 1_930]
    assert totals(of_recording("claude-killed")[1]) == []


def test_the_end_of_a_limit_is_told_by_codex_and_not_by_claude() -> None:
    (until_ms, _), (unknown, _) = (limits(of_recording(f"{each}-limit")[1])[-1] for each in ("codex", "claude"))
    assert until_ms is not None
    assert unknown is None


def test_a_limit_that_opencode_logs_is_a_fact_while_its_session_runs() -> None:
    assert limits(of_recording("opencode-limit")[1]) == [(None, "")]


def test_a_tool_is_known_by_its_kind() -> None:
    assert works(of_recording("opencode-written")[1]) == [("edit", True)]
    assert PermissionDenied("call_2", "edit", UNASKED) in of_recording("opencode-denied")[1]


def test_a_tool_is_told_with_what_it_is_used_on() -> None:
    _, facts = session(
        {"acp": "tool", "id": "t1", "kind": "execute", "subject": "pytest -q"}, {"acp": "tool", "id": "t2"}
    )
    assert facts == (WorkStarted(Work.TOOL, "t1", "execute", "pytest -q"), WorkStarted(Work.TOOL, "t2", "other"))


def test_a_total_with_money_has_the_tokens_that_the_conversation_was_charged_before() -> None:
    """So a budget of tokens is charged the difference, which is what the session has used."""
    began = {"acp": "conversation", "id": "c1", "input": 100, "output": 5}
    used = {"acp": "used", "turn": 1, "input": 90, "cache_read": 10, "output": 7}
    _, facts = session(began, {"acp": "cost", "amount": 0.02, "currency": "USD"}, used)
    assert totals(facts) == [
        (Counted.CONVERSATION, Cost(Tokens(input=100, output=5), 20_000)),
        (Counted.CONVERSATION, Cost(Tokens(190, 10, 0, 12), 20_000)),
    ]


def test_tokens_without_money_are_those_of_the_session_and_of_all_its_turns() -> None:
    began = {"acp": "conversation", "id": "c1", "input": 100, "output": 5}
    turns = [{"acp": "used", "turn": each, "input": 10, "output": 1} for each in (1, 2, 2)]
    _, facts = session(began, *turns)
    assert totals(facts)[-1] == (Counted.SESSION, Cost(Tokens(input=20, output=2)))


def test_another_currency_is_no_cost() -> None:
    assert session({"acp": "cost", "amount": 2, "currency": "EUR"})[1] == ()


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("end_turn", Outcome.SUCCESS),
        ("max_tokens", Outcome.FAILED),
        ("max_turn_requests", Outcome.TURN_LIMIT),
        ("refusal", Outcome.FAILED),
        ("cancelled", Outcome.FAILED),
        ("tired", Outcome.FAILED),
    ],
)
def test_a_turn_ends_a_session_well_only_if_the_agent_has_finished_it(reason: str, outcome: Outcome) -> None:
    end, _ = session({"acp": "text", "text": "so far"}, {"acp": "turn_over", "reason": reason})
    assert end.outcome is outcome
    assert end.reason


def test_only_the_last_turn_counts() -> None:
    """A turn may be cancelled by a nudge, and the next one goes on."""
    lines = [{"acp": "turn_over", "reason": "cancelled"}, {"acp": "turn"}]
    assert session(*lines, status=1)[0].outcome is Outcome.CRASHED
    assert session(*lines, {"acp": "turn_over", "reason": "end_turn"})[0].outcome is Outcome.SUCCESS


def test_a_failure_of_the_client_has_its_own_outcome_or_the_one_that_its_words_mean() -> None:
    lost = {"acp": "failed", "text": "Resource not found", "outcome": "conversation_lost"}
    assert session(lost, status=1)[0] == Ended(Outcome.CONVERSATION_LOST, "Resource not found")
    words = {"acp": "failed", "text": "You exceeded your quota", "outcome": None}
    assert session(words, status=1)[0].outcome is Outcome.LIMITED


def test_texts_and_the_conversation_are_facts() -> None:
    _, facts = session(
        {"acp": "conversation", "id": "c1"}, {"acp": "thought", "text": "hm"}, {"acp": "text", "text": "hi"}
    )
    assert facts == (ConversationBegan("c1"), Said("hi"))


def test_the_arguments_of_the_client_say_all_of_a_brief() -> None:
    """The program is the first word, which a session replaces; its own arguments come after ``--``."""
    brief = Brief("--do", "large", Permissions.EDIT, ("acp", "--x"), mcp_config="{}", mcp_server="lifefold")
    talk = Conversation("c1", begun=True, charged=Tokens(input=100, output=5))
    assert ACP.argv(brief, talk) == (
        "acp", "--resume=c1", "--charged=100,5", "--model=large", "--permissions=edit", "--mcp", "--prompt=--do",
        "--", "acp", "--x",
    )  # fmt: skip
