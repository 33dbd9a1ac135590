"""The facts of recorded outputs as events: each once, in order, whatever pieces the output comes in."""

from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_recordings import FOLDER, recordings
from lifefold.core.fleet.worker import output
from lifefold.core.fleet.worker.output import Doing, Output, Seen, State, Work, WorkSeen
from lifefold.core.kernel import Step, replace
from lifefold.interpreters.adapters import Adapter, Now, WorkEnded, WorkStarted, adapter_of, cut
from lifefold.interpreters.adapters.lines import Cutter
from lifefold.interpreters.fleet_runner.facts_seen import FactsSeen

PROGRAMS: Final = ("claude", "codex", "gemini", "opencode", "aider")
NAMES: Final = [(program, name) for program in PROGRAMS for name in recordings(program)]
NOW: Final = Now(1_700_000_000_000)
BEGUN: Final = Output(State.FOLLOWED)


def now() -> Now:
    """Return one moment."""
    return NOW


def accepted(record: Output, events: Sequence[Seen]) -> Output:
    """Return the record after events that it must accept."""
    for event in events:
        step = output.machine.step(record, event)
        assert isinstance(step, Step), event
        record = step.record
    return record


def read(text: bytes, adapter: Adapter[Any], pieces: Sequence[int], record: Output = BEGUN, most: int = 4) -> Output:
    """Return the record after an output that comes in pieces of these sizes, the last one again and again."""
    seen, written = FactsSeen(adapter, record), 0
    sizes = [*pieces]
    while seen.offset < len(text):
        written = max(written, min(len(text), seen.offset + (sizes.pop(0) if sizes else 4_096)))
        record = accepted(record, seen.take(seen.offset, text[seen.offset : written], now, most))
        record = accepted(record, seen.snapshot())
    return record


def facts_of(text: bytes, adapter: Adapter[Any]) -> list[Any]:
    """Return all facts of an output."""
    found: list[Any] = []
    state = adapter.initial
    for line in cut(Cutter(), text)[1]:
        state, facts = adapter.read(state, line, NOW)
        found += facts
    return found


@pytest.mark.parametrize(("program", "name"), NAMES)
@pytest.mark.parametrize("size", [17, 4_096])
def test_every_tool_of_a_recorded_session_counts_once(program: str, name: str, size: int) -> None:
    """Also if its output comes in very small pieces."""
    text, adapter = recordings(program)[name].output, adapter_of(program)
    facts, record = facts_of(text, adapter), read(text, adapter, [size] * 10_000)
    begun = [each.work for each in facts if isinstance(each, WorkStarted)]
    assert (record.tools, record.condensed) == (begun.count(Work.TOOL), begun.count(Work.COMPACTION))
    over = {each.id for each in facts if isinstance(each, WorkEnded)}
    left = [each for each in facts if isinstance(each, WorkStarted) and each.id not in over]
    assert len(record.works) == len(left)


@given(st.sampled_from(NAMES), st.lists(st.integers(1, 3_000), max_size=5), st.lists(st.integers(1, 3_000), max_size=3))
def test_a_runner_that_begins_again_reports_each_fact_once(
    of: tuple[str, str], before: list[int], after: list[int]
) -> None:
    """The positions of the facts tell what an earlier runner has reported."""
    text, adapter = recordings(of[0])[of[1]].output, adapter_of(of[0])
    half = text[: sum(before)]
    known = read(half, adapter, before) if half else BEGUN
    again, whole = read(text, adapter, after, known), read(text, adapter, [len(text)])
    assert (again.tools, again.condensed, again.works) == (whole.tools, whole.condensed, whole.works)
    assert (again.conversation, again.denied) == (whole.conversation, whole.denied)


CLAUDE: Final = adapter_of("claude")
USE: Final = (
    b'{"type":"assistant","message":{"id":"m%d","content":[{"type":"tool_use","id":"t%d","name":"Bash","input":{}}]}}\n'
)
RESULT: Final = b'{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%d","content":"ok"}]}}\n'


def test_a_tool_between_two_looks_is_counted_in_one_report() -> None:
    """The output is as long as it likes."""
    seen = FactsSeen(CLAUDE, BEGUN)
    text = b"".join(USE % (n, n) + RESULT % n for n in range(5))
    assert seen.take(0, text, now, 4) == ()
    assert [(each.works, each.tools) for each in seen.snapshot() if isinstance(each, WorkSeen)] == [((), 5)]
    assert seen.snapshot() == ()


def test_a_tool_that_goes_on_is_reported_with_its_name() -> None:
    """Until its result comes."""
    seen = FactsSeen(CLAUDE, BEGUN)
    seen.take(0, USE % (1, 1), now, 4)
    (begun,) = seen.snapshot()
    assert isinstance(begun, WorkSeen)
    assert (begun.works, begun.tools) == ((Doing(Work.TOOL, "Bash"),), 1)
    seen.take(seen.offset, RESULT % 1, now, 4)
    (ended,) = seen.snapshot()
    assert isinstance(ended, WorkSeen)
    assert (ended.works, ended.tools) == ((), 0)
    assert begun.position < ended.position


def test_after_some_events_the_rest_waits_for_the_next_look() -> None:
    """An agent that is refused a thousand times does not fill the log in a second."""
    system = b'{"type":"system","subtype":"init","session_id":"c-%d"}\n'
    text = b"".join(system % n for n in range(10))
    seen = FactsSeen(CLAUDE, BEGUN)
    first = seen.take(0, text, now, 4)
    assert len(first) == 4
    assert seen.offset == 4 * len(system % 1)
    second = seen.take(seen.offset, text[seen.offset :], now, 4)
    assert len(second) == 4
    assert [each.position for each in (*first, *second)] == sorted({each.position for each in (*first, *second)})


def test_a_gap_in_the_output_costs_the_line_that_it_cuts() -> None:
    """The middle of a long output is dropped."""
    seen = FactsSeen(CLAUDE, BEGUN)
    seen.take(0, (USE % (1, 1))[:30], now, 4)
    assert seen.take(500, b'nd of a line"}\n' + RESULT % 9 + USE % (2, 2), now, 4) == ()
    (found,) = seen.snapshot()
    assert isinstance(found, WorkSeen)
    assert (found.tools, found.position) == (1, 500 + len(b'nd of a line"}\n' + RESULT % 9) + 1)


def test_a_work_that_goes_on_when_a_runner_comes_back_is_not_reported_again() -> None:
    """It is known, and not over."""
    record = read(USE % (1, 1), CLAUDE, [10_000])
    seen = FactsSeen(CLAUDE, record)
    assert seen.take(0, USE % (1, 1), now, 4) == ()
    assert seen.snapshot() == ()
    assert replace(record, position=0) == Output(State.FOLLOWED, works=(Doing(Work.TOOL, "Bash"),), tools=1)


def test_there_are_recordings_of_every_program() -> None:
    """Else nothing would be read."""
    assert {program for program, _ in NAMES} == set(PROGRAMS)
    assert FOLDER.is_dir()
