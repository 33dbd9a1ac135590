"""Waiting for triggers: when they are due, by clocks that a test sets; and files that are real."""

import os
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from lifefold.core.fleet.service import trigger
from lifefold.core.kernel import Aggregate, Entity, Event, PersistentMap
from lifefold.effects import AwaitTrigger, Begin, Changed, Cron, Every
from lifefold.interpreters.engine import ActivityContext, EffectContext
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import file_changes, triggers
from lifefold.interpreters.fleet_runner.file_changes import mark_of, root_of
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import Notices
from lifefold.interpreters.fleet_runner.schedules import last_due_ms, next_due_ms
from lifefold.interpreters.fleet_runner.triggers import Attendant, Watched, wait_for_changes, wait_for_time

MINUTE_MS = 60_000


def at(text: str) -> int:
    """Return a moment, written as ``2026-03-28T12:00``, in UTC."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000)


def said(moment_ms: int) -> str:
    """Return a moment as it is written."""
    return datetime.fromtimestamp(moment_ms / 1_000, UTC).isoformat()[:16]


class Watch(ActivityContext):
    """A trigger that is waited for; it keeps what it is told, and refuses what comes after ``most``."""

    def __init__(self, record: trigger.Trigger, entered_ms: int = 0, most: int = 1_000) -> None:
        entity: Entity[Any] = Entity("trigger:1", record, 1, entered_ms)
        within = Aggregate("service/web", entities=PersistentMap({"trigger:1": entity}))
        origin = EffectContext(within, "trigger:1", 1, 0)
        super().__init__(Begin("AwaitTrigger", AwaitTrigger(record.source), 1), origin, cleanup_only=False)
        self.told: list[Any] = []
        self.most = most
        self.news = anyio.Event()

    async def report(self, event: Event) -> bool:
        """Keep it."""
        if len(self.told) >= self.most:
            return False
        self.told.append(event)
        self.news.set()
        self.news = anyio.Event()
        return True


async def until(watch: Watch, wanted: Callable[[list[Any]], bool]) -> None:
    """Wait until what was told is as it is wanted."""
    with anyio.fail_after(60):
        while not wanted(watch.told):
            await watch.news.wait()


# Time


def test_a_cron_trigger_is_due_at_its_times_and_those_that_were_missed_are_one() -> None:
    """From Friday evening on; on Monday at noon it was due last just then."""
    office = Cron("*/5 9-17 * * 1-5")
    friday_ms, monday_ms = at("2026-11-20T17:55"), at("2026-11-23T12:00")
    assert said(next_due_ms(office, friday_ms)) == "2026-11-23T09:00"
    assert last_due_ms(office, friday_ms, friday_ms) == friday_ms
    assert last_due_ms(office, friday_ms, next_due_ms(office, friday_ms) - 1) == friday_ms
    assert last_due_ms(office, friday_ms, monday_ms) == monday_ms
    assert said(last_due_ms(office, friday_ms, monday_ms + 4 * MINUTE_MS)) == "2026-11-23T12:00"


def test_a_cron_trigger_goes_by_the_clocks_of_its_zone() -> None:
    """What is between two and three when clocks go forward comes right after; when they go back it comes once."""
    night = Cron("30 2 * * *", "Europe/Berlin")
    forward_ms = next_due_ms(night, at("2026-03-28T12:00"))
    assert [said(forward_ms), said(next_due_ms(night, forward_ms))] == ["2026-03-29T01:00", "2026-03-30T00:30"]
    back_ms = next_due_ms(night, at("2026-10-24T12:00"))
    assert [said(back_ms), said(next_due_ms(night, back_ms))] == ["2026-10-25T00:30", "2026-10-26T01:30"]
    assert last_due_ms(night, 0, at("2026-10-25T23:00")) == back_ms


@pytest.mark.parametrize("source", [Every(10 * MINUTE_MS), Cron("*/10 * * * *")], ids=["interval", "cron"])
@pytest.mark.anyio
async def test_a_trigger_that_was_due_often_without_a_runner_is_reported_once(
    source: Every | Cron, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait goes on from there, and ends exactly when the next one is due."""
    begun_ms, clock, slept = at("2026-11-20T12:00"), [at("2026-11-20T13:35")], list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += round(seconds * 1_000)

    monkeypatch.setattr(anyio, "sleep", sleep)
    watch = Watch(trigger.Trigger(source=source, last_ms=begun_ms), most=3)
    with anyio.move_on_after(60) as scope:
        monkeypatch.setattr(anyio, "sleep_forever", _cancelling(scope))
        await wait_for_time(source, watch, _unheard, lambda: clock[0])
    assert [said(each.at_ms) for each in watch.told] == ["2026-11-20T13:30", "2026-11-20T13:40", "2026-11-20T13:50"]
    assert sum(slept) == 25 * 60
    assert max(slept) <= triggers.LOOK_MS / 1_000


