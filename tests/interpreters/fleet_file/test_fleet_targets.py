"""Agents of kind ``python``: a class of the user's, named in the fleet file."""

from pathlib import Path

import pytest

from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_file.meaning import describe_difference

FLEET = """
[fleet]
name = "demo"

[[agents]]
name = "coder"
kind = "python"
target = {target}
session_timeout = "30m"

[[tasks]]
id = "T1"
prompt = "Write"
"""


def fleet(folder: Path, target: str) -> Fleet:
    file = folder / "fleet.toml"
    file.write_text(FLEET.format(target=target))
    return load(file)


def test_a_class_is_run_by_this_very_python(tmp_path: Path) -> None:
    """Its module is looked for beside the fleet file; braces in paths mean nothing; nothing is warned about."""
    folder = tmp_path / "a {b}"
    folder.mkdir()
    found = fleet(folder, '"crafts.wood:Carver.Fine"')
    (agent,) = found.agents
    assert agent.command[-2:] == (
        str(folder.resolve()).replace("{", "{{").replace("}", "}}"),
        "crafts.wood:Carver.Fine",
    )
    assert found.warnings == ()


@pytest.mark.parametrize("target", ['"Carver"', '"wood:"', '":Carver"', '"wood:Car ver"', '"a/b:C"', '"a:b:C"', "7"])
def test_a_target_that_names_no_class_is_refused(tmp_path: Path, target: str) -> None:
    """With what is accepted."""
    with pytest.raises(FleetFileError, match=r'agents\.coder\.target: found .*accepted: "module:Class"'):
        fleet(tmp_path, target)


def test_a_target_is_required_and_a_command_is_not_accepted(tmp_path: Path) -> None:
    """An agent is of one kind or the other."""
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET.replace("target = {target}", 'command = ["true"]'))
    with pytest.raises(FleetFileError) as refused:
        load(file)
    assert "target" in str(refused.value)
    assert "agents.coder.command: unknown key" in str(refused.value)


def test_another_class_is_another_fleet(tmp_path: Path) -> None:
    """What differs is told in the file's own words."""
    before, after = fleet(tmp_path, '"a:A"'), fleet(tmp_path, '"a:B"')
    assert describe_difference(before.meaning, after.meaning) == ('agents.coder.target: was "a:A", is "a:B"',)
