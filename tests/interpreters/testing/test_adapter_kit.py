"""The kit for adapters: every mistake that an adapter can make is found by a check that is named for it."""

import inspect
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, Final

import msgspec
import pytest

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import (
    MAX_LINE_BYTES,
    Brief,
    Conversation,
    Cost,
    Counted,
    Ended,
    Fact,
    Login,
    LoginFile,
    Now,
    Permissions,
    Reports,
    Said,
    Spent,
    Tokens,
    Work,
    WorkEnded,
    WorkStarted,
    hostile,
    reading,
)
from lifefold.interpreters.adapters.reading import Reading, Step
from lifefold.interpreters.testing import (
    ADAPTER_CHECKS,
    AdapterBench,
    AdapterConformance,
    Recording,
    adapters,
    hostile_lines,
)

OUTPUT: Final = b"""
{"kind": "hello", "chat": "c7"}
{"kind": "tool", "id": "1", "tool": "edit"}
{"kind": "tool_done", "id": "1", "ok": true}
{"kind": "text", "text": "done"}
{"kind": "bill", "usd": 0.25, "tokens_in": 900}
{"kind": "bye", "text": "all is done"}
"""


LINE: Final = b'{"kind": "tool", "id": "1", "tool": "edit"}'


class Line(msgspec.Struct, frozen=True):
    """A line of the agent ``crow``."""

    kind: Any = None
    chat: Any = None
    id: Any = None
    tool: Any = None
    ok: Any = None
    usd: Any = None
    tokens_in: Any = None
    text: Any = None


DECODER = hostile.decoder(Line)


class Crow:
    """A correct adapter."""

    name = "crow"
    initial = Reading()
    resumable = True
    chooses_conversation = False
    reports = Reports.USD
    tested_versions = ("1.0",)
    version_argv = ("crow", "--version")

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        resume = (f"--resume={conversation.id}",) if conversation and conversation.begun else ()
        return ("crow", *resume, "--", brief.prompt)

    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        found = hostile.decoded(DECODER, line)
        return self.decoded(state, found, now) if found else (reading.noted(state, hostile.plain(line)), ())

    def decoded(self, state: Reading, line: Line, now: Now) -> Step:  # noqa: ARG002  # mistakes use it
        text, identifier = hostile.sentence(line.text), hostile.name(line.id)
        match line.kind:
            case "hello":
                return reading.began(state, hostile.name(line.chat))
            case "tool":
                return reading.started(state, Work.TOOL, identifier, hostile.name(line.tool))
            case "tool_done":
                return reading.ended(state, Work.TOOL, identifier, ok=line.ok is True)
            case "text":
                return reading.said(state, text)
            case "bill":
                return self.bill(state, line)
            case _:
                return reading.judged(state, Outcome.SUCCESS, text) if line.kind == "bye" else state, ()

    def bill(self, state: Reading, line: Line) -> Step:
        cost = Cost(Tokens(input=hostile.count(line.tokens_in)), hostile.microusd(line.usd))
        return reading.spent(state, cost, Counted.CONVERSATION)

    def finish(self, state: Reading, status: int | None) -> Ended:
        return reading.closed(state, status)


class SaysNothingOfPermissions(Crow):
    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        mode = "" if brief.permissions is Permissions.READ else "--yes"
        return (*super().argv(brief, conversation)[:1], mode, *super().argv(brief, conversation)[1:])


class GivesThePromptAsAnOption(Crow):
    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        return tuple(word for word in super().argv(brief, conversation) if word != "--")


class LosesTheConversation(Crow):
    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:  # noqa: ARG002  # the mistake
        return super().argv(brief, None)


class Counts(Crow):
    """Remembers something outside its state."""

    lines = 0

    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        self.lines += 1
        state, facts = super().read(state, line, now)
        return state, (*facts, Said(f"{self.lines}")) if facts else facts


class TakesGarbageForItsEnd(Crow):
    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        if line.strip() == b"null":
            return reading.judged(state, Outcome.FAILED, "null"), ()
        return super().read(state, line, now)


class TakesTornLinesForErrors(Crow):
    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        if line.startswith(b'{"kind": "by') and not line.endswith(b"}"):
            return reading.judged(state, Outcome.FAILED, "torn"), (WorkStarted(Work.TOOL, "torn"),)
        return super().read(state, line, now)


