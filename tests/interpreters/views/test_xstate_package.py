"""The XState configurations load in XState itself, which takes the same sequences of events to the same states."""

import json
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from charts import examples, ids, walk
from lifefold.core.kernel import Event, Machine, Record, Row, Step
from lifefold.interpreters.views import machines, xstate
from lifefold.interpreters.views.formats.chart import chart
from lifefold.interpreters.views.outline import name_of

PACKAGE = Path(__file__).parent / "xstate"
WALKS, STEPS = 40, 30
MISSING = "node is missing" if shutil.which("node") is None else "XState is not installed: make xstate"

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (PACKAGE / "node_modules" / "xstate").is_dir(), reason=MISSING
)

Walk = tuple[list[dict[str, Any]], list[str | None]]
"""What XState is told, and where the reducer goes; None where it refuses."""


def agrees(machine: Machine[Any], guard: Row[Any], record: Record, event: Event) -> bool:
    """Return whether a guard holds; of an event that none of its rows is for it need not say anything."""
    alike = (row for row in machine.rows if (row.pattern, row.when) == (guard.pattern, guard.when))
    if all(row.event is not type(event) for row in alike):
        return False
    fits = guard.pattern is None or guard.pattern.test(event)
    return fits and (guard.when is None or guard.when(record, event))


def a_walk(machine: Machine[Any], random: Random) -> Walk:
    """Send events in an order of chance, legal and illegal ones; each brings the answers of all guards with it."""
    drawn, id_of, record = chart(machine), ids(machine), machine.initial
    delays = {timer.event: str(timer.delay) for node in walk(drawn.nodes) for timer in node.timers if not node.nodes}
    told: list[dict[str, Any]] = []
    went: list[str | None] = []
    for event in random.choices(list(examples(machine)), k=STEPS):
        name = name_of(type(event))
        if record.state in machine.final or type(event) in machine.postponed(record.state):
            continue
        answers = {guard: agrees(machine, row, record, event) for guard, row in drawn.guards.items()}
        told.append({"type": name, "guards": answers} | ({"delay": delays[name]} if name in delays else {}))
        step = machine.step(record, event)
        record = step.record if isinstance(step, Step) else record
        went.append(id_of[record.state] if isinstance(step, Step) else None)
    return told, went


DEAF = {"announcer"}
"""Machines that accept no event at first: an announcer without listeners."""


def test_the_real_xstate_goes_where_the_reducer_goes() -> None:
    """Every machine there is, along sequences of legal and illegal events."""
    chosen = list(machines().values())
    random = Random(1)  # noqa: S311 - chance, not secrecy
    walks = [[a_walk(machine, random) for _ in range(WALKS)] for machine in chosen]
    told = [
        {"machine": json.loads(xstate(machine)), "walks": [steps for steps, _ in taken]}
        for machine, taken in zip(chosen, walks, strict=True)
    ]
    node = subprocess.run(
        ["node", "walk.mjs"],  # noqa: S607 - whichever node there is
        input=json.dumps(told),
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert node.returncode == 0, node.stderr
    for machine, taken, answers in zip(chosen, walks, json.loads(node.stdout), strict=True):
        assert answers == [went for _, went in taken], machine.name
        assert any(where for _, went in taken for where in went) == (machine.name not in DEAF), machine.name
