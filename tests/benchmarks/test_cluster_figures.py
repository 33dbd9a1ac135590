"""The figures of engines side by side, at a size that says nothing about their rates."""

from pathlib import Path

import pytest

from benchmarks import cluster
from benchmarks.cluster import BOTH, POSTGRES, SQLITE, TEMPORAL, Sizes
from benchmarks.on_temporal import tool_calls
from benchmarks.report import plain
from lifefold.core.kernel import Step
from lifefold.core.lifecycles import turn

SMALL = Sizes(rounds=1, sessions=1, together=2, burst=120, idle=20, alive=3, failovers=1, detection_s=2)


def on_a_disk(_of: object) -> None:
    """Take any folder for one on a disk."""


@pytest.mark.cluster
def test_every_figure_is_measured_where_the_servers_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines have the same agents, and a burst is in the log as a whole. The load is a part of the report."""
    monkeypatch.setattr(cluster, "must_be_a_disk", on_a_disk)
    found = cluster.measure(tmp_path, SMALL)
    if missing := [note for note in found.notes if note.startswith("Not measured")]:
        pytest.skip(" ".join(missing))
    rates, idle, bursts, alive, failover = found.tables
    assert [row[0] for row in rates.rows] == [SQLITE, TEMPORAL, POSTGRES, BOTH]
    assert [row[0] for row in idle.rows] == [SQLITE, TEMPORAL]
    assert [row[:2] for row in bursts.rows] == [("1", "120"), ("3", "120")]
    assert alive.rows[0][0] == "3"
    assert failover.rows[2] == ("overlap", "0.000 (0.000 to 0.000)")
    assert [target.what for target in found.targets] == ["a worker's burst in one signal"]
    assert "Load before and after" in plain(found)


def test_a_burst_is_one_legal_turn() -> None:
    """Each of its reports is accepted, so a log with all of them has nothing refused."""
    record = turn.Turn(agent="a")
    for event in tool_calls(9):
        step = turn.machine.step(record, event)
        assert isinstance(step, Step)
        record = step.record
    assert record.tool_calls == 3
