"""A report that a stopped engine has not decided on is not lost: the next engine gets it from the same process."""

from typing import Any

import pytest

from lifefold.core.kernel import Event
from lifefold.interpreters.engine import ActivityContext
from lifefold.interpreters.engine.activities import RunningActivity
from lifefold.interpreters.simulate import Faults
from lifefold.interpreters.simulate.engine_handlers import Handlers
from lifefold.interpreters.simulate.scheduler import Part, Process
from pottery_engine import pottery

STOPPING = Faults({"slow handler": 0.9, "stopped": 0.3}, swarm=False)
"""Effects take long, so reports arrive while an engine performs the last ones before it stops."""


class Reports:
    """The reports of handlers on which a stopped engine has not decided, and those of them that count as heard."""

    def __init__(self) -> None:
        self.stopped = 0
        self.lost: list[tuple[Part, int]] = []
        self._place: dict[int, int] = {}
        """By the identity of an activity: the place of the report without a decision among those of its process."""

    def refused(self, activity: RunningActivity, process: Process, event: Event) -> None:
        """Note a report that a stopped engine has refused."""
        self.stopped += 1
        self._place[id(activity)] = next(n for n, each in enumerate(process.said) if each.event == event)

    def left(self, part: Part, process: Process, activity: ActivityContext) -> None:
        """Note what a process counts as heard when its handler leaves it."""
        place = self._place.pop(id(activity), None)
        if place is not None and process.heard > place:
            self.lost.append((part, place))


def test_a_report_to_a_stopped_engine_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the next engine that attends its process gets the report again."""
    reports, report, report_all = Reports(), RunningActivity.report, Handlers._report_all
    attended: dict[int, Process] = {}

    async def noted(activity: RunningActivity, event: Event) -> bool:
        taken = await report(activity, event)
        if not taken and activity._host.has_ended:
            reports.refused(activity, attended[id(activity)], event)
        return taken

    async def noted_all(handlers: Handlers, part: Part, process: Process, activity: Any) -> None:
        attended[id(activity)] = process
        try:
            await report_all(handlers, part, process, activity)
        finally:
            reports.left(part, process, activity)

    monkeypatch.setattr(RunningActivity, "report", noted)
    monkeypatch.setattr(Handlers, "_report_all", noted_all)
    for seed in range(12):
        assert pottery(seed=seed, faults=STOPPING).ok
    assert reports.stopped > 3
    assert reports.lost == []
