"""A later release of lifefold, made of this one: a renamed event, a new field, a changed rule and a new state."""

import re
import shutil
from pathlib import Path
from typing import Final

import lifefold.core

ROOT: Final = Path(lifefold.core.__file__).parents[1]

_MODEL: Final = "core/fleet/worker/assignment/model.py"
_PROPERTIES: Final = "core/fleet/worker/assignment/properties.py"
_RULES: Final = "core/fleet/worker/assignment/rules.py"
_TABLE: Final = "core/fleet/worker/assignment/table.py"
_RENAMED: Final = ("Prompted", "PromptGiven")

CHANGES: Final = (
    # A new state, between the checkout and the work, which its timer leaves
    (_MODEL, '    DISPUTED = "Disputed"\n', '    DISPUTED = "Disputed"\n    SETTLING = "Settling"\n'),
    (
        _MODEL,
        "class WorkFailed(Event",
        'class PlaceElapsed(Event, frozen=True):\n    """The place has settled."""\n\n\nclass WorkFailed(Event',
    ),
    (
        _TABLE,
        "from lifefold.core.kernel import STAY, Machine, does, row\n",
        (
            "from lifefold.core.fleet.worker.assignment.model import PlaceElapsed\n"
            "from lifefold.core.kernel import STAY, Machine, after, does, renamed, row\n"
        ),
    ),
    (
        _TABLE,
        "    State.VERIFYING,\n    State.PARKING,\n",
        "    State.SETTLING,\n    State.VERIFYING,\n    State.PARKING,\n",
    ),
    (
        _TABLE,
        "row(State.PREPARING, CheckedOut, State.WORKING),\n",
        (
            "row(State.PREPARING, CheckedOut, State.SETTLING),\n"
            "        row(State.SETTLING, PlaceElapsed, State.WORKING, settle),\n"
        ),
    ),
    (_TABLE, "    during={\n", "    during={\n        State.SETTLING: after(10, PlaceElapsed),\n"),
    (
        _RULES,
        "def count(a: Assignment",
        (
            "def settle(a: Assignment, _e: PlaceElapsed) -> Step[Assignment, Never]:\n"
            '    """Count the settled places."""\n'
            "    return Step(replace(a, settled=a.settled + 1))\n\n\n"
            "def count(a: Assignment"
        ),
    ),
    (_RULES, "    WorkFinished,\n", "    PlaceElapsed,\n    WorkFinished,\n"),
    (_TABLE, "    count,\n", "    count,\n    settle,\n"),
    (
        _PROPERTIES,
        "            CheckedOut: (State.WORKING, State.VERIFYING),\n",
        "            CheckedOut: (State.SETTLING, State.VERIFYING),\n            PlaceElapsed: (State.WORKING,),\n",
    ),
    (_PROPERTIES, "    WorkFinished,\n", "    PlaceElapsed,\n    WorkFinished,\n"),
    # A new field
    (_MODEL, "    to_branch: bool = False\n", "    to_branch: bool = False\n    settled: int = 0\n"),
    # A renamed event, which logs have under its old name
    (_TABLE, "    rests=rests,\n", '    rests=rests,\n    evolved=(renamed("Prompted", PromptGiven),),\n'),
    # A changed rule
    (
        "core/fleet/system/board.py",
        'desired_state.StopWanted("no work is left", None)',
        'desired_state.StopWanted("all is done", None)',
    ),
)
"""Files, texts that are there once, and texts in their place."""


def release(folder: Path) -> Path:
    """Write the later release into a folder, and return what has to stand in ``PYTHONPATH`` for it."""
    package = folder / "next" / "lifefold"
    for part in ("core", "effects", "interpreters"):
        shutil.copytree(ROOT / part, package / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "interpreters" / "public" / "__init__.py", package / "__init__.py")
    was, now = _RENAMED
    for file in (package / "core" / "fleet").rglob("*.py"):
        text = file.read_text()
        if re.search(rf"\b{was}\b", text):
            file.write_text(re.sub(rf"\b{was}\b", now, text))
    for name, before, after in CHANGES:
        file = package / name
        text = file.read_text()
        assert text.count(before) == 1, (name, before, text.count(before))
        file.write_text(text.replace(before, after))
    return package.parent
