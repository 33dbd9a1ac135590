"""Durable steps beside other libraries: each contender goes the same way, and a missing peer is named."""

from pathlib import Path

import pytest

from benchmarks import durable_beside
from benchmarks.durable import PEERS, work
from benchmarks.report import plain


def test_the_steps_are_those_of_sessions() -> None:
    """Four steps are a session, and the prompt is there from the first to the last of them."""
    states = [work.after(steps) for steps in range(6)]
    assert [state["phase"] for state in states] == [
        "Preparing", "Prompting", "Spawning", "Running", "Preparing", "Prompting",
    ]  # fmt: skip
    assert [state["sessions"] for state in states] == [0, 0, 1, 1, 1, 1]
    assert [bool(state["prompt"]) for state in states] == [False, False, True, True, True, False]


def test_the_engine_is_measured_without_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report names those that are not installed, and has no target about them."""

    def no(_of: object) -> bool:
        return False

    monkeypatch.setattr(durable_beside, "is_installed", no)
    monkeypatch.setattr(durable_beside, "must_be_a_disk", no)
    found = durable_beside.measure(tmp_path, rounds=1, steps=8)
    assert found.targets == ()
    assert [row[0] for row in found.tables[0].rows] == ["lifefold"]
    assert int(found.tables[0].rows[0][-1]) > 8
    assert all(name in plain(found) for name in PEERS)


@pytest.mark.parametrize("package", sorted(PEERS.keys() - {"temporalio"}))
def test_a_peer_takes_the_same_steps(package: str, tmp_path: Path) -> None:
    """Each program compares its last state itself. Temporal's server does not start in time on a loaded machine."""
    if not durable_beside.is_installed(package):
        pytest.skip(f"{package} is not installed (extra peers)")
    found = durable_beside.measured(PEERS[package], tmp_path, 8)
    assert (found.steps, found.seconds > 0) == (8, True)
