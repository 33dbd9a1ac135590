"""What is found of the machine: git, the repository, and the folder of the log."""

import os
from pathlib import Path

import anyio
import pytest

from lifefold.interpreters.doctor import Verdict, machine

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - nfs4 server:/home rw
31 30 8:2 / /home/ann/disk rw shared:7 - xfs /dev/sdb1 rw
32 22 0:41 / /mnt/my\040share rw - cifs //server/share rw
33 22 0:42 / /over rw - ext4 /dev/sdc1 rw
34 22 0:43 / /over rw - fuse.sshfs host:/ rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/fleet", "ext4"),
        ("/home/ann/fleet", "nfs4"),
        ("/home/ann/disk/fleet", "xfs"),
        ("/homework", "ext4"),
        ("/mnt/my share/fleet", "cifs"),
        ("/over/fleet", "fuse.sshfs"),
    ],
)
def test_a_file_system_is_that_of_the_nearest_and_last_mount(path: str, kind: str) -> None:
    assert machine.file_system(Path(path), MOUNTS) == kind


def test_without_a_list_of_mounts_the_file_system_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOUNTS", tmp_path / "none")
    found = machine.log_folder(tmp_path)
    assert (found.verdict, found.fails) == (Verdict.NOTE, False)
    assert "cannot tell whether it is local" in found.found


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"])
def test_a_log_on_a_file_system_of_other_machines_fails(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write-ahead log of SQLite needs memory that its readers share."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"22 1 8:1 / / rw - {kind} server:/ rw\n")
    monkeypatch.setattr(machine, "MOUNTS", mounts)
    found = machine.log_folder(tmp_path / "new" / ".lifefold")
    assert found.fails
    assert kind in found.found


def test_a_log_folder_that_is_not_there_yet_is_judged_by_the_folder_above(tmp_path: Path) -> None:
    assert not machine.log_folder(tmp_path / "new" / ".lifefold").fails
    assert not (tmp_path / "new").exists()


def test_a_file_in_the_place_of_the_log_folder_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert machine.log_folder(tmp_path / "file" / ".lifefold").found == f"{tmp_path}/file is no folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_fails(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert machine.log_folder(tmp_path).fails


@pytest.mark.parametrize(
    ("version", "fails"), [("git version 2.37.9", True), ("git version 2.38.0", False), ("nothing", True)]
)
def test_a_git_that_is_too_old_fails_a_fleet_with_a_repository(version: str, fails: bool, tmp_path: Path) -> None:  # noqa: FBT001  # a table's column
    (tmp_path / "git").write_text(f"#!/bin/sh\necho {version}\n")
    (tmp_path / "git").chmod(0o755)
    found = anyio.run(lambda: machine.git({"PATH": f"{tmp_path}:/usr/bin:/bin"}, needed=True))
    assert found.fails is fails
    assert not anyio.run(lambda: machine.git({"PATH": f"{tmp_path}:/usr/bin:/bin"}, needed=False)).fails


def test_a_folder_without_a_repository_fails_with_a_remedy(tmp_path: Path) -> None:
    found = anyio.run(machine.repository, tmp_path)
    assert found.fails
    assert "git init" in found.remedy
