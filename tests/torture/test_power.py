"""Losses of power lose nothing that was acknowledged: a recorded run is cut, and what is left is opened."""

from pathlib import Path

import pytest

import interposing
from power import PowerCampaign, Recording
from recording import Disk, Op, Record
from trials import go_on, kept

pytestmark = pytest.mark.skipif(interposing.library() is None, reason=interposing.MISSING)

CUTS = 24
"""The number of cuts of each recording here; the campaign makes more."""


def test_a_loss_of_power_after_any_operation_loses_nothing_acknowledged() -> None:
    """The cuts are spread over the making of a log, two writers, checkpoints, and a deletion of the file."""
    recording = Recording(0)
    wrong = [recording.cut(len(recording.records) * n // CUTS, n)[1] for n in range(1, CUTS + 1)]
    assert wrong == [[]] * CUTS


def test_a_flush_that_has_failed_loses_nothing_of_the_next_writer() -> None:
    """The system can drop what was written before a failed flush, and say so once only."""
    recording = Recording(2, fails=True)
    failed = next(n for n, each in enumerate(recording.records) if each.op is Op.SYNCED and each.first)
    told = [n for n, each in enumerate(recording.records[failed:], failed + 1) if b'"entries"' in each.data][:3]
    assert [recording.cut(place, seed)[1] for place in told for seed in range(8)] == [[]] * 8 * len(told)


def test_a_promise_that_is_too_weak_is_noticed() -> None:
    """SQLite's ``synchronous=NORMAL`` keeps the chain whole, and loses the newest acknowledged entries."""
    recording = Recording(0, "NORMAL")
    wrong = [each for n in range(1, CUTS + 1) for each in recording.cut(len(recording.records) * n // CUTS, n)[1]]
    assert any("was acknowledged" in each for each in wrong)
    assert not any("damaged" in each or "not as written" in each for each in wrong)


def _apply(disk: Disk, *records: tuple[Op, int, int, str, bytes]) -> None:
    for op, fd, first, name, data in records:
        disk.apply(Record(op, fd, first, 0, name, data))


def test_what_was_not_flushed_is_torn_at_sectors(tmp_path: Path) -> None:
    """Some seeds keep the first sector of a write only, and some the last one only."""
    disk = Disk()
    _apply(disk, (Op.OPENED, 3, 0, "/d/file", b""), (Op.WRITTEN, 3, 0, "", b"a" * 1_024), (Op.SYNCED, 3, 0, "", b""))
    disk.apply(Record(Op.OPENED, 4, 0, 1, "/d", b""))
    _apply(disk, (Op.SYNCED, 4, 0, "", b""), (Op.WRITTEN, 3, 0, "", b"b" * 1_024))
    found = set[bytes]()
    for seed in range(40):
        disk.cut(seed, tmp_path)
        found.add((tmp_path / "file").read_bytes())
    assert found == {first * 512 + last * 512 for first in (b"a", b"b") for last in (b"a", b"b")}


def test_a_name_is_durable_with_its_folder_only(tmp_path: Path) -> None:
    """A flush of the file itself keeps its contents, and not its name."""
    disk = Disk()
    _apply(disk, (Op.OPENED, 3, 0, "/d/file", b""), (Op.WRITTEN, 3, 0, "", b"a"), (Op.SYNCED, 3, 0, "", b""))
    there = set[bool]()
    for seed in range(20):
        folder = tmp_path / str(seed)
        folder.mkdir()
        disk.cut(seed, folder)
        there.add((folder / "file").exists())
    assert there == {False, True}


def test_a_campaign_is_continued(tmp_path: Path) -> None:
    """The results of the trials so far are kept, and a later run makes the others."""
    campaign = PowerCampaign()
    assert go_on(campaign, 2, tmp_path).trials == 2
    assert go_on(campaign, 5, tmp_path).counted == {"cuts": 5}
    assert (kept("power", tmp_path).trials, sum(kept("power", tmp_path).points.values())) == (5, 5)
