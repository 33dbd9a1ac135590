"""The visual states of an agent: words, thresholds, looks."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.lifecycles.task import State
from lifefold.core.policy.silence import last_sign_ms
from lifefold.core.policy.visual import Classification, Observation, Thresholds, VisualState, classify

LOOKS: Final = """
SPAWNING ◔ yellow
RUNNING ● green
STALLED ◐ dark orange
MERGING ⇄ blue
DEAD ○ red
IDLE □ gray
UNKNOWN ◌ dim
"""
"""The document's table of the seven classifications."""

START: Final = 1_000_000
SECOND: Final = 1_000


def shown(status: str, *, age_s: float = 0, silent_s: float | None = None, pid: int | None = 42) -> Classification:
    """Return what is shown of an agent that is so old and was heard of so long ago."""
    now = START + round(age_s * SECOND)
    heard = None if silent_s is None else now - round(silent_s * SECOND)
    return classify(Observation(status, START, heard, pid), now)


def test_every_state_looks_as_the_document_says() -> None:
    """Indicator and colour."""
    assert [f"{state} {state.indicator} {state.colour}" for state in VisualState] == LOOKS.strip().splitlines()


WORDS: Final = {
    "dead done completed closed failed cancelled killed orphaned": VisualState.DEAD,
    "idle waiting paused planned blocked waiting_for_subtasks pending_approval": VisualState.IDLE,
    "starting claimed spawning": VisualState.SPAWNING,
    "merging committing pushing": VisualState.MERGING,
    "working in_progress running": VisualState.RUNNING,
    "open sleeping": VisualState.UNKNOWN,
}


@pytest.mark.parametrize(("words", "state"), WORDS.items())
def test_the_words_of_both_vocabularies_are_understood(words: str, state: VisualState) -> None:
    """Those of the agent's lifecycle, and those of tasks and monitors (E30)."""
    for word in words.split():
        assert shown(word).state is state


@pytest.mark.parametrize("state", [state for state in State if state is not State.OPEN], ids=str)
def test_every_state_of_a_task_is_understood_in_either_spelling(state: State) -> None:
    """``IN_PROGRESS`` is ``in_progress``; only an open task says nothing about an agent (E30)."""
    assert shown(state.value) == shown(state.value.lower())
    assert shown(state.value).state is not VisualState.UNKNOWN


def test_without_a_process_only_a_launch_and_the_agents_own_word_stand() -> None:
    """What was launched may not have an id yet; what ran and has none is gone (ghosts: openonion/connectonion#545)."""
    for word in "open claimed spawning starting".split():
        assert shown(word, pid=None).state is VisualState.SPAWNING
    for word in "in_progress running merging pushing sleeping".split():
        assert shown(word, pid=None).state is VisualState.DEAD
    assert shown("working", pid=None).state is VisualState.RUNNING
    assert shown("idle", pid=None).state is VisualState.IDLE


@pytest.mark.parametrize("pid", [None, 42])
@pytest.mark.parametrize("word", ["starting", "claimed", "spawning"])
def test_a_launch_times_out_after_sixty_seconds_exclusive(word: str, pid: int | None) -> None:
    """With and without a process id, from the start (E29, E31)."""
    assert shown(word, age_s=60, pid=pid).state is VisualState.SPAWNING
    assert shown(word, age_s=60.001, pid=pid).state is VisualState.DEAD


def test_silence_is_a_stall_after_five_minutes_exclusive() -> None:
    """Strictly more than 300 s (E29)."""
    assert shown("running", age_s=900, silent_s=300) == Classification(VisualState.RUNNING)
    assert shown("running", age_s=900, silent_s=300.001) == Classification(VisualState.STALLED, stalled=True)


def test_an_agent_without_a_sign_is_measured_from_its_start() -> None:
    """It does not run for ever (E32); nor does a heartbeat from before the start count."""
    assert shown("working", age_s=300).state is VisualState.RUNNING
    assert shown("working", age_s=301).state is VisualState.STALLED
    assert last_sign_ms(START, START - 5) == last_sign_ms(START, None) == START
    assert last_sign_ms(START, START + 5) == START + 5


def test_a_merge_is_never_stalled_but_flagged() -> None:
    """MERGING stays MERGING, and says that it hangs (E32)."""
    assert shown("merging", age_s=10) == Classification(VisualState.MERGING)
    assert shown("pushing", age_s=301) == Classification(VisualState.MERGING, stalled=True)


def test_only_what_is_active_is_flagged() -> None:
    """An idle or dead agent says nothing, and that is as it should be."""
    for word in ("idle", "dead", "sleeping"):
        assert not shown(word, age_s=10_000).stalled


def test_thresholds_can_be_set_and_must_make_sense() -> None:
    """In milliseconds; zero means at once."""
    eager = Thresholds(stall_ms=0, spawn_timeout_ms=0)
    assert classify(Observation("running", 5, 5, 1), 5, eager).state is VisualState.RUNNING
    assert classify(Observation("running", 5, 5, 1), 6, eager).state is VisualState.STALLED
    assert classify(Observation("starting", 5), 6, eager).state is VisualState.DEAD
    with pytest.raises(ValueError, match="stall_ms must be at least 0, not -1"):
        Thresholds(stall_ms=-1)


@given(st.text(max_size=8), st.integers(0, 10**7), st.none() | st.integers(0, 10**7), st.none() | st.integers(1, 9))
def test_everything_can_be_shown(word: str, now_ms: int, heard_ms: int | None, pid: int | None) -> None:
    """Any word, any times; the same again is the same."""
    seen = Observation(word, 1_000, heard_ms, pid)
    found = classify(seen, now_ms)
    assert found == classify(seen, now_ms)
    assert found.state in VisualState
    assert found.stalled or found.state is not VisualState.STALLED
