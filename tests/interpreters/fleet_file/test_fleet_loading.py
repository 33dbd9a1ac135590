"""The guarantee: ``read`` never raises for what a file holds, and ``load`` says the same by an exception."""

from pathlib import Path

import pytest
from returns.result import Failure, Success

from lifefold.interpreters.fleet_file import FleetFileError, load
from lifefold.interpreters.fleet_file.loading import read

SOUND = """\
[fleet]
name = "demo"

[[agents]]
name = "coder"
command = ["sh", "-c", "true", "{prompt}"]
session_timeout = "30m"

[[tasks]]
id = "T1"
prompt = "Write hello.txt"
"""


def test_a_sound_file_is_a_success_with_the_fleet_that_load_returns(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(SOUND, encoding="utf-8")
    assert read(path) == Success(load(path))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"\xff", ["cannot read this fleet file"]),
        (b"[fleet", ["this is not TOML"]),
        (SOUND.replace("30m", "soon").encode(), ["session_timeout"]),
        (SOUND.replace("30m", "soon").replace("demo", "").encode(), ["fleet.name", "session_timeout"]),
    ],
    ids=["text", "TOML", "table", "tables"],
)
def test_the_first_stage_that_fails_ends_the_pipeline(tmp_path: Path, content: bytes, found: list[str]) -> None:
    """Its ``Failure`` has all that this stage found, and ``load`` raises exactly that."""
    path = tmp_path / "fleet.toml"
    path.write_bytes(content)
    with pytest.raises(FleetFileError) as raised:
        load(path)
    assert read(path) == Failure(raised.value.problems)
    assert len(raised.value.problems) == len(found)
    assert all(text in str(problem) for text, problem in zip(found, raised.value.problems, strict=True))
