"""Document 002's interface under pressure: eight threads, a thousand tasks, and ten thousand odd calls."""

import asyncio
import itertools
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest

from lifefold.core.lifecycles import process
from lifefold.interpreters.facades.process import (
    ProcessLifecycle,
    ProcessState,
    ProcessTransition,
    SnapshotError,
    StateError,
)
from process_handle import EDGES, lifecycle

# Threads


def chained(history: list[ProcessTransition]) -> bool:
    """Tell whether each transition begins where the one before it ended, is in the table, and has the next number."""
    legal = all(made.to_state.value in EDGES[made.from_state.value] for made in history)
    numbered = [made.seq for made in history] == list(range(1, len(history) + 1))
    return legal and numbered and all(a.to_state is b.from_state for a, b in itertools.pairwise(history))


def hammer(lc: ProcessLifecycle, seed: int, wanted: int, *, looped: bool) -> int:
    """Make a thousand moves that succeed, from one thread, by random targets; return how many did."""
    chance = random.Random(seed)  # noqa: S311 - a test's dice
    targets = list(ProcessState)
    done = 0

    async def by_loop() -> None:
        nonlocal done
        while done < wanted:
            try:
                await lc.transition(chance.choice(targets), metadata={"seed": seed})
                done += 1
            except StateError:
                await asyncio.sleep(0)

    def by_call() -> None:
        nonlocal done
        while done < wanted:
            try:
                lc.move(chance.choice(targets), metadata={"seed": seed})
                done += 1
            except StateError:
                continue

    if looped:
        asyncio.run(by_loop())
    else:
        by_call()
    return done


