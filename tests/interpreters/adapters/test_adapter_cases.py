"""Lines that no recording has: the adapters read them as the programs' own sources and documents say."""

from decimal import Decimal
from itertools import chain

import pytest

from agent_outcomes import facts_of, limits, works
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
    Now,
    PermissionDenied,
    Spent,
    Tokens,
    adapter_of,
    hostile,
    reading,
)
from lifefold.interpreters.adapters.adapter import beginning
from lifefold.interpreters.testing.adapters import read


def session(program: str, *lines: bytes, status: int | None = 0) -> tuple[Ended, tuple[Fact, ...]]:
    """Return the end and the facts of a session."""
    state, facts = read(adapter_of(program), lines)
    return adapter_of(program).finish(state, status), facts


def last_cost(facts: tuple[Fact, ...]) -> Cost:
    """Return the last total."""
    return [each for each in facts if isinstance(each, Spent)][-1].total


def test_a_result_with_an_error_is_a_failure_also_with_exit_status_0() -> None:
    """Older versions of Claude Code end so."""
    line = b'{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1795600800"}'
    end, facts = session("claude", line)
    assert (end.outcome, limits(facts)) == (Outcome.LIMITED, [(1_795_600_800_000, "")])


def test_a_result_with_success_is_none_if_the_process_failed() -> None:
    lines = recordings("claude")["success"].lines
    assert session("claude", *lines, status=1)[0] == Ended(
        Outcome.CRASHED, "ended with status 1, after its result: done"
    )


@pytest.mark.parametrize(
    ("info", "found"),
    [
        (b'"status":"allowed_warning","resetsAt":1795600800', []),
        (b'"status":"rejected","resetsAt":1795600800,"isUsingOverage":true', []),
        (b'"status":"rejected"', [(None, "")]),
        (b'"status":"rejected","resetsAt":"soon","rateLimitType":"seven_day"', [(None, "seven_day")]),
    ],
)
def test_only_a_rejected_account_is_limited(info: bytes, found: list[tuple[int | None, str]]) -> None:
    """An account that pays for more goes on."""
    _, facts = session("claude", b'{"type":"rate_limit_event","rate_limit_info":{' + info + b"}}")
    assert limits(facts) == found


def test_a_compaction_that_fails_is_work_that_failed() -> None:
    _, facts = session(
        "claude",
        b'{"type":"system","subtype":"status","status":"compacting","uuid":"u1"}',
        b'{"type":"system","subtype":"status","status":null,"compact_result":"failed"}',
    )
    assert works(facts) == [("compaction", False)]


def test_a_conversation_that_is_an_option_of_the_program_is_no_conversation() -> None:
    """Any process of an agent can write to its output, and codex has the identifier as a word of its own."""
    _, facts = session("codex", b'{"type":"thread.started","thread_id":"--dangerously-bypass-approvals-and-sandbox"}')
    assert facts == ()


def test_a_declined_command_of_codex_is_a_refusal() -> None:
    item = b'{"id":"item_1","type":"command_execution","command":"rm -r x","status":"declined"}'
    end, facts = session(
        "codex", b'{"type":"item.completed","item":' + item + b"}", b'{"type":"turn.completed","usage":{}}'
    )
    assert PermissionDenied("item_1", "command_execution", "rm -r x") in facts
    assert end == Ended(Outcome.DENIED, "command_execution: rm -r x")


def test_an_error_that_is_followed_by_work_is_no_end() -> None:
    """Codex tries again after a lost connection."""
    error = b'{"type":"error","message":"Reconnecting... 1/5 (stream disconnected, 429)"}'
    lines = recordings("codex")["success"].lines
    assert session("codex", *lines[:-2], error, *lines[-2:])[0].ok
    assert session("codex", *lines[:-2], error, status=-9)[0].outcome is Outcome.LIMITED


EARLIER = Cost(Tokens(output=14), 14_000_000)


def claude_result(total: int, since: int) -> bytes:
    """Return a last line of Claude Code with these output tokens, of the conversation and since the last result."""
    models = b'{"m": {"inputTokens": 1, "outputTokens": %d, "costUSD": %d.1}}'
    usages = (models % (total, total), models % (since, since))
    line = b'{"type": "result", "session_id": "s", "total_cost_usd": %d.1, "modelUsage": %s, '
    return line % (total, usages[0]) + b'"model_usage_since_last_result": %s}' % usages[1]


def test_a_total_of_claude_tells_the_total_before_its_session() -> None:
    """Nothing before a first session, or after a killed one; a second result of a session changes nothing about it."""
    for lines, expected in (
        ([claude_result(7, 7)], [(7, Cost(Tokens(), 0))]),
        ([claude_result(21, 7)], [(21, EARLIER)]),
        ([claude_result(21, 7), claude_result(21, 7)], [(21, EARLIER)]),
        ([claude_result(21, 7), claude_result(22, 1)], [(21, EARLIER), (22, EARLIER)]),
    ):
        _, facts = session("claude", *lines)
        found = [(each.total.tokens.output, each.before) for each in facts if isinstance(each, Spent)]
        assert found == expected


