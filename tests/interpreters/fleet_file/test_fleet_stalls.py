"""What a fleet file may say of silence, and what it means."""

from pathlib import Path

import pytest

from lifefold.core.fleet.worker.stall_detector import Limits
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_file.meaning import describe_difference

FILE = """
[fleet]
name = "f"

[[agents]]
name = "a"
command = ["sh", "-c", "true", "{{prompt}}"]
{lines}

[[tasks]]
id = "T1"
prompt = "do it"
"""


def loaded(folder: Path, *lines: str) -> Fleet:
    """Return a fleet whose agent has these lines."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(lines="\n".join(lines)))
    return load(file)


@pytest.mark.parametrize(
    ("lines", "means"),
    [
        ((), None),
        (('stall_timeout = "2m"',), Limits(60_000, None, 120_000)),
        (('stall_timeout = "2m"', 'stall_warn = "10s"'), Limits(10_000, None, 120_000)),
        (('stall_timeout = "2m"', 'stall_interrupt = "90s"'), Limits(60_000, 90_000, 120_000)),
    ],
    ids=["nothing", "an end", "a warning", "an interruption"],
)
def test_silence_is_watched_only_if_the_file_says_how_long_it_may_last(
    tmp_path: Path, lines: tuple[str, ...], means: Limits | None
) -> None:
    """Operators are told after half of it, unless it says otherwise. No session is interrupted unless it says so."""
    fleet = loaded(tmp_path, *lines)
    assert fleet.agents[0].stall == fleet.plan.agents[0].stall == means
    assert any("a session that hangs is never ended" in each for each in fleet.warnings) is (means is None)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ('stall_timeout = "10s"', 'stall_warn = "10s"'),
            "stall_warn: found 10s; accepted: less than stall_timeout, 10s",
        ),
        (
            ('stall_timeout = "10s"', 'stall_interrupt = "20s"'),
            "stall_interrupt: found 20s; accepted: less than stall_timeout, 10s",
        ),
        (
            ('stall_timeout = "10s"', 'stall_interrupt = "4s"'),
            "stall_interrupt: found 4s; accepted: more than stall_warn, 5s",
        ),
        (('stall_timeout = "10ms"',), "stall_timeout"),
    ],
    ids=["a late warning", "a late interruption", "one before the warning", "too short"],
)
def test_what_is_no_ladder_is_refused_and_it_is_said_why(tmp_path: Path, lines: tuple[str, ...], said: str) -> None:
    """With what was found and what is accepted."""
    with pytest.raises(FleetFileError, match="stall_") as refused:
        loaded(tmp_path, *lines)
    assert said in str(refused.value)


def test_a_warning_about_an_unwatched_agent_is_reported(tmp_path: Path) -> None:
    """Nothing is left out silently."""
    warnings = loaded(tmp_path, 'session_timeout = "1h"', 'stall_warn = "10s"', 'stall_interrupt = "20s"').warnings
    assert len([each for each in warnings if "no stall_timeout" in each]) == 2


def test_the_meaning_of_a_file_without_it_is_as_it_was(tmp_path: Path) -> None:
    """And a change of it is told in the file's own words."""
    before, after = loaded(tmp_path).meaning, loaded(tmp_path, 'stall_timeout = "2m"').meaning
    assert "stall" not in before
    assert describe_difference(before, after) == (
        "agents.a.stall_timeout: was absent, is 2m",
        "agents.a.stall_warn: was absent, is 1m",
    )
