"""The conformance kit for adapters: checks that the adapter of any agent program must pass.

A check is a function that takes an ``AdapterBench``: the adapter, recorded output of its program, and a brief. It
returns if the adapter has the property in its docstring, and raises ``AssertionError`` otherwise. ``ADAPTER_CHECKS``
has them all; ``AdapterConformance`` is a class of tests made of them. ``fuzz`` feeds an adapter with hostile lines.
"""

import contextlib
import re
import tracemalloc
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, ClassVar, Final, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifefold.interpreters.adapters import (
    MAX_LINE_BYTES,
    Adapter,
    Brief,
    Conversation,
    Ended,
    Fact,
    Limited,
    Login,
    Now,
    PermissionDenied,
    Permissions,
    Said,
    Spent,
    Tokens,
    WorkEnded,
    WorkStarted,
    login_of,
)
from lifefold.interpreters.adapters.adapter import resume_argv
from lifefold.interpreters.adapters.facts import TEXT_CHARS
from lifefold.interpreters.testing.hostile_lines import SESSION_LINES, hostile_sessions

NOW: Final = Now(1_795_500_000_000, 60)
"""The moment of all checks."""

STATE_CHARS: Final = 500_000
"""The largest state of an adapter, as the length of its ``repr``."""

PEAK_BYTES: Final = 64 * MAX_LINE_BYTES
"""The most memory in which a session is read: the objects of one line, which can be 30 times as large as its text."""


class Recording(msgspec.Struct, frozen=True):
    """The output of one session, and its exit status."""

    name: str
    output: bytes
    status: int | None = 0

    @property
    def lines(self) -> tuple[bytes, ...]:
        """The lines, without their newlines."""
        return tuple(self.output.splitlines())


class AdapterBench(msgspec.Struct, frozen=True):
    """An adapter with recorded output of its program; a brief without a prompt is completed by the checks.

    ``text`` is for a program that prints text for people. Any line is a word of it, so garbage may have facts there,
    but it changes neither costs nor outcomes.
    """

    adapter: Adapter[Any]
    recordings: Sequence[Recording]
    brief: Brief = Brief("")
    text: bool = False

    def asked(self, prompt: str) -> Brief:
        """Return the brief with a prompt."""
        return msgspec.structs.replace(self.brief, prompt=prompt)


AdapterCheck = Callable[[AdapterBench], None]
"""Raises ``AssertionError`` if an adapter does not have the property in its docstring."""

CHOSEN: Final = "0b5f8f4e-3c1d-4c58-9a51-000000000001"
CONVERSATIONS: Final = (None, Conversation(CHOSEN), Conversation(CHOSEN, begun=True))
PROMPTS: Final = ("Write", "--help", "-", "-p", "--", "-- --version", "$(id); `id`", "two\nlines", "{prompt}", "é ☃")
GARBAGE: Final = (
    b"", b" \t", b"\x00\xff\xfe", b"{", b"[]", b"null", b"1", b'"text"', b'{"type":', b'{"type":null}', b'{"type":[]}',
    b'{"type":{"type":"result"}}', b'{"type":"result"', b"[" * 5_000, b'{"a":' * 5_000, b'{"type":"of another kind"}',
    b"x" * (MAX_LINE_BYTES + 1), b'{"type":"' + b"y" * MAX_LINE_BYTES + b'"}',
)  # fmt: skip
"""Lines that no program prints in a format of its own."""


def read(adapter: Adapter[Any], lines: Sequence[bytes]) -> tuple[Any, tuple[Fact, ...]]:
    """Read lines from the beginning, and return the last state and all facts."""
    state, found = adapter.initial, list[Fact]()
    for line in lines:
        state, facts = adapter.read(state, line, NOW)
        found.extend(facts)
    return state, tuple(found)


def told(bench: AdapterBench, recording: Recording, lines: Sequence[bytes]) -> tuple[object, ...]:
    """Return the facts and the outcome of lines, without texts, which may be read in other pieces."""
    state, facts = read(bench.adapter, lines)
    kept = [each for each in facts if not isinstance(each, Said) and (isinstance(each, Spent) or not bench.text)]
    return (*map(_wordless, kept), bench.adapter.finish(state, recording.status).outcome)