def test_an_older_total_of_claude_is_one_of_its_session() -> None:
    """Version 2.1.197 prints no part since the last result."""
    line = b'{"type": "result", "session_id": "s", "usage": {"output_tokens": 7}}'
    _, facts = session("claude", line)
    assert [(each.counted, each.before) for each in facts if isinstance(each, Spent)] == [(Counted.SESSION, None)]


def test_an_error_in_unknown_words_is_the_reason_of_a_crash() -> None:
    end, _ = session("codex", b'{"type":"error","message":"Reconnecting... 1/5"}', status=-9)
    assert end == Ended(Outcome.CRASHED, "ended by signal 9, without a result: Reconnecting... 1/5")


def test_a_policy_of_gemini_is_a_refusal() -> None:
    end, facts = session(
        "gemini",
        b'{"type":"tool_use","tool_name":"write_file","tool_id":"t1"}',
        b'{"type":"tool_result","tool_id":"t1","status":"error","error":{"type":"policy_violation","message":"No."}}',
        b'{"type":"result","status":"success","stats":{}}',
    )
    assert PermissionDenied("t1", "write_file", "No.") in facts
    assert end == Ended(Outcome.DENIED, "write_file: No.")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(41, Outcome.LOGIN_REFUSED), (42, Outcome.REFUSED_COMMAND), (52, Outcome.REFUSED_COMMAND), (1, Outcome.CRASHED)],
)
def test_gemini_without_a_result_is_judged_by_its_exit_status(status: int, outcome: Outcome) -> None:
    assert session("gemini", b"Error: something else", status=status)[0].outcome is outcome


REFUSALS = [
    ("claude", b"error: unknown option '--fast'"),
    ("claude", b"--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"),
    ("codex", b"error: unexpected argument '--fast' found\n\nUsage: codex exec\n\nFor more information, try '--help'."),
    ("codex", b"Error loading configuration: unknown variant `fast`"),
    ("opencode", b"opencode run [message..]\n\nUnknown argument: fast"),
    ("gemini", b"Unknown arguments: fast, quick"),
    ("aider", b"aider: error: unrecognized arguments: --fast"),
]


@pytest.mark.parametrize(("program", "output"), REFUSALS)
def test_a_program_that_refuses_its_command_line_is_not_tried_again(program: str, output: bytes) -> None:
    """Only before it has begun: later the same words may be those of a tool."""
    end, _ = session(program, *output.splitlines(), status=2)
    assert end.outcome is Outcome.REFUSED_COMMAND
    assert end.reason in output.decode()
    assert session(program, *output.splitlines(), status=-9)[0].outcome is Outcome.CRASHED


def test_the_words_of_a_refused_command_mean_nothing_after_the_beginning() -> None:
    lines = b'{"type":"system","subtype":"init","session_id":"c1"}', b"error: unknown option '--fast'"
    assert session("claude", *lines, status=1)[0].outcome is Outcome.CRASHED


def test_a_sentence_does_not_replace_the_exact_end_of_a_limit() -> None:
    """Claude Code tells the second in an event, and the minute in its last sentence."""
    event = b'{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795512034}}'
    said = b'{"type":"result","is_error":true,"result":"You\'ve hit your limit \xc2\xb7 resets 9:20am (UTC)"}'
    end, facts = session("claude", event, said)
    assert (end.outcome, limits(facts)) == (Outcome.LIMITED, [(1_795_512_034_000, "")])


def test_gemini_tells_a_limit_while_it_tries_again() -> None:
    line = b"Attempt 3 failed: Quota exceeded. Please retry in 34.5s.. Retrying after 5ms..."
    _, facts = session("gemini", line)
    assert len(limits(facts)) == 1
    assert limits(facts)[0][0] is not None


def test_an_answer_of_opencode_that_is_cut_off_is_a_failure() -> None:
    end, _ = session("opencode", b'{"type":"step_finish","part":{"id":"p","reason":"length"}}')
    assert end == Ended(Outcome.FAILED, "the answer exceeds the longest output of the model")


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (adapter_of("aider").argv(Brief("Fix"), Conversation("c-1")), ["c-1"]),
        (adapter_of("aider").argv(Brief("Fix"), Conversation("c-1", begun=True)), ["c-1"]),
        (adapter_of("aider").argv(Brief("Fix"), None), []),
        (("aider", "--chat-history-file=.aider.chat.../../other.md", "--message=Fix"), []),
    ],
)
def test_aider_has_the_conversation_of_its_command_line_once_it_has_begun(
    argv: tuple[str, ...], names: list[str]
) -> None:
    """It prints its name and version then, and no name of a conversation."""
    adapter = adapter_of("aider")
    state, found = beginning(adapter, argv), list[Fact]()
    for line in (b"Warning: Input is not a terminal (fd=0).", b"Aider v0.86.2", b"", b"Aider v0.86.2", b"done"):
        state, facts = adapter.read(state, line, Now(0))
        found += facts
    assert [each.id for each in found if isinstance(each, ConversationBegan)] == names


