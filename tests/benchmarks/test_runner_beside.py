"""The benchmark of a run beside a desk works: its short form runs real fleets, and has both targets."""

import pytest

from benchmarks import runner_beside


def test_a_run_is_measured_beside_a_desk_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time is asserted: a loaded machine tells none."""
    monkeypatch.setattr(runner_beside, "TASKS", 2)
    monkeypatch.setattr(runner_beside, "ROUNDS", 1)
    report = runner_beside.measure()
    (runs,) = report.tables
    assert [row[0] for row in runs.rows] == ["beside a desk", "alone"]
    assert [each.wanted for each in report.targets] == ["below 1.10 x"] * 2
    assert all(" s (" in cell for row in runs.rows for cell in row[1:])
