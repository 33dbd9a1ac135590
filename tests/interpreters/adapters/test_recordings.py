"""The recorded sessions of real programs have the outcomes, costs and limits that they had."""

import pytest

from agent_recordings import recordings
from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import (
    ConversationBegan,
    Cost,
    Counted,
    Ended,
    Fact,
    Limited,
    ModelCost,
    Now,
    PermissionDenied,
    Said,
    Spent,
    Tokens,
    Work,
    WorkEnded,
    WorkStarted,
    adapter_of,
)
from lifefold.interpreters.testing.adapters import read

RESETS_AT_MS = 1_795_600_800_000
NOW = Now(1_795_512_000_000)

OUTCOMES = {
    "claude": {
        "asked-and-allowed": (Outcome.SUCCESS, "done"),
        "budget": (Outcome.BUDGET_SPENT, "Reached maximum budget ($0.0001)"),
        "compacted": (Outcome.SUCCESS, ""),
        "credit": (Outcome.OUT_OF_CREDIT, "Credit balance is too low"),
        "denied": (Outcome.DENIED, "Write: Claude requested permissions to write to /repo/made.txt, but you haven't "),
        "denied-2.1.197": (Outcome.DENIED, "Write was refused"),
        "failing-command": (Outcome.SUCCESS, "done"),
        "killed": (Outcome.CRASHED, "ended with status 143, without a result"),
        "limit": (Outcome.LIMITED, "You've hit your limit · resets Nov 25, 10am (UTC)"),
        "login": (Outcome.LOGIN_REFUSED, "Invalid API key · Fix external API key"),
        "lost-conversation": (Outcome.CONVERSATION_LOST, "No conversation found with session ID: 5b0f8f4e"),
        "overloaded": (Outcome.OVERLOADED, "API Error: 529 Overloaded. This is a server-side issue"),
        "rate": (Outcome.LIMITED, "API Error: Request rejected (429) · This request would exceed your account's rate "),
        "resumed": (Outcome.SUCCESS, "done"),
        "resumed-2.1.197": (Outcome.SUCCESS, "done"),
        "success": (Outcome.SUCCESS, "done"),
        "taken-conversation": (Outcome.CONVERSATION_LOST, "Session ID 5b0f8f4e-3c1d-4c58-9a51-000000000001 is already"),
        "too-long": (Outcome.PROMPT_TOO_LONG, "Prompt is too long · the request is ~210000 tokens"),
        "turns": (Outcome.TURN_LIMIT, "Reached maximum number of turns (1)"),
        "written": (Outcome.SUCCESS, "done"),
    },
    "codex": {
        "credit": (Outcome.OUT_OF_CREDIT, "Quota exceeded. Check your plan and billing details."),
        "failing-command": (Outcome.SUCCESS, "done"),
        "killed": (Outcome.CRASHED, "ended by signal 15, without a result"),
        "limit": (Outcome.LIMITED, "You’ve hit your usage limit."),  # noqa: RUF001  # as Codex writes it
        "login": (Outcome.LOGIN_REFUSED, "unexpected status 401 Unauthorized: Incorrect API key provided"),
        "lost-conversation": (Outcome.CONVERSATION_LOST, "Error: thread/resume: thread/resume failed: no rollout found"),
        "overloaded": (Outcome.OVERLOADED, "Selected model is at capacity. Please try a different model."),
        "rate": (Outcome.LIMITED, "exceeded retry limit, last status: 429 Too Many Requests"),
        "read-only": (Outcome.SUCCESS, "done"),
        "resumed": (Outcome.SUCCESS, "done"),
        "success": (Outcome.SUCCESS, "done"),
        "too-long": (Outcome.PROMPT_TOO_LONG, "Codex ran out of room in the model's context window."),
        "written": (Outcome.SUCCESS, "done"),
    },
    "opencode": {
        "credit": (Outcome.OUT_OF_CREDIT, "You exceeded your current quota, please check your plan and billing details."),
        "denied": (Outcome.DENIED, "write: The user rejected permission to use this specific tool call."),
        "failing-command": (Outcome.SUCCESS, "done"),
        "killed": (Outcome.CRASHED, "ended by signal 15, without a result"),
        "limit": (Outcome.LIMITED, "The usage limit has been reached"),
        "login": (Outcome.LOGIN_REFUSED, "Incorrect API key provided: none."),
        "lost-conversation": (Outcome.CONVERSATION_LOST, "Error: Session not found"),
        "overloaded": (Outcome.OVERLOADED, "The server is overloaded. Try again later."),
        "rate": (Outcome.LIMITED, "Rate limit reached for mock in organization org-1."),
        "resumed": (Outcome.SUCCESS, "done"),
        "success": (Outcome.SUCCESS, "done"),
        "too-long": (Outcome.PROMPT_TOO_LONG, "This model's maximum context length is 128000 tokens."),
        "written": (Outcome.SUCCESS, "done"),
    },
    "gemini": {
        "credit": (Outcome.OUT_OF_CREDIT, "Billing is not enabled for this project."),
        "failing-command": (Outcome.SUCCESS, "done"),
        "killed": (Outcome.CRASHED, "ended with status 0, without a result"),
        "limit": (Outcome.LIMITED, "You exceeded your current quota: requests per day. Limit: 100."),
        "login": (Outcome.LOGIN_REFUSED, "API key not valid. Please pass a valid API key."),
        "lost-conversation": (Outcome.CONVERSATION_LOST, "Error resuming session: Invalid session identifier"),
        "not-offered": (Outcome.SUCCESS, "done"),
        "overloaded": (Outcome.OVERLOADED, "The model is overloaded. Please try again later."),
        "rate": (Outcome.LIMITED, "Resource has been exhausted (e.g. check quota)."),
        "resumed": (Outcome.SUCCESS, "done"),
        "success": (Outcome.SUCCESS, "done"),
        "too-long": (Outcome.PROMPT_TOO_LONG, "The input token count (2100000) exceeds the maximum number of tokens"),
        "turns": (Outcome.TURN_LIMIT, "Reached max session turns for this session."),
        "written": (Outcome.SUCCESS, "done"),
    },
    "aider": {
        "credit": (Outcome.OUT_OF_CREDIT, "You exceeded your current quota, please check your plan and billing details."),
        "killed": (Outcome.CRASHED, "ended by signal 15, without a result"),
        "limit": (Outcome.LIMITED, "The usage limit has been reached"),
        "login": (Outcome.LOGIN_REFUSED, "Incorrect API key provided: none. The API provider is not able to"),
        "overloaded": (Outcome.OVERLOADED, "The server is overloaded. Try again later. The API provider's servers are"),
        "resumed": (Outcome.SUCCESS, "done"),
        "success": (Outcome.SUCCESS, "done"),
        "too-long": (Outcome.PROMPT_TOO_LONG, "Model openai/gpt-4o has hit a token limit!"),
        "written": (Outcome.SUCCESS, ""),
    },
}
"""The outcome of each recording, and how its reason begins."""


