"""What ``run --engine`` refuses before it changes anything, and which engine a run has."""

from pathlib import Path

import pytest

from lifefold.interpreters.cli.app import main

pytest.importorskip("temporalio", reason="needs the extra temporal")

FLEET = """
[fleet]
name = "there"
[[agents]]
name = "ann"
command = ["true"]
[[tasks]]
id = "t"
prompt = "x"
[cluster]
engine = "temporal://127.0.0.1:1"
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A fleet file with an engine that does not answer."""
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    return file


def test_the_engine_of_the_fleet_file_is_that_of_a_run(fleet: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A run does not fall back to this machine: hosts may be at work."""
    assert main(["run", str(fleet)]) == 2
    assert "no Temporal server answers at 127.0.0.1:1, which [cluster] of" in capfd.readouterr().err
    assert list(fleet.parent.iterdir()) == [fleet]


def test_an_option_comes_before_the_fleet_file(fleet: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """``local`` runs the fleet on this machine."""
    assert main(["run", str(fleet), "--engine", "temporal://127.0.0.1:2"]) == 2
    assert "no Temporal server answers at 127.0.0.1:2, which --engine names" in capfd.readouterr().err
    assert main(["run", str(fleet), "--engine", "local"]) == 0
    assert "1 of 1 tasks closed" in capfd.readouterr().out


def test_a_text_that_is_no_engine_is_refused(fleet: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With the two forms that there are."""
    assert main(["run", str(fleet), "--engine", "127.0.0.1:7233"]) == 2
    assert 'such as "temporal://127.0.0.1:7233"' in (said := capfd.readouterr().err)
    assert 'or "local"' in said


@pytest.mark.parametrize("option", ["--watch", "--no-wait", "--accept"])
def test_the_options_of_a_local_run_are_those_of_a_brain(
    fleet: Path, capfd: pytest.CaptureFixture[str], option: str
) -> None:
    """They are no reason to refuse a run; here it has no server."""
    assert main(["run", str(fleet), option]) == 2
    assert "no Temporal server answers at 127.0.0.1:1" in capfd.readouterr().err


def test_a_new_log_of_a_run_that_is_not_there_is_refused(fleet: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As on one machine, before the server is asked."""
    assert main(["run", str(fleet), "--again"]) == 2
    assert "--again: there is no log" in capfd.readouterr().err
