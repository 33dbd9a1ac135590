"""A fleet outlasts SIGKILL: nothing is lost, doubled, torn or left. The campaign has all points."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fuse
from fuse import KINDS, is_burnt, kind, lay
from kills import PLACES, KillCampaign
from tortured_runner import GIT, STEPS

WITH_FUSE = "import sys; sys.path.insert(0, sys.argv[1]); import fuse\nfor _ in range(5): fuse.reach(sys.argv[2])"


def passing(folder: Path, point: str) -> int:
    """Run a program that passes a point five times; return its exit code."""
    command = [sys.executable, "-c", WITH_FUSE, str(Path(fuse.__file__).parent), point, "agent.py"]
    return subprocess.run(command, check=False, env={fuse.ENVIRONMENT: str(folder / "fuse.json")}).returncode


def test_a_fuse_burns_at_its_point_and_once(tmp_path: Path) -> None:
    """The n-th pass kills; other points, and later passes, do nothing."""
    lay(tmp_path / "fuse.json", "here", 3, "agent")
    assert passing(tmp_path, "there") == 0
    assert not is_burnt(tmp_path / "fuse.json")
    assert passing(tmp_path, "here") == -9
    assert is_burnt(tmp_path / "fuse.json")
    assert passing(tmp_path, "here") == 0


def test_a_fuse_whose_pass_does_not_come_stays(tmp_path: Path) -> None:
    lay(tmp_path / "fuse.json", "here", 6, "agent")
    assert passing(tmp_path, "here") == 0
    assert json.loads((tmp_path / "fuse.json").read_text())["at"] == 6


def test_every_named_point_has_its_trials() -> None:
    """The runner dies at each step of the engine and around git; each other kind dies somewhere."""
    points = {point for point, victim in PLACES if victim == "runner"}
    assert points >= {*STEPS, *GIT, "checkout", "agent begins", "agent is at work", "agent ends", "any time"}
    victims = {victim.removesuffix(" group") for _, victim in PLACES}
    assert victims == {*KINDS.values(), "everything"}


def test_a_process_that_is_none_of_a_fleet_has_no_kind() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as process:
        assert kind(process.pid) == ""
        process.kill()


PLACES_HERE = (("persisted", "everything"), ("checkout", "git group"), ("agent is at work", "shim"))


@pytest.mark.parametrize("place", PLACES_HERE)
def test_a_fleet_outlasts_a_kill(place: tuple[str, str]) -> None:
    assert KillCampaign().attempt(PLACES.index(place)).wrong == ()
