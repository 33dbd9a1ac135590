"""What a fleet file may say of preemption, and what it means."""

from pathlib import Path

import pytest

from lifefold.core.fleet import Preemption
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, describe_difference, load

FILE = """
[fleet]
name = "f"
{table}

[[agents]]
name = "a"
command = ["sh", "-c", "true", "{{prompt}}"]
session_timeout = "1m"
grace = "7s"

[[tasks]]
id = "T1"
prompt = "do it"
"""


def loaded(folder: Path, table: str) -> Fleet:
    """Return a fleet with this table."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(table=table))
    return load(file)


EMPTY = "[fleet.preemption]"


@pytest.mark.parametrize(
    ("table", "means", "grace_ms"),
    [
        ("", None, 7_000),
        (EMPTY, Preemption(), 7_000),
        (f'{EMPTY}\ndeadline = "30s"', Preemption(30_000), 30_000),
        (f'{EMPTY}\ndeadline = "1ms"', Preemption(1), 7_000),
    ],
    ids=["nothing", "a table", "a long deadline", "a short deadline"],
)
def test_preemption_is_only_on_if_the_file_says_so(
    tmp_path: Path, table: str, means: Preemption | None, grace_ms: int
) -> None:
    """An empty table is enough; an agent has to reckon with the longest that it may be left alone."""
    fleet = loaded(tmp_path, table)
    assert fleet.preemption == fleet.plan.preemption == means
    assert fleet.grace_ms(fleet.agents[0]) == grace_ms
    assert fleet.warnings == ()


def test_a_deadline_is_a_duration_that_is_not_over_at_once(tmp_path: Path) -> None:
    """No key takes the grace away."""
    with pytest.raises(FleetFileError, match=r"fleet\.preemption\.deadline"):
        loaded(tmp_path, f'{EMPTY}\ndeadline = "0s"')


def test_a_file_that_says_nothing_of_it_means_what_it_meant(tmp_path: Path) -> None:
    """And one that does is another one, by its table and by its deadline."""
    nothing, empty, long = (loaded(tmp_path, each).meaning for each in ("", EMPTY, f'{EMPTY}\ndeadline = "1m"'))
    assert "preemption" not in nothing
    assert describe_difference(nothing, empty) == ("fleet.preemption: was added",)
    assert describe_difference(empty, long) == ("fleet.preemption.deadline: was absent, is 1m",)
