"""``lifefold unit`` prints a unit that systemd accepts, and that restarts a runner only where that helps."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.service_unit import unit, unit_name
from lifefold.interpreters.fleet_file import load

FLEET = """
[fleet]
name = "kept"
lease = "{lease}"

[[agents]]
name = "coder"
command = ["true", "{{prompt}}"]
session_timeout = "1m"
grace = "{grace}"

[[tasks]]
id = "one"
prompt = "Write"
verify = [["true"]]
"""

ODD = "a 100% \"b\" $HOME 'c' \\d"
"""A name of a folder with every character that means something to systemd."""


def fleet_file(folder: Path, lease: str = "1m", grace: str = "90s") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fleet.toml"
    path.write_text(FLEET.format(lease=lease, grace=grace))
    return path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    """Give the command, and return the settings that it prints."""
    assert main(["unit", *words]) == 0
    lines = [each for each in capsys.readouterr().out.splitlines() if "=" in each and not each.startswith("#")]
    return dict(each.split("=", 1) for each in lines)


def test_the_command_of_the_unit_has_absolute_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the command was given; options of the run are passed on."""
    path = fleet_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(printed(capsys, "fleet.toml", "--watch", "--serve", "--db", "other.db")["ExecStart"])
    assert words[-5:] == ["run", str(path), "--watch", "--serve=8765", f"--db={tmp_path / 'other.db'}"]
    assert os.access(words[0], os.X_OK)
    assert Path(words[0]).is_absolute()


def test_the_unit_of_a_log_on_a_server_has_its_address_without_the_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No server is asked. The service finds the password as libpq does."""
    path = fleet_file(tmp_path)
    words = shlex.split(printed(capsys, str(path), "--db", "postgresql://me:secret@db.invalid/x?log=a")["ExecStart"])
    assert words[-1] == "--db=postgresql://me@db.invalid/x?log=a"


def test_only_failures_that_another_start_may_repair_restart_the_runner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Settled tasks and bad input do not; a runner that was asked to leave has succeeded."""
    settings = printed(capsys, str(fleet_file(tmp_path)))
    assert settings["Restart"] == "on-failure"
    assert settings["RestartPreventExitStatus"] == "1 2"
    assert settings["SuccessExitStatus"] == "130"


def test_a_stop_ends_the_runner_only_and_waits_for_the_grace_of_sessions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = printed(capsys, str(fleet_file(tmp_path)))
    assert settings["KillMode"] == "process"
    assert settings["TimeoutStopSec"] == "120"


@pytest.mark.parametrize(("lease", "delay"), [("1m", "5"), ("6s", "3"), ("1s", "1")])
def test_the_next_runner_starts_within_the_lease(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lease: str, delay: str
) -> None:
    """So that it adopts the sessions; systemd's own delay of a second is the least."""
    assert printed(capsys, str(fleet_file(tmp_path, lease)))["RestartSec"] == delay


def test_a_wrong_fleet_file_prints_no_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fleet.toml").write_text("[fleet]\n")
    assert main(["unit", str(tmp_path / "fleet.toml")]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here")
@pytest.mark.parametrize("folder", ["plain", ODD])
def test_systemd_accepts_the_unit(tmp_path: Path, folder: str) -> None:
    """Also where paths have characters with a meaning to systemd: it finds the program, and complains of nothing."""
    fleet = load(fleet_file(tmp_path / folder))
    program = tmp_path / "100% of $HOME" / "lifefold"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    written = tmp_path / unit_name(fleet)
    written.write_text(unit(fleet, (str(program), "run", str(fleet.source)), f"/usr/bin:{tmp_path / folder}"))
    around = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    verify = ["systemd-analyze", "--user", "verify", "--man=no", str(written)]
    found = subprocess.run(verify, env=around, capture_output=True, text=True, check=False, timeout=120)
    about = [line for line in found.stderr.splitlines() if "lifefold" in line]
    assert (found.returncode, about) == (0, [])