def _cancelling(scope: anyio.CancelScope) -> Callable[[], Any]:
    async def sleep_forever() -> None:
        scope.cancel()
        await anyio.lowlevel.checkpoint()

    return sleep_forever


@pytest.mark.parametrize("source", [Every(10 * MINUTE_MS), Cron("*/10 * * * *")], ids=["interval", "cron"])
@pytest.mark.anyio
async def test_a_clock_that_was_ahead_holds_no_trigger_up(
    source: Every | Cron, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was due a year from now is due next by the clock of the run, which the waiting handler gets."""
    now_ms, ahead_ms = [at("2026-11-20T12:00")], at("2027-11-20T12:00")

    async def sleep(seconds: float) -> None:
        now_ms[0] += round(seconds * 1_000)
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(anyio, "sleep", sleep)
    watch = Watch(trigger.Trigger(source=source, last_ms=ahead_ms), most=2)
    fleet = load(_fleet(tmp_path), watch=True)
    operators = Notices()
    attendant = Attendant(fleet, FleetFolder(tmp_path / "run.db"), operators, lambda: now_ms[0])
    with anyio.move_on_after(60) as scope:
        monkeypatch.setattr(anyio, "sleep_forever", _cancelling(scope))
        await attendant.await_trigger(AwaitTrigger(source), watch)
    assert [said(each.at_ms) for each in watch.told] == ["2026-11-20T12:10", "2026-11-20T12:20"]
    assert operators.history == []


def _fleet(folder: Path) -> Path:
    file = folder / "fleet.toml"
    service = 'name = "web"\nkind = "service"\ncommand = ["true"]\ntriggers = [{ queue = true }]'
    file.write_text(f'[fleet]\nname = "desk"\n\n[[agents]]\n{service}\n')
    return file


# Files


def test_what_is_there_is_known_by_names_sizes_and_times(tmp_path: Path) -> None:
    """A file that comes, goes, or changes; and what a fleet writes itself is left out."""
    seen = [mark_of(tmp_path, "inbox")]
    for change in (
        lambda: (tmp_path / "inbox" / "deep").mkdir(parents=True),
        lambda: (tmp_path / "inbox" / "deep" / "a.txt").write_text("a"),
        lambda: os.utime(tmp_path / "inbox" / "deep" / "a.txt", ns=(5, 5)),
        lambda: (tmp_path / "inbox" / "deep" / "a.txt").rename(tmp_path / "inbox" / "b.txt"),
        (tmp_path / "inbox" / "b.txt").unlink,
    ):
        change()
        seen.append(mark_of(tmp_path, "inbox"))
    assert seen[0] == seen[1] == seen[-1], "folders are no files"
    assert len(set(seen)) == 4
    (tmp_path / "inbox" / ".lifefold").mkdir()
    (tmp_path / "inbox" / ".lifefold" / "x.db").write_text("x")
    assert mark_of(tmp_path, "inbox") == seen[0]


def test_a_glob_and_a_single_file_mean_what_they_say(tmp_path: Path) -> None:
    """What does not match changes nothing."""
    nothing, alone = mark_of(tmp_path, "src/**/*.py"), mark_of(tmp_path, "one.txt")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "a.txt").write_text("a")
    (tmp_path / "src" / ".git").mkdir()
    (tmp_path / "src" / ".git" / "a.py").write_text("a")
    assert (mark_of(tmp_path, "src/**/*.py"), mark_of(tmp_path, "one.txt")) == (nothing, alone)
    (tmp_path / "src" / "deep" / "a.py").write_text("a")
    (tmp_path / "one.txt").write_text("a")
    assert mark_of(tmp_path, "src/**/*.py") != nothing
    assert mark_of(tmp_path, "one.txt") != alone
    assert root_of(tmp_path, "src/**/*.py") == tmp_path / "src"
    assert root_of(tmp_path, "src/nowhere/*.py") == tmp_path / "src"
    assert root_of(tmp_path, "one.txt") == tmp_path


@pytest.mark.parametrize("path", ["**/*", "here", "here/run.db"])
def test_what_a_fleet_writes_itself_is_no_change(tmp_path: Path, path: str) -> None:
    """Wherever its log is, and by whatever way one comes there; a neighbour with a like name counts."""
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    folder = FleetFolder(tmp_path / "link" / "here" / "run.db")
    before = mark_of(tmp_path, path, folder.own)
    folder.make()
    for name in ("run.db", "run.db-wal", "run.db-shm", "run.db.files/refused.jsonl"):
        (tmp_path / "here" / name).write_text("x")
    assert mark_of(tmp_path, path, folder.own) == before
    assert mark_of(tmp_path, path) != before
    (tmp_path / "here" / "run.db-other").write_text("x")
    assert (mark_of(tmp_path, path, folder.own) != before) is (path != "here/run.db")


@pytest.mark.parametrize("glob", ["**", "docs/**"])
def test_a_glob_that_ends_with_two_stars_has_all_files_below(tmp_path: Path, glob: str) -> None:
    """As it has in a newer Python."""
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    seen = [mark_of(tmp_path, glob)]
    for place in ("docs/a.txt", "docs/deep/b.txt"):
        (tmp_path / place).write_text("x")
        seen.append(mark_of(tmp_path, glob))
    assert len(set(seen)) == 3


@pytest.mark.parametrize("place", ["inbox", "inbox/*.txt", "inbox/new.txt"])
@pytest.mark.anyio
async def test_files_that_change_are_reported_with_what_is_there_then(tmp_path: Path, place: str) -> None:
    """First what there is, which is no change; also in a folder that comes only now."""
    source = Changed(place)
    watch = Watch(trigger.Trigger(source=source))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_changes, Watched(tmp_path, source.path), watch, _unheard, _no_time)
        await until(watch, lambda told: len(told) == 1)
        assert watch.told == [trigger.Noticed(mark_of(tmp_path, place))]
        (tmp_path / "inbox").mkdir()
        (tmp_path / "inbox" / "new.txt").write_text("hello")
        await until(watch, lambda told: told[-1] != told[0])
        await until(watch, lambda told: told[-1].mark == mark_of(tmp_path, place))
        tasks.cancel_scope.cancel()
    assert watch.told[-1].what == f"changed {place}"
    assert watch.told[-1].at_ms == _no_time()


@pytest.mark.anyio
async def test_files_that_changed_without_a_runner_are_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there is what the log says."""
    monkeypatch.setattr(file_changes, "LOOK_MS", 1)
    (tmp_path / "a.txt").write_text("a")
    source, before = Changed("*.txt"), mark_of(tmp_path, "*.txt")
    for n in range(5):
        (tmp_path / f"{n}.txt").write_text("b")
    watch = Watch(trigger.Trigger(source=source, mark=before))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_changes, Watched(tmp_path, source.path), watch, _unheard, _no_time)
        await until(watch, bool)
        tasks.cancel_scope.cancel()
    assert [each.mark for each in watch.told] == [mark_of(tmp_path, "*.txt")]