def facts_of(program: str, name: str) -> tuple[Fact, ...]:
    """Return the facts of a recording, its end among them."""
    adapter, recording = adapter_of(program), recordings(program)[name]
    state, found = adapter.initial, list[Fact]()
    for line in recording.lines:
        state, facts = adapter.read(state, line, NOW)
        found.extend(facts)
    return (*found, adapter.finish(state, recording.status))


def last_total(program: str, name: str, counted: Counted) -> Cost | None:
    """Return the last total of a recording of one coverage."""
    totals = [each for each in facts_of(program, name) if isinstance(each, Spent) and each.counted is counted]
    return totals[-1].total if totals else None


@pytest.mark.parametrize(("program", "name"), [(program, name) for program in OUTCOMES for name in OUTCOMES[program]])
def test_a_recorded_session_has_its_outcome_and_the_sentence_of_the_agent(program: str, name: str) -> None:
    outcome, reason = OUTCOMES[program][name]
    end = facts_of(program, name)[-1]
    assert isinstance(end, Ended)
    assert (end.outcome, end.reason[: len(reason)]) == (outcome, reason)


@pytest.mark.parametrize("program", OUTCOMES)
def test_every_recording_is_expected(program: str) -> None:
    assert sorted(recordings(program)) == sorted(OUTCOMES[program])


