"""What a fleet file may say of aborts, and what it means."""

from pathlib import Path

import pytest

from lifefold.core.policy.abort import AbortPolicy
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, describe_difference, load

FILE = """
[fleet]
name = "f"
{table}

[[agents]]
name = "a"
command = ["sh", "-c", "true", "{{prompt}}"]
session_timeout = "1m"

[[tasks]]
id = "T1"
prompt = "do it"
"""

EMPTY = "[fleet.aborts]"


def loaded(folder: Path, table: str) -> Fleet:
    """Return a fleet with this table."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(table=table))
    return load(file)


@pytest.mark.parametrize(
    ("table", "means"),
    [
        ("", None),
        (EMPTY, AbortPolicy()),
        (f"{EMPTY}\ntool_to_sibling = true", AbortPolicy(tool_to_sibling=True)),
        (f"{EMPTY}\nsibling_to_session = true", AbortPolicy(sibling_to_session=True)),
    ],
    ids=["nothing", "a table", "tools", "siblings"],
)
def test_a_fleet_has_aborts_only_if_the_file_says_so(tmp_path: Path, table: str, means: AbortPolicy | None) -> None:
    """An empty table is enough, and contains each level (E37)."""
    fleet = loaded(tmp_path, table)
    assert fleet.aborts == fleet.plan.aborts == means
    assert fleet.warnings == ()


def test_a_policy_is_made_of_two_flags(tmp_path: Path) -> None:
    """All else is a mistake, by its name."""
    for line, key in (("tool_to_sibling = 1", "tool_to_sibling"), ("session = true", "session")):
        with pytest.raises(FleetFileError, match=rf"fleet\.aborts\.{key}"):
            loaded(tmp_path, f"{EMPTY}\n{line}")


def test_what_was_changed_of_aborts_is_told(tmp_path: Path) -> None:
    """A log that was begun without them has none; the file means something else."""
    before = loaded(tmp_path, "").meaning
    with_table = loaded(tmp_path, EMPTY).meaning
    with_flag = loaded(tmp_path, f"{EMPTY}\ntool_to_sibling = true").meaning
    assert len({before, with_table, with_flag}) == 3
    assert "fleet.aborts.tool_to_sibling" in str(describe_difference(with_table, with_flag))