def test_eight_threads_make_one_legal_chain() -> None:
    """8 threads, half of them with loops of their own, 1,000 transitions each: none lost, none doubled (C1)."""
    lc = ProcessLifecycle()
    threads = [
        threading.Thread(target=hammer, args=(lc, seed, 1_000), kwargs={"looped": bool(seed % 2)}) for seed in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    history = lc.history
    assert len(history) == 8_000
    assert chained(history)
    assert history[-1].to_state is lc.state
    assert {seed: [made.metadata["seed"] for made in history].count(seed) for seed in range(8)} == dict.fromkeys(
        range(8), 1_000
    )
    assert ProcessLifecycle.from_snapshot(lc.snapshot()).state is lc.state


def test_of_many_threads_that_expect_the_same_state_one_wins() -> None:
    """A hundred rounds of eight threads: the expectation is checked when the move is made, not before (C2)."""
    lc = lifecycle("starting")
    start, wins = threading.Barrier(8), list[str]()

    def contend() -> None:
        for _ in range(100):
            start.wait()
            for source, target in (("starting", "running"), ("running", "stopping"), ("stopping", "stopped")):
                try:
                    lc.move(ProcessState(target), expected_from=ProcessState(source))
                    wins.append(target)
                except StateError:
                    continue
            start.wait()
            if lc.state is ProcessState.STOPPED:
                try:
                    lc.move(ProcessState.STARTING, expected_from=ProcessState.STOPPED)
                except StateError:
                    continue

    threads = [threading.Thread(target=contend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [wins.count(target) for target in ("running", "stopping", "stopped")] == [100] * 3
    assert chained(lc.history)


def test_many_tasks_make_one_legal_chain() -> None:
    """A thousand tasks at once in one loop; nothing is made half way (C1)."""
    lc = ProcessLifecycle(ProcessState.RUNNING)

    async def all_at_once() -> list[object]:
        targets = [ProcessState.SUSPENDED, ProcessState.RUNNING, ProcessState.AWAITING]
        return await asyncio.gather(
            *(lc.transition(targets[number % 3], reason=str(number)) for number in range(1_000)), return_exceptions=True
        )

    results = asyncio.run(all_at_once())
    assert {type(result) for result in results} == {ProcessTransition, StateError}
    assert [made for made in results if isinstance(made, ProcessTransition)] == lc.history
    assert chained(lc.history)


class Copied:
    """Something that can be copied so many times, all its copies together, and does something each time."""

    def __init__(self, times: int, each_time: Callable[[], object]) -> None:
        self.left, self.each_time = [times], each_time

    def __deepcopy__(self, memo: object) -> "Copied":
        if not self.left[0]:
            raise RuntimeError("not once more")
        self.left[0] -= 1
        self.each_time()
        copied = Copied(0, self.each_time)
        copied.left = self.left
        return copied


@pytest.mark.parametrize("times", range(6))
def test_metadata_that_cannot_be_copied_leave_neither_a_transition_nor_a_gap(times: int) -> None:
    """However often it works: a move is made and recorded, or it is neither (C13)."""
    lc = lifecycle()
    try:
        lc.move(ProcessState.STARTING, metadata={"odd": Copied(times, lambda: None)})
    except TypeError:
        assert (lc.state, lc.history) == (ProcessState.CREATED, [])
    else:
        assert (lc.state, lc._made, len(lc._history)) == (ProcessState.STARTING, 1, 1)


def test_a_move_is_copied_twice() -> None:
    """Once for the history and once for the caller; metadata cost no more."""
    copied = list[int]()
    lifecycle().move(ProcessState.STARTING, metadata={"counted": Copied(9, lambda: copied.append(1))})
    assert len(copied) == 2


def test_no_call_waits_for_metadata_that_are_being_copied() -> None:
    """Copying runs code of theirs: another thread may use the process meanwhile, when it moves and when it is read."""
    lc, waited = lifecycle("starting"), list[bool]()

    def move() -> None:
        with suppress(StateError):
            lc.move(ProcessState.RUNNING, expected_from=ProcessState.SUSPENDED)

    def use() -> None:
        other = threading.Thread(target=move)
        other.start()
        other.join(5)
        waited.append(other.is_alive())

    lc.move(ProcessState.RUNNING, metadata={"slow": Copied(9, use)})
    assert lc.history
    lc.snapshot()
    assert waited == [False] * 4


def test_a_time_that_cannot_be_written_down_leaves_neither_a_transition_nor_a_gap() -> None:
    """The record is made before the move counts, so a clock that is odd prevents both."""
    now = [0]
    lc = lifecycle("starting", clock=lambda: now[0])
    now[0] = 10**30
    with pytest.raises(OverflowError):
        lc.move(ProcessState.RUNNING)
    assert (lc.state, len(lc.history)) == (ProcessState.STARTING, 1)


# Whatever may be given


class Odd:
    """Something that can neither be compared nor copied nor printed."""

    def __deepcopy__(self, memo: object) -> "Odd":
        raise RuntimeError("not me")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


ODD: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 3.5, float("nan"), 10**30, "", "RUNNING", "asleep", "\ud800", "x" * 10_000, b"running", [], {},
    (), set[Any](), object(), Odd(), print, int, ProcessState, threading.Lock(), {"a": Odd()}, {1: 2},
    {"a": threading.Lock()}, {"deep": {"er": [1, {2, 3}]}}, process.State.RUNNING, iter(()), Ellipsis, NotImplemented,
)  # fmt: skip


def test_ten_thousand_odd_calls_raise_what_is_documented_and_leave_a_legal_history() -> None:
    """Whatever is given to any method, only StateError and TypeError come out, and nothing changes by a refusal."""
    chance = random.Random(2)  # noqa: S311 - a test's dice
    given = (*ODD, *ProcessState)
    lc = ProcessLifecycle()
    outcomes = dict.fromkeys(("made", "state", "type"), 0)
    for _ in range(10_000):
        if chance.random() < 0.2:
            assert isinstance(lc.can_transition(chance.choice(given)), bool)
            continue
        target = chance.choice((chance.choice(given), *ProcessState))
        reason = chance.choice((chance.choice(ODD), "", "why", "because", "so"))
        metadata: Any = chance.choice((chance.choice(ODD), None, {}, {"a": 1}, {"b": 2}))
        expected = chance.choice((chance.choice(given), None, None, None, lc.state))
        before = (lc.state, lc._made)
        try:
            lc.move(target, reason, metadata, expected)
            outcomes["made"] += 1
        except StateError:
            outcomes["state"] += 1
            assert (lc.state, lc._made) == before
        except TypeError:
            outcomes["type"] += 1
            assert (lc.state, lc._made) == before
    assert min(outcomes.values()) > 500, outcomes
    assert chained(lc.history)


def test_ten_thousand_odd_snapshots_raise_what_is_documented() -> None:
    """Whatever is to be restored, only SnapshotError comes out."""
    chance = random.Random(3)  # noqa: S311 - a test's dice
    fields = ("state", "history", "dropped")
    parts = ("from_state", "to_state", "timestamp", "reason", "metadata")
    (written,) = lifecycle("starting").snapshot()["history"]
    refused = 0
    for _ in range(10_000):
        entry = written | {chance.choice(parts): chance.choice(ODD)}
        snapshot = {"state": "starting", "history": [entry]} | {chance.choice(fields): chance.choice((*ODD, [entry]))}
        try:
            ProcessLifecycle.from_snapshot(chance.choice((snapshot, snapshot, *ODD)), strict=chance.random() < 0.5)
        except SnapshotError:
            refused += 1
    assert refused > 5_000
