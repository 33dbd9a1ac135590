"""The vocabulary: its names, and a written form for every word."""

from enum import StrEnum
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifefold import effects
from lifefold.core.kernel import encode

EXPORTED = (
    "AbortSession Activity AwaitTrigger Begin BuildPrompt CallHook CancelSession CancelTimer Changed CheckOutWork"
    " Cron DeliverNotification DrainProcess Effect EmitTelemetry End EscalateSilence Every FollowOutput"
    " ForceStopSession HoldTimeLimit IncrementSession InspectWork InterruptSession KeepDeadLetter KillOverdue"
    " LogFailure LogFatal MergeWork Notification NotificationKind NotifyProcess ParkWork PauseTriggers Postpone"
    " PrepareWorktree RefreshWorktree ReportStuck ReportTaskFailed ResumeTriggers ReturnBudget RunSession SaveState"
    " ServeTriggers SignalPreemption StartProcess StartTimer SteerSession StorePrompt Tell VerifyWork WarnOfSilence"
    " WatchBranch WatchOutput"
).split()

EXAMPLES: tuple[tuple[effects.Effect, bytes], ...] = (
    (
        effects.Begin("RunSession", effects.RunSession("do it", 3, 4, 5_000), 7, resumed=True),
        (
            b'{"type":"Begin","slot":"RunSession","activity":{"type":"RunSession","prompt":"do it","session_seq":3,'
            b'"attempt":4,"grace_ms":5000,"timeout_ms":null},"generation":7,"resumed":true}'
        ),
    ),
    (effects.End("RunSession", 7), b'{"type":"End","slot":"RunSession","generation":7}'),
    (
        effects.StartTimer("BackoffElapsed", 2_000, 3, 2_100),
        b'{"type":"StartTimer","slot":"BackoffElapsed","delay_ms":2000,"generation":3,"deadline_ms":2100}',
    ),
    (effects.CancelTimer("BackoffElapsed", 3), b'{"type":"CancelTimer","slot":"BackoffElapsed","generation":3}'),
    (
        effects.Tell("board", "task:T1", effects.LogFatal("x"), 2),
        b'{"type":"Tell","aggregate":"board","entity":"task:T1","event":{"type":"LogFatal","message":"x"},"ordinal":2}',
    ),
    (effects.StorePrompt("do it"), b'{"type":"StorePrompt","prompt":"do it"}'),
    (effects.CancelSession(), b'{"type":"CancelSession"}'),
    (effects.ForceStopSession(), b'{"type":"ForceStopSession"}'),
    (effects.IncrementSession(4), b'{"type":"IncrementSession","session_seq":4}'),
)


def test_the_public_names_are_these_and_all_of_them_exist() -> None:
    """Nothing is exported by accident, and nothing that is listed is missing."""
    assert effects.__all__ == EXPORTED
    assert [name for name in EXPORTED if not hasattr(effects, name)] == []


WORDS: tuple[type[effects.Effect | effects.Activity], ...] = tuple(
    word
    for word in (getattr(effects, name) for name in effects.__all__)
    if issubclass(word, effects.Effect | effects.Activity) and word not in {effects.Effect, effects.Activity}
)


def test_what_may_not_be_performed_twice_is_this() -> None:
    """All other effects say what is to be, or are news: a runner that dies before it has recorded them does no harm."""
    once = {word.__name__ for word in WORDS if issubclass(word, effects.Effect) and not word.idempotent}
    assert once == {"Begin", "CallHook", "EscalateSilence", "InterruptSession", "Postpone", "ReturnBudget"}


def test_what_is_exported_is_a_word_or_what_a_word_is_made_of() -> None:
    """Beside the two bases and the words there are only enumerations and structs, which stand in some word's field."""
    structs = (each for each in vars(effects).values() if isinstance(each, type) and issubclass(each, msgspec.Struct))
    types = {field.type for each in structs for field in msgspec.structs.fields(each)}
    fields = {each for of in types for each in (of, *get_args(of))}
    others = {getattr(effects, name) for name in effects.__all__} - {*WORDS, effects.Effect, effects.Activity}
    assert all(issubclass(other, StrEnum | msgspec.Struct) and other in fields for other in others)


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.__name__)
def test_every_word_is_an_effect_or_an_activity_and_says_what_it_means(
    word: type[effects.Effect | effects.Activity],
) -> None:
    """A word of the vocabulary is a frozen, tagged struct with a docstring of its own."""
    assert issubclass(word, effects.Effect) != issubclass(word, effects.Activity)
    assert word.__struct_config__.frozen
    assert word.__struct_config__.tag == word.__name__
    assert word.__doc__


def some(kind: Any) -> st.SearchStrategy[Any]:
    """Make values for a field of this type."""
    if kind in {Any, effects.Activity}:
        return st.just(effects.BuildPrompt(1))
    return st.integers(0, 2**53) if kind is int else st.from_type(kind)


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.__name__)
@given(st.data())
@settings(max_examples=20)
def test_every_word_is_written_with_its_name_and_all_its_fields_in_order(
    word: type[effects.Effect | effects.Activity], data: st.DataObject
) -> None:
    """So that a log says, word by word, what was asked for."""
    fields = {field.name: data.draw(some(field.type)) for field in msgspec.structs.fields(word)}
    written = msgspec.json.decode(encode(word(**fields)))
    assert list(written) == ["type", *word.__struct_fields__]
    assert written.pop("type") == word.__name__
    assert written == msgspec.json.decode(msgspec.json.encode(fields))


@pytest.mark.parametrize(("effect", "written"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_an_effect_is_written_with_its_name_and_its_fields(effect: effects.Effect, written: bytes) -> None:
    """What stands in a log does not change unnoticed."""
    assert encode(effect) == written