class ChargesTwice(Crow):
    def bill(self, state: Reading, line: Line) -> Step:
        cost = Cost(Tokens(input=hostile.count(line.tokens_in)), hostile.microusd(line.usd))
        state = msgspec.structs.replace(state, spent=state.spent.plus(cost))
        return reading.spent(state, state.spent, Counted.CONVERSATION)


class SaysTheCostOfEachStep(Crow):
    def bill(self, state: Reading, line: Line) -> Step:
        return state, (Spent("c7", Cost(Tokens(input=hostile.count(line.tokens_in))), Counted.CONVERSATION),)


class EndsWorkThatHasNotBegun(Crow):
    def decoded(self, state: Reading, line: Line, now: Now) -> Step:
        if line.kind == "tool":
            return state, (WorkEnded(Work.TOOL, "1"),)
        return super().decoded(state, line, now)


class EndsEarly(Crow):
    def decoded(self, state: Reading, line: Line, now: Now) -> Step:
        state, facts = super().decoded(state, line, now)
        return state, (*facts, Ended(Outcome.SUCCESS)) if line.kind == "bye" else facts


class TakesADeathForSuccess(Crow):
    def finish(self, state: Reading, status: int | None) -> Ended:  # noqa: ARG002  # the mistake
        return super().finish(state, 0)


class SaysControlCharacters(Crow):
    def decoded(self, state: Reading, line: Line, now: Now) -> Step:
        if line.kind == "text":
            return state, (Said(str(line.text)[:100] + "\x1b[31m"),)
        return super().decoded(state, line, now)


class KeepsEverything(Crow):
    def decoded(self, state: Reading, line: Line, now: Now) -> Step:
        if line.kind == "text":
            state = msgspec.structs.replace(state, seen=(*state.seen, str(line.text)))
        return super().decoded(state, line, now)


class NamesAFileOfAnywhere(Crow):
    login = Login(files=(LoginFile("..", "login.json"),))


class ResumesAnyConversation(Crow):
    def resume_argv(self, conversation: Conversation) -> tuple[str, ...]:  # noqa: ARG002  # the mistake
        return "crow", "--resume"


class RunsAnotherProgram(Crow):
    def resume_argv(self, conversation: Conversation) -> tuple[str, ...]:
        return "raven", f"--resume={conversation.id}"


class Raises(Crow):
    def decoded(self, state: Reading, line: Line, now: Now) -> Step:
        if not isinstance(line.kind, str):
            raise TypeError(line.kind)
        return super().decoded(state, line, now)


FOUND: Final[dict[type[Crow], str]] = {
    SaysNothingOfPermissions: "a_command_line_has_no_empty_word",
    GivesThePromptAsAnOption: "a_prompt_is_no_option",
    LosesTheConversation: "a_conversation_is_on_the_command_line",
    Counts: "reading_is_pure",
    TakesGarbageForItsEnd: "garbage_changes_nothing",
    TakesTornLinesForErrors: "a_torn_line_changes_nothing",
    ChargesTwice: "a_doubled_line_counts_once",
    SaysTheCostOfEachStep: "totals_never_fall",
    EndsWorkThatHasNotBegun: "work_begins_before_it_ends",
    EndsEarly: "the_end_is_the_last_fact",
    TakesADeathForSuccess: "the_end_is_the_last_fact",
    SaysControlCharacters: "facts_are_bounded",
    KeepsEverything: "facts_are_bounded",
    NamesAFileOfAnywhere: "a_login_is_told_by_names",
    ResumesAnyConversation: "a_person_resumes_the_conversation_of_the_session",
    RunsAnotherProgram: "a_person_resumes_the_conversation_of_the_session",
}


def bench_of(kind: type[Crow]) -> AdapterBench:
    return AdapterBench(kind(), [Recording("success", OUTPUT), Recording("killed", OUTPUT[:80], -15)])


def failed(kind: type[Crow]) -> list[str]:
    """Return the names of the checks that an adapter fails."""
    names: list[str] = []
    for check in ADAPTER_CHECKS:
        try:
            check(bench_of(kind))
        except AssertionError:
            names.append(check.__name__)
    return names


class TestACorrectAdapter(AdapterConformance):
    @pytest.fixture
    def bench(self) -> AdapterBench:
        return bench_of(Crow)


