"""Lists of tasks for a living fleet: ``[[tasks]]`` in TOML, or an array of the same tables in JSON.

All errors are reported together, with their lines. In JSON the line is that of the task.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Final

from returns.result import Result

from lifefold.core.fleet import Caps, TaskPlan
from lifefold.core.policy.access import AccessLevel
from lifefold.interpreters.fleet_file.loading import unreadable
from lifefold.interpreters.fleet_file.places import KeyPath, key_lines
from lifefold.interpreters.fleet_file.problems import Problems, Report
from lifefold.interpreters.fleet_file.table import Table
from lifefold.interpreters.fleet_file.tasks import Crew, read_tasks


def read_list(  # noqa: PLR0913 - the facts of a living fleet, each with its name
    text: str, file: str, folder: Path, crew: Crew, *, taken: dict[str, str], gates: bool, metered: bool
) -> Result[list[TaskPlan], Problems]:
    """Return the tasks of a list, or all its errors. Prompt files are relative to ``folder``.

    ``taken`` are the ids in use, as they are written, by their folded form. ``gates`` tells whether the fleet gates
    anything, and ``metered`` whether it meters usage.
    """
    try:
        document, lines = _read(text, file)
    except (ValueError, RecursionError) as error:
        form = "JSON" if _is_json(text, file) else "TOML"
        return unreadable(file, f"this is not {form}: {error}")
    root = Table(Report(file, text, lines), document)
    tasks = read_tasks(root, folder, crew)
    for place, each in enumerate(tasks):
        if each.id.casefold() in taken:
            _report(
                root, place, each, "id", f"there is a task {taken[each.id.casefold()]} already; accepted: another id"
            )
        if each.trust is not AccessLevel.UNTRUSTED and not gates:
            _report(root, place, each, "trust", "this fleet gates nothing, because its file has no gates and no trust")
        if each.caps != Caps() and not metered:
            _report(root, place, each, "budget", "this fleet does not meter usage, because its file has no budget")
    root.finish()
    return root.report.outcome(tasks)


def _report(root: Table, place: int, task: TaskPlan, key: str, message: str) -> None:
    root.report.problem(("tasks", place, key), f"tasks.{task.id}.{key}", message)


def _read(text: str, file: str) -> tuple[dict[str, object], dict[KeyPath, int]]:
    if not _is_json(text, file):
        return tomllib.loads(text), key_lines(text)
    whole = json.loads(text)
    return {"tasks": whole}, _lines_of_elements(text) if isinstance(whole, list) else {}


_JSON: Final = re.compile(r"\s*(\[\s*[\]{]|\{)")
"""The beginning of a text of JSON that is none of TOML."""


def _is_json(text: str, file: str) -> bool:
    return file.endswith(".json") or (not file.endswith(".toml") and _JSON.match(text) is not None)


def _lines_of_elements(text: str) -> dict[KeyPath, int]:
    """Return the line of each element of an array in JSON."""
    decoder, lines, at, number = json.JSONDecoder(), dict[KeyPath, int](), text.index("[") + 1, 0
    while begin := _BEGIN.match(text, at):
        lines["tasks", number] = text.count("\n", 0, begin.end()) + 1
        _, at = decoder.raw_decode(text, begin.end())
        number += 1
    return lines


_BEGIN: Final = re.compile(r"[\s,]*(?=[^\s,\]])")