def test_aider_sums_its_answers_and_joins_its_lines() -> None:
    end, facts = session(
        "aider",
        b"Tokens: 1.1k sent, 2.5k cache write, 3M cache hit, 30 received. Cost: $0.01",
        b"message, $0.01 session.",
        b"more",
        b"Tokens: 900 sent, 5 received. Cost: $0.02 message, $0.03 session.",
    )
    assert end.ok
    assert last_cost(facts) == Cost(Tokens(2_000, 3_000_000, 2_500, 35), 30_000)


def test_the_end_of_aider_is_a_sentence_and_no_line_of_a_change() -> None:
    """A change that is cut off hides nothing of the costs after it."""
    change = (b"```", b"<<<<<<< SEARCH", b"=======", b"hello", b">>>>>>> REPLACE", b"```")
    cost = b"Tokens: 1.1k sent, 30 received. Cost: $0.0031 message, $0.0031 session."
    for lines in (change, change[:4]):
        end, facts = session("aider", b"I greet in made.txt:", *lines, b"", cost)
        assert (end.outcome, end.reason) == (Outcome.SUCCESS, "I greet in made.txt:")
        assert last_cost(facts).tokens.output == 30


def test_aider_sums_the_answers_of_a_session_of_any_length() -> None:
    count = reading.MOST_SEEN + 10
    answers = (b"Tokens: 10 sent, %d received. Cost: $0.01 message, $%d.00 session." % (n, n) for n in range(1, count))
    edits = (b"Applied edit to %d.py" % n for n in range(1, count))
    _, facts = session("aider", *chain.from_iterable(zip(edits, answers, strict=True)))
    received = sum(range(1, count))
    assert last_cost(facts) == Cost(Tokens(10 * (count - 1), output=received), (count - 1) * 1_000_000)
    assert works(facts) == [("edit", True)] * (count - 1)


def test_aider_goes_on_after_an_error_that_passed() -> None:
    lines = (*recordings("aider")["limit"].lines[:-30], *recordings("aider")["success"].lines)
    end, facts = session("aider", *lines)
    assert end.ok
    assert len(limits(facts)) == 1


@pytest.mark.parametrize(
    ("lines", "status", "end"),
    [
        ((b"all done",), 0, Ended(Outcome.SUCCESS, "all done")),
        ((b"no api key",), 1, Ended(Outcome.CRASHED, "exit status 1: no api key", "no api key")),
        (
            (b"Error: invalid api key", b""),
            1,
            Ended(Outcome.LOGIN_REFUSED, "exit status 1: Error: invalid api key", "Error: invalid api key"),
        ),
        ((b"90%\rstop hook",), 2, Ended(Outcome.CRASHED, "exit status 2: stop hook", "stop hook")),
        ((b"x",), 127, Ended(Outcome.CRASHED, "exit status 127 (the program was not found): x", "x")),
        ((b"invalid api key",), -15, Ended(Outcome.CRASHED, "ended by signal 15: invalid api key")),
        ((), None, Ended(Outcome.CRASHED, "ended in an unknown way")),
    ],
)
def test_a_command_is_judged_by_its_exit_status_and_its_last_line(
    lines: tuple[bytes, ...], status: int | None, end: Ended
) -> None:
    assert session("command", *lines, status=status)[0] == end


def test_a_command_reports_its_cost_in_a_form_of_its_own() -> None:
    _, facts = session("command", b'{"lifefold": {"cost_usd": 0.25, "input_tokens": 10, "output_tokens": 2}}')
    assert facts == (Spent("", Cost(Tokens(10, 0, 0, 2), 250_000), Counted.SESSION),)


@pytest.mark.parametrize("program", ["claude", "codex"])
def test_a_command_that_runs_another_agent_has_its_cost(program: str) -> None:
    recording = recordings(program)["resumed"]
    _, facts = session("command", *recording.lines)
    own = [each for each in facts_of(program, "resumed") if isinstance(each, Spent)][-1]
    assert last_cost(facts) == own.total


def test_a_command_without_a_prompt_in_its_arguments_is_left_as_it_is() -> None:
    assert adapter_of("command").argv(Brief("Fix", arguments=("make", "work")), None) == ("make", "work")


@pytest.mark.parametrize(
    ("said", "microusd"),
    [
        ("0.00041700000000000005", 417),
        ("0.0004171", 418),
        (3, 3_000_000),
        ("1000000", 1_000_000_000_000),
        ("1000001", None),
        ("-1", None),
        ("NaN", None),
        ("Infinity", None),
        ("some", None),
        (True, None),
        (None, None),
        (10**400, None),
        (Decimal(1), None),
    ],
)
def test_money_is_rounded_up_to_millionths_without_the_noise_of_binary_fractions(
    said: object, microusd: int | None
) -> None:
    assert hostile.microusd(said) == microusd
