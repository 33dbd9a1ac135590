"""Faults of the disk are named with what to do, and lose nothing that was acknowledged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import interposing
from disk import SAID, DisturbedFleet, store_problems, store_told
from interposing import Fault

pytestmark = pytest.mark.skipif(interposing.library() is None, reason=interposing.MISSING)

SLOW_MS = 20


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[DisturbedFleet]:
    fleet = DisturbedFleet(tmp_path)
    yield fleet
    fleet.sandbox.kill_all()


@pytest.mark.parametrize("fault", SAID, ids=lambda fault: fault.name)
def test_a_store_says_what_is_wrong_with_its_disk_and_loses_nothing(tmp_path: Path, fault: Fault) -> None:
    """Appending, leaving a command, reading, opening and making a log; the campaign's slow disk takes 30 s."""
    assert list(store_problems(fault, store_told(tmp_path, fault, SLOW_MS))) == []


@pytest.mark.parametrize("fault", [Fault.READ_ONLY, Fault.UNSYNCED], ids=lambda fault: fault.name)
def test_a_fleet_outlasts_a_fault_of_its_disk(fleet: DisturbedFleet, fault: Fault) -> None:
    """It waits, or stops with the remedy; every task is closed and merged once, and no process is left."""
    assert list(fleet.tried(fault, SLOW_MS)) == []


def test_what_a_program_should_not_be_told_is_noticed() -> None:
    """A lost entry, an operation that fails although it should not, and an error without a remedy."""
    told = {"append": "", "submit": "", "read": "", "open": "", "make": "", "lost": 1, "goes on": True}
    assert len(list(store_problems(Fault.SLOW, told))) == 1
    assert len(list(store_problems(Fault.SLOW, {**told, "lost": 0, "read": "Error"}))) == 1
    failed = dict.fromkeys(("append", "submit", "open", "make"), f"Full: {SAID[Fault.FULL]}")
    assert list(store_problems(Fault.FULL, {**told, **failed, "lost": 0})) == []
    assert len(list(store_problems(Fault.FULL, {**told, **failed, "lost": 0, "make": "OSError: 28"}))) == 1
