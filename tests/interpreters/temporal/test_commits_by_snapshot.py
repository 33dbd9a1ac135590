"""A brain that begins with a snapshot answers its workflows as one that has folded the whole log."""

import pytest

import kiln
from engine_harness import START_MS, MemoryLog, TappedStore, VirtualClock
from kiln import Called, Cooled, Fired, Lit, Smashed
from lifefold.core.kernel import Aggregate, Envelope, Event, HandlerFailed, encode
from lifefold.interpreters.engine.ledger import LogMismatchError
from lifefold.interpreters.temporal.commits import Commits
from lifefold.interpreters.temporal.wire import Commit, Committed, Opened, Opening, Told

pytestmark = pytest.mark.anyio


def text(event: Event, key: str = "", **named: int | str) -> str:
    """Return an input for the kiln as a workflow keeps it."""
    return encode(Envelope("kiln", event, 0, "potter", key=key, **named)).decode()  # type: ignore[arg-type]


class Brain:
    """A brain that takes a snapshot before each batch, on a log that outlives it."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.clock = VirtualClock()
        self.store: TappedStore
        self.commits: Commits

    async def begin(self, every: int = 1) -> Commits:
        """Let another process be the brain."""
        self.store = TappedStore(self.log.open())
        self.commits = Commits(kiln.system, self.store, clock=self.clock, snapshot_every=every)
        await self.commits.load()
        return self.commits

    async def kept(self) -> dict[str, int]:
        """Return the versions of the aggregates in the snapshot."""
        form = f"{self.commits.ledger.snapshots.form}-{self.commits.ledger.rules}"
        resumption = await self.store.resumed(form)
        return {part.stream: part.version for part in resumption.parts if not part.ref and part.version}


@pytest.fixture
async def brain() -> Brain:
    """A brain with an open kiln."""
    brain = Brain()
    commits = await brain.begin()
    for name, envelope in kiln.opened(START_MS):
        await commits.commit(Commit(name, 0, 0, (encode(envelope).decode(),)))
    return brain


async def test_a_snapshot_has_what_is_performed(brain: Brain) -> None:
    """Before the next batch all that is in the log is kept, but for an aggregate with effects on their way."""
    await brain.commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    assert await brain.kept() == {"kiln/a": 1, "tally": 1}
    await brain.commits.commit(Commit("kiln/a", 2, 1, (text(Called()),)))
    assert await brain.kept() == {"kiln/a": 1, "tally": 1}
    await brain.commits.commit(Commit("kiln/a", 3, 3, (text(Smashed()),)))
    assert (await brain.kept())["kiln/a"] == 3


async def test_an_answer_that_was_lost_is_given_again_by_a_snapshot(brain: Brain) -> None:
    """The snapshot has the entries that the workflow does not know, so they are read from the log."""
    await brain.commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    asked = Commit("kiln/a", 2, 2, (text(Fired(3), key="fired", slot="Fire", generation=2),))
    first = await brain.commits.commit(asked)
    assert any(isinstance(each, Told) for each in first.wanted)
    await brain.commits.commit(Commit("tally", 1, 1))  # the snapshot of the kiln is taken before this batch
    kept = (await brain.kept())["kiln/a"]
    assert kept == 3
    commits = await brain.begin()
    for _ in range(2):
        assert await commits.commit(asked) == first
    later = await commits.commit(Commit("kiln/a", 3, 3, (text(Cooled()),)))
    assert all(not isinstance(each, Told) for each in later.wanted)


async def restarted(every: int) -> tuple[Opened, Committed]:
    """Return what a restarted brain says to a new workflow, and to its first commit."""
    brain = Brain()
    commits = await brain.begin(every)
    for name, envelope in kiln.opened(START_MS):
        await commits.commit(Commit(name, 0, 0, (encode(envelope).decode(),)))
    await commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    fired = text(Fired(3), key="fired", slot="Fire", generation=2)
    await commits.commit(Commit("kiln/a", 2, 2, (fired,)))
    await commits.commit(Commit("kiln/a", 3, 3, (text(Called()),)))
    await commits.commit(Commit("tally", 1, 1))
    assert bool(await brain.kept()) is (every == 1)
    commits = await brain.begin(every)
    opened = await commits.open(Opening("kiln/a"))
    return opened, await commits.commit(Commit("kiln/a", opened.committed.version, 3, (opened.recovery,)))


async def test_a_log_owes_the_same_with_and_without_a_snapshot() -> None:
    """Messages that are not accepted, effects that are not performed, and the recovery of what runs."""
    opened, again = await restarted(1)
    assert (opened, again) == await restarted(1_000)
    assert [type(each) for each in opened.committed.wanted] == [Told]


async def test_the_notes_of_an_observer_are_kept(brain: Brain) -> None:
    """Commands that read the log by its snapshot need them."""
    noted: list[str] = []

    def notes(of: Aggregate) -> bytes:
        noted.append(of.name)
        return b"noted"

    brain.commits.keep_notes(notes)
    await brain.commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    form = f"{brain.commits.ledger.snapshots.form}-{brain.commits.ledger.rules}"
    parts = (await brain.store.resumed(form)).parts
    assert "kiln/a" in noted
    assert [part.data for part in parts if part.ref == "(notes)"]


async def test_failed_attempts_are_in_the_snapshot(brain: Brain) -> None:
    """The next attempt of a handler counts them."""
    await brain.commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    failed = HandlerFailed("Fire", 1, "no clay", "retry", slot="Fire", generation=2)
    await brain.commits.commit(Commit("kiln/a", 2, 2, (text(failed),)))
    await brain.commits.commit(Commit("tally", 1, 1))
    assert (await brain.kept())["kiln/a"] == 3
    commits = await brain.begin()
    assert [each.event for each in commits.failures.of_running(commits.aggregates["kiln/a"])] == [failed]


async def test_an_orderly_end_takes_a_snapshot(brain: Brain) -> None:
    """The next brain folds nothing then that is settled."""
    await brain.commits.finish()
    assert await brain.kept() == {"kiln/a": 1, "tally": 1}


async def test_a_workflow_of_another_log_is_refused(brain: Brain) -> None:
    """It knows entries that this log does not have. Nothing is decided any more."""
    for name in ("kiln/a", "kiln/b"):
        with pytest.raises(LogMismatchError, match="the workflow is of another log of this fleet"):
            await brain.commits.commit(Commit(name, 2, 0, (text(Lit()),)))
    assert isinstance(brain.commits.broken, LogMismatchError)
    assert len(await brain.store.read()) == 2


async def test_what_follows_is_settled_before_a_commit_is_answered(brain: Brain) -> None:
    """Hosts must know a changed plan before a workflow begins what follows from it."""
    order: list[str] = []

    async def settle() -> None:
        order.append(f"settled {len(await brain.store.read())}")

    commits = Commits(kiln.system, brain.store, clock=brain.clock, settle=settle)
    await commits.load()
    await commits.commit(Commit("kiln/a", 1, 1, (text(Lit()),)))
    order.append("answered")
    assert order == ["settled 3", "answered"]


async def test_all_commands_of_the_beginning_are_heard_once_they_are_decided(brain: Brain) -> None:
    """Before that a fleet does not count as one that waits for its operators."""
    await brain.store.submit("kiln/a", text(Lit()).encode())
    assert not brain.commits.has_heard
    assert brain.commits.notice(await brain.commits.arrived()) == ["kiln/a"]
    assert not brain.commits.has_heard
    await brain.commits.commit(Commit("kiln/a", 1, 1))
    assert brain.commits.has_heard