@pytest.mark.parametrize("kind", FOUND, ids=lambda kind: kind.__name__)
def test_a_mistake_is_found_by_the_check_that_is_named_for_it(kind: type[Crow]) -> None:
    assert FOUND[kind] in failed(kind)


def test_every_check_finds_some_mistake() -> None:
    assert {*FOUND.values()} == {check.__name__ for check in ADAPTER_CHECKS}


def test_an_adapter_that_raises_an_error_at_a_hostile_line_is_found() -> None:
    with pytest.raises(TypeError):
        adapters.fuzz(bench_of(Raises), 100)


class Swells(Crow):
    """Uses much more memory than a line has."""

    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        copies = [line.decode(errors="replace") * 20 for _ in range(10)]
        return super().read(state, copies[0][: len(line)].encode(), now)


class Hoards(Crow):
    """Remembers all that an agent has said."""

    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        state, facts = super().read(state, line, now)
        return msgspec.structs.replace(state, last=state.last + line.decode(errors="replace")), facts


@pytest.mark.parametrize(("kind", "what"), [(Swells, "bytes of memory"), (Hoards, "the state has")])
def test_an_adapter_of_unbounded_memory_is_found(kind: type[Crow], what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        adapters.must_survive(kind(), [b"x" * MAX_LINE_BYTES] * 10, 0)


MUTATIONS: Final[tuple[tuple[Callable[[bytes], bytes], Callable[[bytes], bool]], ...]] = (
    (partial(hostile_lines.torn, place=20), lambda line: line == LINE[:20]),
    (
        partial(hostile_lines.huge, place=1, part=b"x"),
        lambda line: MAX_LINE_BYTES - 100 < len(line) <= MAX_LINE_BYTES,
    ),
    (partial(hostile_lines.nested, place=0, depth=900), lambda line: b"[" * 900 in line),
    (partial(hostile_lines.nested, place=1, depth=5_000), lambda line: line.count(b'{"error":') == 5_000),
    (partial(hostile_lines.retyped, value=[1.5], place=1), lambda line: b"[1.5]" in line),
    (partial(hostile_lines.overwritten, place=5, inserted=b"\xff"), lambda line: line[5:6] == b"\xff"),
)


@pytest.mark.parametrize(
    ("mutate", "holds"),
    MUTATIONS,
    ids=["torn", "huge", "lists", "tables", "type", "bytes"],
)
def test_a_mutation_of_a_line_is_what_its_name_says(
    mutate: Callable[[bytes], bytes], holds: Callable[[bytes], bool]
) -> None:
    assert holds(mutate(LINE))


def test_a_hostile_campaign_has_every_mutation_and_counts_its_lines() -> None:
    """A fuzzer without one of them would pass any adapter there."""
    seen: list[bytes] = []

    class Watches(Crow):
        def read(self, state: Reading, line: bytes, now: Now) -> Step:
            seen.append(line)
            return super().read(state, line, now)

    assert adapters.fuzz(bench_of(Watches), 500) == len(seen) >= 500
    known = OUTPUT.splitlines()
    assert any(len(line) > MAX_LINE_BYTES // 2 for line in seen), "huge"
    assert any(b"[" * 500 in line for line in seen), "deep"
    assert any(b"\\ud800" in line for line in seen), "a lone surrogate"
    assert any(line.decode(errors="replace").count("\N{REPLACEMENT CHARACTER}") for line in seen), "no UTF-8"
    assert any(line not in known and any(each.startswith(line) for each in known) for line in seen), "torn"
    assert any(one == other and len(one) > 5 for one, other in pairwise(seen)), "doubled"
    assert any(known.index(one) > known.index(other) for one, other in pairwise(seen) if {one, other} <= {*known})


def test_every_check_says_what_it_guarantees() -> None:
    assert [check.__name__ for check in ADAPTER_CHECKS if not inspect.getdoc(check)] == []


def test_facts_of_a_correct_adapter_are_read_from_the_beginning() -> None:
    facts: tuple[Fact, ...] = adapters.read(Crow(), OUTPUT.splitlines())[1]
    assert [type(fact).__name__ for fact in facts] == ["ConversationBegan", "WorkStarted", "WorkEnded", "Said", "Spent"]
