"""Commits without a server: what a repeated one answers, and what a log owes to a workflow that begins."""

import pytest

import kiln
from engine_harness import START_MS, MemoryLog, TappedStore, VirtualClock
from kiln import Called, Fired, Lit, Smashed
from lifefold.core.kernel import Envelope, Event, encode
from lifefold.interpreters.store import Batch, StoreError
from lifefold.interpreters.temporal.commits import Commits
from lifefold.interpreters.temporal.wire import (
    Commit,
    Due,
    Opening,
    Place,
    Requested,
    Slot,
    Started,
    Stopped,
    TimerSet,
    Told,
)

pytestmark = pytest.mark.anyio

FIRE = Slot("kiln", "Fire", 2)


def text(event: Event, key: str = "", **named: int | str) -> str:
    """Return an input for the kiln as a workflow keeps it."""
    return encode(Envelope("kiln", event, 0, "potter", key=key, **named)).decode()  # type: ignore[arg-type]


class Writer:
    """Commits on a log that outlives them."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.clock = VirtualClock()
        self.commits: Commits
        self.store: TappedStore

    async def begin(self) -> Commits:
        """Let another process be the writer."""
        self.store = TappedStore(self.log.open())
        self.commits = Commits(kiln.system, self.store, clock=self.clock, pools=lambda name: f"pool of {name}")
        await self.commits.load()
        return self.commits


@pytest.fixture
async def writer() -> Writer:
    """A writer with an open kiln."""
    writer = Writer()
    commits = await writer.begin()
    for name, envelope in kiln.opened(START_MS):
        await commits.commit(Commit(name, 0, 0, (encode(envelope).decode(),)))
    return writer


async def test_a_commit_answers_with_what_is_wanted(writer: Writer) -> None:
    """Lighting the kiln begins the fire and requests an effect; both are references into the log."""
    committed = await writer.commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    assert (committed.version, committed.answers) == (2, ("",))
    assert committed.wanted == (Requested(Place(2, 0)), Started(FIRE, Place(2, 1)))


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_repeated_commit_answers_the_same_and_writes_nothing(writer: Writer, *, is_restarted: bool) -> None:
    """The first try may have written, and its answer may be lost: also with the process of the writer."""
    asked = Commit("kiln/a", 1, 1, (text(Lit(), key="lit"), text(Called(), key="call")))
    first = await writer.commits.commit(asked)
    entries = len(await writer.store.read())
    commits = await writer.begin() if is_restarted else writer.commits
    assert await commits.commit(asked) == first
    assert len(await writer.store.read()) == entries == 4


async def test_an_answer_has_no_more_than_what_the_workflow_does_not_know(writer: Writer) -> None:
    """A later commit says that the workflow knows the earlier answer."""
    await writer.commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    committed = await writer.commits.commit(Commit("kiln/a", 2, 1, (text(Smashed()),)))
    assert committed.wanted == (Stopped(FIRE, Place(3, 0)),)


async def test_a_refused_and_an_unreadable_input_get_their_reasons(writer: Writer) -> None:
    """Neither is in the log, and neither disturbs the others."""
    spoilt = text(Lit()).replace("Lit", "Lost")
    committed = await writer.commits.commit(Commit("kiln/a", 1, 1, (text(Fired()), spoilt, text(Called()))))
    assert [bool(answer) for answer in committed.answers] == [True, True, False]
    assert committed.version == 2


async def test_a_report_becomes_a_message_and_a_timer(writer: Writer) -> None:
    """The end of the fire tells the tally, and sets both timers, each with the time that is left by this clock."""
    await writer.commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    committed = await writer.commits.commit(
        Commit("kiln/a", 2, 1, (text(Fired(3), key="fired", slot="Fire", generation=2),))
    )
    told = [each for each in committed.wanted if isinstance(each, Told)]
    timers = {each.of.slot: each.left_ms for each in committed.wanted if isinstance(each, TimerSet)}
    assert [each.receiver for each in told] == ["tally"]
    assert sorted(timers.values()) == [kiln.RESTING_MS, kiln.COOLING_MS]


async def test_a_timer_that_is_not_due_by_this_clock_comes_back(writer: Writer) -> None:
    """The clock of the server may be ahead: a timer never fires before its deadline in the log."""
    due = Due(Slot("kiln", "Cooled", 3), START_MS + 700)
    committed = await writer.commits.commit(Commit("kiln/a", 1, 1, due=(due,)))
    assert committed.early == (TimerSet(due.of, START_MS + 700, 700),)
    assert committed.version == 1


async def test_a_log_owes_a_new_workflow_its_effects_and_the_recovery(writer: Writer) -> None:
    """A log that was local has effects that may not be performed, and activities that are requested again."""
    await writer.commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    commits = await writer.begin()
    opened = await commits.open(Opening("kiln/a"))
    assert opened.pool == "pool of kiln/a"
    assert opened.committed.version == 2
    assert opened.committed.wanted == (Requested(Place(2, 0)),)
    again = await commits.commit(Commit("kiln/a", 2, 1, (opened.recovery,)))
    assert again.wanted == (Started(FIRE, Place(3, 0)),)


async def test_nothing_is_decided_after_an_error_of_the_store(writer: Writer) -> None:
    """The ledger is ahead of the log then, so the process must end."""

    async def break_it(_batch: Batch) -> None:
        raise StoreError("the disk is gone")

    writer.store.before = break_it
    for _ in range(2):
        with pytest.raises(StoreError, match="the disk is gone"):
            await writer.commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    assert isinstance(writer.commits.broken, StoreError)
    assert len(await writer.store.read()) == 2
