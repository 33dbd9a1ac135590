"""What a fleet file says of tasks whose sessions die, and what is wrong with it."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from lifefold.core.fleet import opening
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Opened
from lifefold.core.lifecycles.task import OnDeath
from lifefold.interpreters.fleet_file import FleetFileError, describe_difference, load

FILE: Final = """
[fleet]
name = "demo"
{fleet}

[[agents]]
name = "coder"
command = ["python3", "{{prompt}}"]
session_timeout = "1m"

[[tasks]]
id = "T1"
prompt = "Write"
{task}
"""

REPOSITORY: Final = 'repository = "."'
VERIFY: Final = 'orphaned = "verify"'
COMMANDS: Final = 'verify = [["true"]]'


def read(folder: Path, fleet: str = REPOSITORY, task: str = COMMANDS) -> Any:
    """Return the fleet of a file with these lines."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(fleet=fleet, task=task))
    return load(file)


def policy(found: Any) -> OnDeath:
    """Return what becomes of the task, as the board has it."""
    opened = dict(opening(found.plan, 0))[board.NAME]
    assert isinstance(opened.event, Opened)
    begun = opened.event.records["task:T1"]
    assert isinstance(begun, fleet_task.FleetTask)
    return begun.orphaned


@pytest.mark.parametrize(
    ("fleet", "task", "expected"),
    [
        ("", "", OnDeath.FAIL),
        (VERIFY, "", OnDeath.VERIFY),
        ("", VERIFY, OnDeath.VERIFY),
        (VERIFY, 'orphaned = "fail"', OnDeath.FAIL),
        ('orphaned = "requeue"', "", OnDeath.REQUEUE),
    ],
)
def test_a_task_says_what_becomes_of_it_or_the_fleet_does(
    tmp_path: Path, fleet: str, task: str, expected: OnDeath
) -> None:
    """By default it fails, as ever."""
    assert policy(read(tmp_path, f"{REPOSITORY}\n{fleet}", f"{COMMANDS}\n{task}")) is expected


@pytest.mark.parametrize(
    ("fleet", "task", "key", "essentials"),
    [
        (f'{REPOSITORY}\norphaned = "merge"', "", "fleet.orphaned", 'found "merge"; accepted: "fail" or "requeue" or'),
        (f"{REPOSITORY}\norphaned = true", "", "fleet.orphaned", "found true, a boolean; accepted"),
        (VERIFY, "", "fleet.orphaned", "in a fleet with a repository"),
        ("", f"{COMMANDS}\n{VERIFY}", "tasks.T1.orphaned", "in a fleet with a repository"),
        (REPOSITORY, VERIFY, "tasks.T1.orphaned", "for a task with commands in verify"),
    ],
)
def test_what_could_never_be_proven_is_refused(
    tmp_path: Path, fleet: str, task: str, key: str, essentials: str
) -> None:
    """Named with its key and what is accepted."""
    with pytest.raises(FleetFileError) as refused:
        read(tmp_path, fleet, task)
    (problem,) = refused.value.problems
    assert problem.key == key
    assert essentials in problem.message


def test_what_is_written_as_its_default_changes_no_meaning(tmp_path: Path) -> None:
    """A log that was begun when the key was not known goes on with the same file."""
    plain = read(tmp_path).meaning
    assert read(tmp_path, f'{REPOSITORY}\norphaned = "fail"').meaning == plain
    assert "orphaned" not in json.loads(plain)["tasks"]["T1"]


@pytest.mark.parametrize(
    ("fleet", "task", "difference"),
    [(VERIFY, "", "fleet.orphaned: was absent, is verify"), ("", VERIFY, "tasks.T1.orphaned: was absent, is verify")],
)
def test_a_difference_is_told_in_the_files_words(tmp_path: Path, fleet: str, task: str, difference: str) -> None:
    """It belongs to what a log was begun with."""
    before = read(tmp_path).meaning
    after = read(tmp_path, f"{REPOSITORY}\n{fleet}", f"{COMMANDS}\n{task}").meaning
    assert describe_difference(before, after) == (difference,)