@pytest.mark.parametrize("program", ["claude", "gemini"])
def test_a_chosen_conversation_is_named_by_the_new_and_by_the_resumed_session(program: str) -> None:
    began = ConversationBegan("5b0f8f4e-3c1d-4c58-9a51-000000000001")
    for name in ("success", "resumed"):
        assert [each for each in facts_of(program, name) if isinstance(each, ConversationBegan)] == [began]


@pytest.mark.parametrize("program", ["codex", "opencode"])
def test_a_resumed_session_names_the_conversation_of_the_first(program: str) -> None:
    first, resumed = facts_of(program, "success")[0], facts_of(program, "resumed")[0]
    assert isinstance(first, ConversationBegan)
    assert first.id
    assert resumed == first


TOTALS = {
    ("claude", "success", Counted.CONVERSATION): Cost(Tokens(100, 40, 0, 7), 417),
    ("claude", "resumed", Counted.CONVERSATION): Cost(Tokens(200, 80, 0, 14), 834),
    ("claude", "resumed-2.1.197", Counted.SESSION): Cost(Tokens(100, 40, 0, 7), 417),
    ("claude", "resumed-2.1.197", Counted.CONVERSATION): None,
    ("claude", "killed", Counted.SESSION): Cost(Tokens(100, 40, 0, 1)),
    ("claude", "written", Counted.CONVERSATION): Cost(Tokens(200, 80, 0, 14), 834),
    ("codex", "success", Counted.CONVERSATION): Cost(Tokens(200, 1000, 0, 7)),
    ("codex", "resumed", Counted.CONVERSATION): Cost(Tokens(400, 2000, 0, 14)),
    ("codex", "killed", Counted.CONVERSATION): None,
    ("opencode", "success", Counted.SESSION): Cost(Tokens(1100, 0, 0, 30), 1160),
    ("opencode", "resumed", Counted.SESSION): Cost(Tokens(1100, 0, 0, 30), 1160),
    ("opencode", "written", Counted.SESSION): Cost(Tokens(2200, 0, 0, 60), 2320),
    ("opencode", "killed", Counted.SESSION): Cost(Tokens(1100, 0, 0, 30), 1160),
    ("gemini", "success", Counted.SESSION): Cost(Tokens(60, 30, 0, 5)),
    ("gemini", "resumed", Counted.SESSION): Cost(Tokens(60, 30, 0, 5)),
    ("gemini", "written", Counted.SESSION): Cost(Tokens(120, 60, 0, 10)),
    ("aider", "success", Counted.SESSION): Cost(Tokens(1100, 0, 0, 30), 3100),
}
"""The last total of recordings. The service's figures are in tools/recordings/model_service.py."""


@pytest.mark.parametrize(("program", "name", "counted"), TOTALS)
def test_the_cost_of_a_session_is_what_the_service_has_served(program: str, name: str, counted: Counted) -> None:
    assert last_total(program, name, counted) == TOTALS[program, name, counted]


def test_the_cost_of_a_conversation_is_known_by_model() -> None:
    models = [each.models for each in facts_of("claude", "success") if isinstance(each, Spent)][-1]
    assert models == (ModelCost("claude-sonnet-4-5", Cost(Tokens(100, 40, 0, 7), 417)),)


LIMITS = {
    ("claude", "limit"): Limited(RESETS_AT_MS, "five_hour"),
    ("codex", "limit"): Limited(RESETS_AT_MS),
    ("opencode", "limit"): Limited(None),
    ("gemini", "limit"): Limited(None),
    ("aider", "limit"): Limited(None),
    ("claude", "rate"): Limited(None),
    ("codex", "rate"): Limited(None),
    ("opencode", "rate"): Limited(None),
    ("gemini", "rate"): Limited(None),
}


