"""One reducer everywhere: ``reduce``, ``react``, the engine, and a replay of its log reach the same states."""

from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agreement import fold_with_ledger, fold_with_react
from engine_harness import START_MS, Log, MemoryLog, Pottery, SqliteLog
from kiln import Called, Doused, Fired, Lit, Smashed, Stoked, system
from lifefold.core.kernel import Aggregate, Event, Reaction, Refusal
from lifefold.interpreters.store import Entry

Step = tuple[str, Event] | int | None
"""Something said or reported to a kiln, so much time that passes, or a crash."""

KILNS = st.sampled_from(["kiln/a", "kiln/b"])
SAID: st.SearchStrategy[Event] = st.one_of(
    st.sampled_from([Lit(), Lit(), Lit(), Doused(), Smashed(), Stoked(), Fired()]),
    st.builds(Called, st.text(max_size=4)),
)
REPORTED = st.sampled_from([Stoked(), Stoked(), Fired(), Fired(3)])
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(KILNS, SAID),
        st.tuples(st.just("the last fire"), REPORTED),
        st.integers(1, 700),
        st.none(),
    ),
    max_size=25,
)


async def play(log: Log, steps: list[Step]) -> tuple[Pottery, list[Aggregate]]:
    """Let engines run through the steps; return what they have seen."""
    pottery = Pottery(log)
    rounds: list[list[Step]] = [[]]
    for step in steps:
        if step is None:
            rounds.append([])
        rounds[-1].append(step)
    for each in rounds:
        async with pottery.running("a", "b"):
            for step in each:
                await take(pottery, step)
    return pottery, [outcome.aggregate for _, outcome in pottery.seen if isinstance(outcome, Reaction)]


async def take(pottery: Pottery, step: Step) -> None:
    """Let one step happen."""
    match step:
        case int(passed_ms):
            pottery.clock.set(pottery.clock.now_ms() + passed_ms)
            await pottery.quiet()
        case ("the last fire", event):
            if pottery.hands.fires:
                await pottery.hands.fires[-1].report(event)
                await pottery.quiet()
        case (name, event):
            await pottery.say(event, name)
        case None:
            pass


on_both_back_ends = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@on_both_back_ends
@pytest.mark.parametrize("kind", ["memory", pytest.param("sqlite", marks=pytest.mark.campaign)])
@given(steps=STEPS)
def test_all_worlds_come_to_the_same_states(backend: str, kind: str, steps: list[Step]) -> None:
    """Whatever happens to the kilns, crashes included: state by state and digest by digest."""
    with TemporaryDirectory() as folder:
        log: Log = MemoryLog() if kind == "memory" else SqliteLog(Path(folder) / "log.db")
        pottery, seen = anyio.run(play, log, steps, backend=backend)
        entries = anyio.run(pottery.entries, backend=backend)
        log.close()
    by_react = fold_with_react(system, entries)
    assert by_react == fold_with_ledger(system, entries)
    assert by_react == seen
    assert pottery.engine.aggregates == {each.name: each for each in by_react}
    assert [each.at_ms for each in entries] == sorted(each.at_ms for each in entries)


def test_a_run_says_the_same_on_both_back_ends_and_both_stores(tmp_path: Path) -> None:
    """The same steps, one after the other, leave the same log, byte for byte, wherever they are run."""
    steps: list[Step] = [
        ("kiln/a", Lit()),
        ("the last fire", Stoked()),
        ("kiln/b", Lit()),
        ("the last fire", Fired(2)),
        300,
        ("kiln/a", Doused()),
        None,
        ("kiln/a", Lit()),
        ("kiln/a", Called("x")),
        900,
    ]
    logs: list[Log] = [MemoryLog(), MemoryLog(), SqliteLog(tmp_path / "a.db"), SqliteLog(tmp_path / "b.db")]
    written: list[list[Entry]] = []
    for log, backend in zip(logs, ["asyncio", "trio"] * 2, strict=True):
        pottery, _ = anyio.run(play, log, steps, backend=backend)
        written.append(
            sorted(anyio.run(pottery.entries, backend=backend), key=lambda entry: (entry.stream, entry.version))
        )
        log.close()
    assert written[0] == written[1] == written[2] == written[3]
    assert len(written[0]) > 15


@on_both_back_ends
def test_a_refusal_is_no_part_of_the_log(backend: str) -> None:
    """What the engine refuses is seen, and is nowhere in the log."""
    steps: list[Step] = [("kiln/a", Fired()), ("kiln/a", Lit()), ("kiln/a", Lit())]
    pottery, _ = anyio.run(play, MemoryLog(), steps, backend=backend)
    refused = [outcome.kind for _, outcome in pottery.seen if isinstance(outcome, Refusal)]
    assert refused == ["unsolicited", "illegal"]
    entries = anyio.run(pottery.entries, "kiln/a", backend=backend)
    assert [entry.at_ms for entry in entries] == [START_MS] * 2
