"""The recorded sessions of real programs have the outcomes, costs and limits that they had."""

import pytest

from agent_outcomes import (
    LIMITS,
    OUTCOMES,
    TOTALS,
    WORKS,
    conversation,
    differences,
    end_of,
    facts_of,
    last_total,
    limits,
    works,
)
from agent_recordings import recordings
from lifefold.interpreters.adapters import (
    Cost,
    Counted,
    ModelCost,
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


@pytest.mark.parametrize(("program", "name"), [(program, name) for program in OUTCOMES for name in OUTCOMES[program]])
def test_a_recorded_session_has_its_outcome_and_the_sentence_of_the_agent(program: str, name: str) -> None:
    outcome, reason = OUTCOMES[program][name]
    end = end_of(facts_of(program, name))
    assert (end.outcome, end.reason[: len(reason)]) == (outcome, reason)


@pytest.mark.parametrize("program", OUTCOMES)
def test_every_recording_is_expected(program: str) -> None:
    assert sorted(recordings(program)) == sorted(OUTCOMES[program])


@pytest.mark.parametrize("program", ["claude", "gemini"])
def test_a_chosen_conversation_is_named_by_the_new_and_by_the_resumed_session(program: str) -> None:
    for name in ("success", "resumed"):
        assert conversation(facts_of(program, name)) == "5b0f8f4e-3c1d-4c58-9a51-000000000001"


@pytest.mark.parametrize("program", ["codex", "opencode"])
def test_a_resumed_session_names_the_conversation_of_the_first(program: str) -> None:
    first = conversation(facts_of(program, "success"))
    assert first
    assert conversation(facts_of(program, "resumed")) == first


@pytest.mark.parametrize(("program", "name", "counted"), TOTALS)
def test_the_cost_of_a_session_is_what_the_service_has_served(program: str, name: str, counted: Counted) -> None:
    assert last_total(facts_of(program, name), counted) == TOTALS[program, name, counted]


def test_the_cost_of_a_conversation_is_known_by_model() -> None:
    models = [each.models for each in facts_of("claude", "success") if isinstance(each, Spent)][-1]
    assert models == (ModelCost("claude-sonnet-4-5", Cost(Tokens(100, 40, 0, 7), 417)),)


@pytest.mark.parametrize(("program", "name"), LIMITS)
def test_a_limit_is_told_once_with_its_end_if_the_agent_names_one(program: str, name: str) -> None:
    assert limits(facts_of(program, name)) == LIMITS[program, name]


@pytest.mark.parametrize("program", ["opencode", "aider"])
def test_a_limit_is_told_while_the_program_still_tries_again(program: str) -> None:
    """The program itself does not end soon, so its session can be ended by the fact."""
    adapter, lines = adapter_of(program), recordings(program)["limit"].lines
    first = next(number for number in range(len(lines)) if limits(read(adapter, lines[: number + 1])[1]))
    assert first < len(lines) / 2


@pytest.mark.parametrize(("program", "name"), WORKS)
def test_a_work_begins_and_ends_with_its_success(program: str, name: str) -> None:
    assert works(facts_of(program, name)) == WORKS[program, name]


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
    assert end_of(facts_of(program, "failing-command")).ok


@pytest.mark.parametrize("program", OUTCOMES)
def test_the_adapter_reads_all_of_its_recordings_as_expected(program: str) -> None:
    """The function that finds deliberate mistakes finds none here."""
    assert differences(program, adapter_of(program)) == []


@pytest.mark.parametrize("program", OUTCOMES)
def test_the_answer_of_the_model_is_said(program: str) -> None:
    assert "done" in [each.text for each in facts_of(program, "success") if isinstance(each, Said)]


@pytest.mark.parametrize("program", OUTCOMES)
def test_the_command_line_of_a_recording_is_not_mistaken_for_options(program: str) -> None:
    """The prompt of the resumed session was ``--help``, and the model was asked."""
    assert b"Usage:" not in recordings(program)["resumed"].output
    assert any(isinstance(each, Spent) for each in facts_of(program, "resumed"))