def _wordless(fact: Fact) -> Fact:
    return msgspec.structs.replace(fact, reason="") if isinstance(fact, Limited | PermissionDenied) else fact


def a_command_line_has_no_empty_word(bench: AdapterBench) -> None:
    """No word is empty, for any conversation and any permissions."""
    for conversation in CONVERSATIONS:
        for permissions in Permissions:
            brief = msgspec.structs.replace(bench.asked("Write"), permissions=permissions)
            argv = bench.adapter.argv(brief, conversation)
            assert argv, "the command line is empty"
            assert all(argv), f"an empty word: {argv!r}"


def a_prompt_is_no_option(bench: AdapterBench) -> None:
    """The prompt is in one word, after ``--`` or in ``--option=PROMPT``, and changes no other word."""
    for conversation in CONVERSATIONS:
        plain = bench.adapter.argv(bench.asked("some text"), conversation)
        for prompt in PROMPTS:
            argv = bench.adapter.argv(bench.asked(prompt), conversation)
            assert len(argv) == len(plain), f"the prompt {prompt!r} changes the number of words: {argv!r}"
            assert sum(prompt in word for word in argv) >= 1, f"the prompt {prompt!r} is missing: {argv!r}"
            for number, (word, other) in enumerate(zip(argv, plain, strict=True)):
                safe = "--" in argv[:number] or re.match(r"--[a-z-]+=", word)
                assert word == other or safe, f"the prompt {prompt!r} can be taken for an option: {argv!r}"


def a_conversation_is_on_the_command_line(bench: AdapterBench) -> None:
    """A conversation that can be resumed or chosen changes the command line; one that cannot does not."""
    new, chosen, begun = (bench.adapter.argv(bench.asked("Write"), each) for each in CONVERSATIONS)
    assert (begun != new) == bench.adapter.resumable, f"resumable, and the command line: {begun!r}"
    assert (chosen != new) == bench.adapter.chooses_conversation, f"chooses_conversation, and: {chosen!r}"
    if bench.adapter.chooses_conversation:
        assert any(CHOSEN in word for word in chosen), f"the chosen identifier is missing: {chosen!r}"


def reading_is_pure(bench: AdapterBench) -> None:
    """The same lines have the same facts, and a state that is given does not change."""
    for recording in bench.recordings:
        once, again = read(bench.adapter, recording.lines), read(bench.adapter, recording.lines)
        assert once == again, f"{recording.name}: other facts when it is read again"
        before = repr(bench.adapter.initial)
        state = bench.adapter.initial
        for line in recording.lines:
            shown = repr(state)
            following, _ = bench.adapter.read(state, line, NOW)
            assert repr(state) == shown, f"{recording.name}: reading a line changes the state that it is given"
            state = following
        assert repr(bench.adapter.initial) == before, f"{recording.name}: reading changes the initial state"


