"""What a fleet file says of the conversation of a retry, and what is wrong with it."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from lifefold.core.fleet import opening
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Opened
from lifefold.interpreters.fleet_file import FleetFileError, describe_difference, load

FILE: Final = """
[fleet]
name = "demo"
repository = "."
{fleet}

[[agents]]
name = "coder"
command = ["python3", "{{prompt}}"]
session_timeout = "1m"

[[tasks]]
id = "T1"
prompt = "Write"
verify = [["true"]]
{task}
"""

ANEW: Final = 'on_retry = "anew"'
RESUME: Final = 'on_retry = "resume"'


def read(folder: Path, fleet: str = "", task: str = "") -> Any:
    """Return the fleet of a file with these lines."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(fleet=fleet, task=task))
    return load(file)


@pytest.mark.parametrize(
    ("fleet", "task", "expected"),
    [("", "", False), (RESUME, "", False), (ANEW, "", True), ("", ANEW, True), (ANEW, RESUME, False)],
)
def test_a_task_or_the_fleet_decides_about_the_conversation_of_a_retry(
    tmp_path: Path,
    fleet: str,
    task: str,
    expected: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """By default the retry resumes it."""
    opened = dict(opening(read(tmp_path, fleet, task).plan, 0))[board.NAME]
    assert isinstance(opened.event, Opened)
    begun = opened.event.records["task:T1"]
    assert isinstance(begun, fleet_task.FleetTask)
    assert begun.anew is expected


def test_only_two_words_are_accepted(tmp_path: Path) -> None:
    """The error names the place and both."""
    with pytest.raises(FleetFileError) as refused:
        read(tmp_path, task='on_retry = "never"')
    assert "tasks.T1.on_retry" in str(refused.value)
    assert '"resume" or "anew"' in str(refused.value)


def test_a_change_of_it_is_a_change_of_the_meaning(tmp_path: Path) -> None:
    """And the default has the meaning that a file without the key had before."""
    plain, anew = read(tmp_path).meaning, read(tmp_path, ANEW, RESUME).meaning
    assert "on_retry" not in json.dumps(json.loads(plain))
    assert list(describe_difference(plain, anew)) == [
        "fleet.on_retry: was absent, is anew",
        "tasks.T1.on_retry: was absent, is resume",
    ]
    assert read(tmp_path, RESUME).meaning == plain
