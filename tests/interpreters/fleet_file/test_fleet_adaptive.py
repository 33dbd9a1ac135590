"""What a fleet file says of sessions that may take as long as others took (E33)."""

from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from fleet_documents import document_toml
from lifefold.core.policy.adaptive_timeout import LONGEST_MS
from lifefold.interpreters.fleet_file import FleetFileError, describe_difference, load
from lifefold.interpreters.fleet_file.schema import json_schema

FILE: Final = """
[fleet]
name = "demo"

[[agents]]
name = "coder"
command = ["python3", "{{prompt}}"]
session_timeout = {timeout}
{more}

[[tasks]]
id = "T1"
prompt = "Write"
"""


def read(folder: Path, timeout: str = '"adaptive"', more: str = "") -> Any:
    """Return the fleet of a file with this time-out."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(timeout=timeout, more=more))
    return load(file)


def test_it_is_the_agents_and_the_most_is_two_hours(tmp_path: Path) -> None:
    """What a session may take is then said by the board; its own limit is the most that it may say."""
    found = read(tmp_path)
    (agent,) = found.plan.agents
    assert (agent.adaptive, agent.limits.session_timeout_ms) == (True, LONGEST_MS)
    assert found.warnings == ()
    (plain,) = read(tmp_path, '"2h"').plan.agents
    assert (plain.adaptive, plain.limits.session_timeout_ms) == (False, LONGEST_MS)


def test_budgets_of_time_set_the_most_aside(tmp_path: Path) -> None:
    """No session can take more."""
    assert (
        read(tmp_path, more='grace = "5s"\nbudget = { time = "10h" }').plan.budget.share.time_ms == LONGEST_MS + 5_000
    )


@pytest.mark.parametrize("timeout", ['"adaptiv"', "30", '"0s"'])
def test_anything_else_is_refused_with_both_forms(tmp_path: Path, timeout: str) -> None:
    """A duration, or the word."""
    with pytest.raises(FleetFileError, match=r'accepted: a duration as text, .*, or "adaptive"') as refused:
        read(tmp_path, timeout)
    assert [each.key for each in refused.value.problems] == ["agents.coder.session_timeout"]


def test_it_belongs_to_what_a_log_was_begun_with(tmp_path: Path) -> None:
    """In the file's own words, also where the longest time is the same."""
    before, after = read(tmp_path, '"2h"').meaning, read(tmp_path).meaning
    assert describe_difference(before, after) == ("agents.coder.session_timeout: was 2h, is adaptive",)


def test_editors_know_both_forms() -> None:
    """The schema has the word beside the durations."""
    schema: Any = json_schema()
    key = schema["properties"]["agents"]["items"]["properties"]["session_timeout"]
    assert {"const": "adaptive"} in key["anyOf"]


def test_a_run_of_a_service_depends_on_no_others(tmp_path: Path) -> None:
    """The word is refused with its place, by the reader and by the schema; a duration is taken by both."""
    for written, accepted in (("adaptive", False), ("30m", True)):
        service: dict[str, Any] = {"name": "web", "kind": "service", "command": ["sh", "{prompt}"]}
        service |= {"triggers": [{"queue": True}], "session_timeout": written}
        coder = {"name": "coder", "command": ["sh", "{prompt}"], "session_timeout": "adaptive"}
        tasks = [{"id": "T1", "prompt": "do it"}]
        document = {"fleet": {"name": "demo"}, "agents": [service, coder], "tasks": tasks}
        file = tmp_path / "fleet.toml"
        file.write_text(document_toml(document))
        assert _is_valid(document) is accepted
        if accepted:
            assert load(file).services[0].runs.session_timeout_ms == 30 * 60_000
        else:
            with pytest.raises(FleetFileError, match=r'found "adaptive"; accepted: a duration as text') as refused:
                load(file)
            assert [each.key for each in refused.value.problems] == ["agents.web.session_timeout"]
            assert 'or "adaptive"' not in str(refused.value)


def _is_valid(document: dict[str, Any]) -> bool:
    draft: Any = Draft202012Validator
    valid: bool = draft(json_schema()).is_valid(document)
    return valid
