"""Reports for tests of the desk, made by the commands themselves."""

import contextlib
import io
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lifefold.interpreters.cli.app import main

OWN: Final = """
from lifefold.core.kernel import always
from lifefold.core.lifecycles import session

machine = session.machine.with_properties(
    always("it <b>never</b> runs", lambda entity: entity.state is not session.State.RUNNING)
)
"""
"""A shipped machine with a property that does not hold, and that has to be escaped."""

_GUIDE: Final = Path(__file__).parents[2] / "docs" / "check.md"


def restaurant() -> str:
    """Return the system of the guide: a guest orders, and a kitchen may be told to stop."""
    blocks = re.findall(r"```python\n(.*?)```", _GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (text,) = (each for each in blocks if '"restaurant"' in each)
    return f"{text.partition('report = check(')[0]}\ntarget = (system, opening)\n"


def report_of(folder: Path, name: str, source: str, words: Sequence[str]) -> Path:
    """Run ``check`` or ``simulate`` on a module with this source, and return the file of its report."""
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            main([*words, "--json"])
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(name, None)
    file = folder / f"{name}-{words[0]}.json"
    file.write_text(said.getvalue(), encoding="utf-8")
    return file


def lost(folder: Path) -> Path:
    """Write the report of a small broken system, whose key is ``lost``, and which no search has made."""
    step = {"number": 1, "said": "an operator gives Lost()", "moved": [], "messages": ["inn → kitchen: Cook()"]}
    finding = {"words": "nothing is lost", "kind": "always", "mark": "✗", "steps": [step]}
    page = {"title": "inn", "is_ok": False, "conclusion": "broken", "met": "1 state", "extent": [["looked at", "all"]]}
    file = folder / "lost.json"
    file.write_text(json.dumps({"target": "inn", "page": {**page, "told": [], "traced": [finding]}}), encoding="utf-8")
    return file
