"""The account of an agent in a fleet file, and its meaning."""

from pathlib import Path

import pytest

from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_file.meaning import describe_difference

FILE = """
[fleet]
name = "f"

[[agents]]
name = "a"
count = 2
command = ["sh", "-c", "true", "{{prompt}}"]
{line}

[[tasks]]
id = "T1"
prompt = "do it"
"""


def loaded(folder: Path, line: str = "") -> Fleet:
    """Return a fleet whose agents have this line."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(line=line))
    return load(file)


def test_agents_of_one_table_share_an_account(tmp_path: Path) -> None:
    """Both rest at its limits."""
    plan = loaded(tmp_path, 'account = "claude"').plan
    assert [(each.name, each.account) for each in plan.agents] == [("a-1", "claude"), ("a-2", "claude")]


def test_a_command_has_no_account_by_itself(tmp_path: Path) -> None:
    """Only the fleet file knows which service a command uses. The meaning of older files is as it was."""
    fleet = loaded(tmp_path)
    assert [each.account for each in fleet.plan.agents] == ["", ""]
    assert '"account"' not in fleet.meaning


def test_another_account_is_another_meaning(tmp_path: Path) -> None:
    """It is named with both values."""
    before, after = loaded(tmp_path, 'account = "claude"'), loaded(tmp_path, 'account = "codex"')
    (first, _) = describe_difference(before.meaning, after.meaning)
    assert "account" in first
    assert "claude" in first
    assert "codex" in first


def test_an_account_has_the_name_of_an_account(tmp_path: Path) -> None:
    """An error names the key and what is accepted."""
    with pytest.raises(FleetFileError, match="account"):
        loaded(tmp_path, 'account = "two words"')
