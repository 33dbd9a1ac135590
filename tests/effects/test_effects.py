"""The vocabulary: which names it has, and that every word of it can be written down."""

import msgspec
import pytest

from lifefold import effects
from lifefold.core.kernel import encode

EXPORTED = (
    "Activity Begin BuildPrompt CancelSession CancelTimer CheckOutWork Effect End ForceStopSession IncrementSession"
    " LogFatal MergeWork Postpone PrepareWorktree RefreshWorktree RunSession StartTimer StorePrompt Tell VerifyWork"
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


@pytest.mark.parametrize("name", [n for n in EXPORTED if n not in {"Activity", "Effect"}])
def test_every_word_is_an_effect_or_an_activity_and_says_what_it_means(name: str) -> None:
    """A word of the vocabulary is a frozen, tagged struct with a docstring of its own."""
    word: type[msgspec.Struct] = getattr(effects, name)
    assert issubclass(word, effects.Effect) != issubclass(word, effects.Activity)
    assert word.__struct_config__.frozen
    assert word.__struct_config__.tag == name
    assert word.__doc__


@pytest.mark.parametrize(("effect", "written"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_an_effect_is_written_with_its_name_and_its_fields(effect: effects.Effect, written: bytes) -> None:
    """What stands in a log does not change unnoticed."""
    assert encode(effect) == written