def garbage_changes_nothing(bench: AdapterBench) -> None:
    """Lines of no known kind between the others change neither the facts nor the outcome."""
    for recording in bench.recordings:
        expected = told(bench, recording, recording.lines)
        for place in {0, len(recording.lines) // 2, len(recording.lines)}:
            lines = (*recording.lines[:place], *GARBAGE, *recording.lines[place:])
            assert told(bench, recording, lines) == expected, f"{recording.name}: garbage at line {place}"


def a_torn_line_changes_nothing(bench: AdapterBench) -> None:
    """The beginning of a line, before the whole line, changes neither the facts nor the outcome."""
    for recording in bench.recordings:
        expected = told(bench, recording, recording.lines)
        for part in (0.3, 0.5, 0.9):
            lines = [each for line in recording.lines for each in (line[: int(len(line) * part)], line)]
            assert told(bench, recording, lines) == expected, f"{recording.name}: torn at {part:.0%}"


def a_doubled_line_counts_once(bench: AdapterBench) -> None:
    """A line that is read twice has the facts of one."""
    for recording in bench.recordings:
        doubled = [each for line in recording.lines for each in (line, line)]
        expected = told(bench, recording, recording.lines)
        assert told(bench, recording, doubled) == expected, f"{recording.name}: lines that are doubled"


def totals_never_fall(bench: AdapterBench) -> None:
    """A later total of the same conversation and coverage is higher in some number, and lower in none."""
    for recording in bench.recordings:
        for lines in (recording.lines, recording.lines[::-1], recording.lines * 2):
            last: dict[tuple[str, str], Spent] = {}
            for fact in read(bench.adapter, lines)[1]:
                if isinstance(fact, Spent):
                    before = last.get((fact.conversation, fact.counted))
                    assert before is None or _higher(before, fact), f"{recording.name}: {before} and then {fact}"
                    last[fact.conversation, fact.counted] = fact


def _higher(before: Spent, after: Spent) -> bool:
    pairs = [*zip(_numbers(before), _numbers(after), strict=True)]
    return all(one <= other for one, other in pairs) and any(one < other for one, other in pairs)


def _numbers(spent: Spent) -> tuple[int, ...]:
    return (*msgspec.structs.astuple(spent.total.tokens), spent.total.microusd or 0)


def work_begins_before_it_ends(bench: AdapterBench) -> None:
    """Each work begins once and ends at most once, in this order."""
    for recording in bench.recordings:
        under_way, begun = set[str](), set[str]()
        for fact in read(bench.adapter, recording.lines)[1]:
            if isinstance(fact, WorkStarted):
                assert fact.id not in begun, f"{recording.name}: {fact.id} begins twice"
                begun.add(fact.id)
                under_way.add(fact.id)
            elif isinstance(fact, WorkEnded):
                assert fact.id in under_way, f"{recording.name}: {fact.id} ends and is not under way"
                under_way.remove(fact.id)


def the_end_is_the_last_fact(bench: AdapterBench) -> None:
    """``finish`` alone returns the end, with a reason for people; a process that failed is no success."""
    for recording in bench.recordings:
        state, facts = read(bench.adapter, recording.lines)
        assert not any(isinstance(each, Ended) for each in facts), f"{recording.name}: an end before the end"
        for status in (recording.status, 1, 137, -9, -15, None):
            end = bench.adapter.finish(state, status)
            assert isinstance(end, Ended), f"{recording.name}: the end is {end!r}"
            assert end.ok or end.reason, f"{recording.name}: {end.outcome} without a reason"
            assert not end.ok or status == 0, f"{recording.name}: a success with status {status}"


def facts_are_bounded(bench: AdapterBench) -> None:
    """Texts are short and have no control characters, and the state stays small, whatever an agent prints."""
    for recording in bench.recordings:
        lines = [*recording.lines]
        lines += [_inflated(line, number) for number in range(40) for line in recording.lines]
        state, facts = read(bench.adapter, lines)
        must_be_bounded(state, (*facts, bench.adapter.finish(state, 1)), recording.name)


def must_be_bounded(state: object, facts: Sequence[Fact], what: str) -> None:
    """Assert that a state and facts are small, and that every text in them can be shown."""
    assert len(repr(state)) <= STATE_CHARS, f"{what}: the state has {len(repr(state)):,} characters"
    for fact in facts:
        for text in _texts(fact):
            assert len(text) <= TEXT_CHARS, f"{what}: a text of {len(text):,} characters in {type(fact).__name__}"
            assert text.isprintable(), f"{what}: {text!r} cannot be shown"


def _texts(value: object) -> Iterator[str]:
    """Yield all texts in a fact."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for each in cast("tuple[object, ...]", value):
            yield from _texts(each)
    elif isinstance(value, msgspec.Struct) and not isinstance(value, Tokens):
        yield from _texts(msgspec.structs.astuple(value))


def _inflated(line: bytes, number: int) -> bytes:
    """Return a line with other identifiers and, every other time, a text that is much too long."""
    other = re.sub(rb"[0-9a-f]{4,}", lambda found: b"%04x" % (number * 7919 + len(found[0])), line)
    return re.sub(rb'"text": ?"', lambda found: found[0] + b"\\u001b[31m long " * 5_000, other) if number % 2 else other


def a_login_is_told_by_names(bench: AdapterBench) -> None:
    """The optional ``login`` has names of variables and of files in the home folder, and no value."""
    assert isinstance(getattr(bench.adapter, "login", Login()), Login), "login is no Login"
    login = login_of(bench.adapter)
    for name in login.passed:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name), f"{name!r} is no name of a variable"
    for file in login.files:
        path = f"{file.folder}/{file.name}"
        assert file.name, f"a file without a name in {file.folder!r}"
        assert not {"", "~", ".."} & {*path.split("/")}, f"{path!r} is not in the home folder"


def a_person_resumes_the_conversation_of_the_session(bench: AdapterBench) -> None:
    """The optional ``resume_argv`` runs the same program, and names the conversation if a session names it."""
    words = resume_argv(bench.adapter, CONVERSATIONS[-1])
    session = bench.adapter.argv(bench.asked("Write"), CONVERSATIONS[-1])
    assert all(words), f"an empty word: {words!r}"
    assert words[:1] in {(), session[:1]}, f"a session runs {session[0]!r}, and a person {words!r}"
    is_named = any(CHOSEN in word for word in session)
    assert not words or not is_named or any(CHOSEN in word for word in words), f"no identifier: {words!r}"


ADAPTER_CHECKS: Final[tuple[AdapterCheck, ...]] = (
    a_command_line_has_no_empty_word,
    a_prompt_is_no_option,
    a_conversation_is_on_the_command_line,
    reading_is_pure,
    garbage_changes_nothing,
    a_torn_line_changes_nothing,
    a_doubled_line_counts_once,
    totals_never_fall,
    work_begins_before_it_ends,
    the_end_is_the_last_fact,
    facts_are_bounded,
    a_login_is_told_by_names,
    a_person_resumes_the_conversation_of_the_session,
)


class AdapterConformance:
    """Tests of your adapter: subclass it in a test module, with a fixture ``bench`` that gives an ``AdapterBench``.

    ``inputs`` is the number of hostile lines that are tried.
    """

    inputs: ClassVar[int] = 500

    @pytest.mark.parametrize("check", ADAPTER_CHECKS, ids=[check.__name__ for check in ADAPTER_CHECKS])
    def test_the_adapter_keeps_the_property(self, check: AdapterCheck, bench: AdapterBench) -> None:
        """The docstring of each check states the property."""
        check(bench)

    def test_the_adapter_reads_hostile_lines(self, bench: AdapterBench) -> None:
        """Any lines have bounded facts and an end, and raise no error."""
        fuzz(bench, self.inputs)


def fuzz(bench: AdapterBench, inputs: int) -> int:
    """Feed an adapter with at least so many hostile lines, and return their number."""
    recorded, read_lines = [each.lines for each in bench.recordings], 0
    sessions = -(-inputs // SESSION_LINES)

    @settings(_QUICK, max_examples=sessions)
    @given(hostile_sessions(recorded, GARBAGE), st.none() | st.integers(-64, 255))
    def session(lines: list[bytes], status: int | None) -> None:
        nonlocal read_lines
        read_lines += len(lines)
        must_survive(bench.adapter, lines, status)

    session()
    return read_lines


def must_survive(adapter: Adapter[Any], lines: Sequence[bytes], status: int | None) -> None:
    """Assert that an adapter reads hostile lines without an error, and within its bounds.

    The memory that Python allocates while a session is read is bounded by the longest line, not by the session.
    """
    with _traced():
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        state, facts = read(adapter, lines)
        end = adapter.finish(state, status)
        _, peak = tracemalloc.get_traced_memory()
    assert peak - before <= PEAK_BYTES, f"a hostile session: {peak - before:,} bytes of memory"
    must_be_bounded(state, (*facts, end), "a hostile session")


@contextlib.contextmanager
def _traced() -> Generator[None]:
    """Trace the memory of the block, unless it is traced already."""
    was_traced = tracemalloc.is_tracing()
    if not was_traced:
        tracemalloc.start()
    try:
        yield
    finally:
        if not was_traced:
            tracemalloc.stop()


_QUICK: Final = settings(
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example),
)
