"""The output of a session as lines for people: what each fact becomes, bounded memory, hostile bytes."""

import json
from collections.abc import Iterator
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.adapters import MAX_LINE_BYTES, Fact, Now, WorkEnded, WorkStarted, adapter_names, adapter_of
from lifefold.interpreters.desk.output_lines import MOST_OPEN, SHOWN, TEXT_CHARS, OutputLine, OutputReader

NOW = Now(1_795_000_000_000, 0)


def read(kind: str, output: bytes, *, size: int = 1 << 16, status: int | None = 0) -> list[OutputLine]:
    reader = OutputReader(adapter_of(kind), lambda: NOW)
    found = [line for at in range(0, len(output), size) for line in reader.take(at, output[at : at + size])]
    return [*found, *reader.finish(status)]


def claude(*messages: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in messages)


def message(*content: object, number: int = 1) -> object:
    return {"type": "assistant", "session_id": "c1", "message": {"id": f"m{number}", "content": content}}


TOOL = {"type": "tool_use", "id": "u1", "name": "Bash", "input": {"command": "make"}}
RESULT = {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "u1", "is_error": True}]}}


def test_each_fact_of_an_agent_program_is_a_readable_line() -> None:
    """Text, tool, refusal, limit, cost and end, each with its kind, and in the order of the output."""
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1_795_003_600}}
    denied = {
        "type": "system",
        "subtype": "permission_denied",
        "tool_name": "Edit",
        "tool_use_id": "e",
        "message": "no",
    }
    end = {
        "type": "result",
        "is_error": False,
        "result": "Done.",
        "total_cost_usd": 0.25,
        "usage": {"output_tokens": 7},
    }
    found = read("claude", claude(message({"type": "text", "text": "I begin."}, TOOL), RESULT, denied, limit, end))
    assert [each.line() for each in found] == [
        "conversation: c1",
        "  I begin.",
        "tool: Bash: make",
        "tool: Bash failed",
        "permission: Edit was refused: no",
        "limit: the account is limited",
        "cost: $0.2500, 0 tokens in, 7 out",
        "end: denied: Edit: no",
    ]
    assert [each.until_ms for each in found if each.kind == "limit"] == [1_795_003_600_000]
    assert [each.kind for each in found if each.is_bad] == ["tool", "permission", "limit", "end"]


def test_the_lines_of_a_plain_command_are_all_shown_and_its_end_names_the_status() -> None:
    """JSON of a command is its own text, and the last line needs no newline."""
    found = read("command", b'one\n\n{"a": 1}\nlast', status=3)
    assert [each.line() for each in found] == ["  one", '  {"a": 1}', "  last", "end: crashed: exit status 3: last"]


def test_a_line_beside_the_format_of_a_program_is_shown_and_its_format_is_not() -> None:
    """An agent program reports there that it cannot begin."""
    found = read("claude", b'Error: no such option\n{"type": "system", "subtype": "init"}\n', status=1)
    assert [each.text for each in found if each.kind == "text"] == ["Error: no such option"]


@pytest.mark.parametrize("kind", sorted(adapter_names()))
@given(output=st.binary(max_size=400), size=st.integers(1, 50))
def test_no_output_sends_a_control_code_to_the_terminal(kind: str, output: bytes, size: int) -> None:
    """Whatever an agent prints, each line is one printable line."""
    hostile = (
        b"\x1b]0;title\x07\x1b[2J\r\x9b31m" + output + b"\n" + claude(message({"type": "text", "text": "\x1b[2Ja\nb"}))
    )
    for each in read(kind, hostile, size=size, status=None):
        assert each.line().replace("\t", " ").isprintable()


def test_an_agent_cannot_imitate_a_line_of_lifefold() -> None:
    """The text of an agent is indented; the lines of the desk are not."""
    assert read("command", b"end: success\n")[0].line() == "  end: success"


def endless(reader: OutputReader, pieces: int) -> Iterator[OutputLine]:
    for _ in range(pieces):
        yield from reader.take(reader.offset, b"x" * (1 << 16))


def test_a_line_without_an_end_is_left_out_with_a_word_and_costs_no_memory() -> None:
    """An endless line is not kept, and the next line is read."""
    reader = OutputReader(adapter_of("command"), lambda: NOW)
    found = list(endless(reader, 4 * (MAX_LINE_BYTES >> 16)))
    assert [each.text for each in found] == ["a line of more than 1,048,576 bytes is left out"]
    assert [each.text for each in reader.take(reader.offset, b"\nnext\n")] == ["next"]


def test_a_long_line_is_cut_and_the_works_that_are_remembered_are_few() -> None:
    """An agent that opens works for ever, or prints long lines, does not fill the memory."""
    (long, _end) = read("command", b"y" * 50_000 + b"\n")
    assert len(long.text) == TEXT_CHARS
    tools = [message({**TOOL, "id": f"u{n}"}, number=n) for n in range(3 * MOST_OPEN)]
    reader = OutputReader(adapter_of("claude"), lambda: NOW)
    list(reader.take(0, claude(*tools)))
    assert len(reader._open) <= MOST_OPEN


def test_dropped_output_is_named_and_the_torn_line_after_it_is_not_shown() -> None:
    """The shim keeps the beginning and the latest part of a long output."""
    reader = OutputReader(adapter_of("command"), lambda: NOW)
    assert [each.text for each in reader.take(0, b"first\nhal")] == ["first"]
    found = list(reader.take(1_009, b"f of a line\nwhole\n"))
    assert [each.text for each in found] == ["1,000 bytes of the output are not kept", "whole"]


@given(cuts=st.lists(st.integers(1, 30), max_size=30))
def test_the_lines_do_not_depend_on_the_pieces(cuts: list[int]) -> None:
    """Whatever the sizes of the reads, the same lines come in the same order."""
    output = claude(message({"type": "text", "text": "I begin."}, TOOL), RESULT) + b"bare\n"
    whole, reader, at = read("claude", output), OutputReader(adapter_of("claude"), lambda: NOW), 0
    found: list[OutputLine] = []
    for size in [*cuts, len(output)]:
        found += reader.take(at, output[at : at + size])
        at = min(len(output), at + size)
    assert [*found, *reader.finish(0)] == whole


def test_the_end_of_a_session_that_the_runner_has_ended_is_told_as_it_is_recorded() -> None:
    """Such a session has not crashed, and its last line is not the reason of its end."""
    reader = OutputReader(adapter_of("command"), lambda: NOW)
    found = [*reader.take(0, b"at work\n"), *reader.finish(None, "it was asked to end; Terminated (signal 15)")]
    assert [each.line() for each in found] == ["  at work", "end: it was asked to end; Terminated (signal 15)"]


def test_an_agent_that_takes_a_message_says_so() -> None:
    """The session of an agent that can be steered had none of its further output shown."""
    output = b'{"acp":"turn","turn":2}\n{"acp":"taken","number":1}\n{"acp":"text","text":"I am brief"}\n'
    found = [each.line() for each in read("acp", output)]
    assert found[:2] == ["message: has begun with message 1", "  I am brief"]


def test_every_kind_of_fact_has_a_line() -> None:
    """Works are told by their beginning, and by their end if they fail."""
    assert {*get_args(Fact)} - {WorkStarted, WorkEnded} == {*SHOWN}