@pytest.mark.parametrize(("program", "name"), LIMITS)
def test_a_limit_is_told_once_with_its_end_if_the_agent_names_one(program: str, name: str) -> None:
    found = [each for each in facts_of(program, name) if isinstance(each, Limited)]
    assert [(each.until_ms, each.scope) for each in found] == [
        (LIMITS[program, name].until_ms, LIMITS[program, name].scope)
    ]


@pytest.mark.parametrize("program", ["opencode", "aider"])
def test_a_limit_is_told_while_the_program_still_tries_again(program: str) -> None:
    """The program itself does not end soon, so its session can be ended by the fact."""
    adapter, lines = adapter_of(program), recordings(program)["limit"].lines
    first = next(number for number in range(len(lines)) if any_limit(read(adapter, lines[: number + 1])[1]))
    assert first < len(lines) / 2


def any_limit(facts: tuple[Fact, ...]) -> bool:
    return any(isinstance(each, Limited) for each in facts)


@pytest.mark.parametrize(
    ("program", "tool"),
    [
        ("claude", "Write"),
        ("codex", "command_execution"),
        ("opencode", "write"),
        ("gemini", "write_file"),
        ("aider", "edit"),
    ],
)
def test_a_tool_begins_and_ends(program: str, tool: str) -> None:
    found = [each for each in facts_of(program, "written") if isinstance(each, WorkStarted | WorkEnded)]
    assert [type(each) for each in found] == [WorkStarted, WorkEnded]
    started, ended = found
    assert isinstance(started, WorkStarted)
    assert (started.work, started.name, started.id) == (Work.TOOL, tool, ended.id)
    assert isinstance(ended, WorkEnded)
    assert ended.ok


@pytest.mark.parametrize(("program", "tool"), [("claude", "Write"), ("opencode", "write")])
def test_a_refused_tool_is_a_fact_and_no_success(program: str, tool: str) -> None:
    assert recordings(program)["denied"].status == 0
    denied = [each for each in facts_of(program, "denied") if isinstance(each, PermissionDenied)]
    assert [each.tool for each in denied] == [tool]
    assert denied[0].reason


def test_a_tool_that_succeeds_after_a_refusal_is_no_longer_denied() -> None:
    """The agent asked a second time, or an operator allowed it."""
    adapter = adapter_of("claude")
    denied, written = recordings("claude")["denied"].lines, recordings("claude")["written"].lines
    again = tuple(line.replace(b'"call_1"', b'"call_9"').replace(b'"answer_', b'"again_') for line in written[1:])
    state, _ = read(adapter, (*denied[:-1], *again))
    assert adapter.finish(state, 0).ok


def test_a_compaction_is_a_phase_of_its_own() -> None:
    found = [each for each in facts_of("claude", "compacted") if isinstance(each, WorkStarted | WorkEnded)]
    assert [(type(each), each.work) for each in found] == [(WorkStarted, Work.COMPACTION), (WorkEnded, Work.COMPACTION)]


@pytest.mark.parametrize("program", ["claude", "codex", "opencode", "gemini"])
def test_the_output_of_a_command_is_no_word_of_the_agent(program: str) -> None:
    """The command prints "401 Unauthorized" and fails: the agent is still logged in."""
    assert b"401 Unauthorized" in recordings(program)["failing-command"].output
    end = facts_of(program, "failing-command")[-1]
    assert isinstance(end, Ended)
    assert end.ok


@pytest.mark.parametrize("program", OUTCOMES)
def test_the_answer_of_the_model_is_said(program: str) -> None:
    assert "done" in [each.text for each in facts_of(program, "success") if isinstance(each, Said)]


@pytest.mark.parametrize("program", OUTCOMES)
def test_the_command_line_of_a_recording_is_not_mistaken_for_options(program: str) -> None:
    """The prompt of the resumed session was ``--help``, and the model was asked."""
    assert b"Usage:" not in recordings(program)["resumed"].output
    assert any(isinstance(each, Spent) for each in facts_of(program, "resumed"))