def _no_time() -> int:
    return 7


def _unheard(why: str) -> None:
    raise AssertionError(why)


@pytest.mark.parametrize("error", [ValueError("no such glob"), RuntimeError("no such loop"), OSError("no such disk")])
@pytest.mark.anyio
async def test_what_cannot_be_watched_is_told_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """And stops no other trigger. The end of the obstacle is reported, too."""
    monkeypatch.setattr(triggers, "AGAIN_S", 0)
    monkeypatch.setattr(file_changes, "LOOK_MS", 100)
    told, failures = list[str](), [error, error, error]

    def mark(folder: Path, path: str, apart: Collection[Path]) -> str:
        if failures:
            raise failures.pop()
        return mark_of(folder, path, apart)

    monkeypatch.setattr(triggers, "mark_of", mark)
    watch = Watch(trigger.Trigger(source=Changed("*.txt")))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_changes, Watched(tmp_path, "*.txt"), watch, told.append, _no_time)
        await until(watch, bool)
        tasks.cancel_scope.cancel()
    assert watch.told == [trigger.Noticed(mark_of(tmp_path, "*.txt"))]
    assert told == [str(error), ""]


@pytest.mark.anyio
async def test_an_unknown_due_time_is_shown_once_and_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a zone that the machine does not know any more."""
    told, slept = list[str](), list[float]()
    with anyio.move_on_after(60) as scope:

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 3:
                scope.cancel()
            await anyio.lowlevel.checkpoint()

        monkeypatch.setattr(anyio, "sleep", sleep)
        source = Cron("* * * * *", "Nowhere/Atlantis")
        await wait_for_time(source, Watch(trigger.Trigger(source=source, last_ms=1)), told.append, _no_time)
    assert slept == [triggers.LOOK_MS / 1_000] * 3
    assert len(told) == 1
    assert "Nowhere/Atlantis" in told[0]
