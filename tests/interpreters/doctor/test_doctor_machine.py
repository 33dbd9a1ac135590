"""What is found of the machine: git, the repository, and the folder of the log."""

import os
from pathlib import Path

import anyio
import pytest

from git_sandbox import git, new_repository
from lifefold.interpreters.doctor import Finding, Verdict, examine, machine
from lifefold.interpreters.fleet_file import load

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


REMOTE = """
[fleet]
name = "demo"
repository = "."
[[agents]]
name = "ann"
command = ["true"]
[[tasks]]
id = "t"
prompt = "x"
[cluster]
remote = "{remote}"
{more}
"""


def found_of_remote(folder: Path, remote: str = "remote.git", more: str = "") -> Finding:
    """Return what is found of a remote."""
    file = folder / "fleet.toml"
    file.write_text(REMOTE.format(remote=remote, more=more))
    examined = anyio.run(examine, load(file), folder)
    return next(each for each in examined.machine if each.what == "remote")


def test_the_branch_of_a_remote_is_the_one_of_its_head_or_of_the_fleet_file(tmp_path: Path) -> None:
    """The working folder of a cluster's fleet need not be a repository."""
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=trunk", "remote.git")
    found = found_of_remote(tmp_path)
    assert found.fails
    assert "has no branch" in found.found
    assert found.place == str(tmp_path / "fleet.toml")
    origin = new_repository(tmp_path / "origin")
    git(origin, "push", "--quiet", str(tmp_path / "remote.git"), "main:trunk", "main:release")
    found = found_of_remote(tmp_path)
    assert (found.found, found.place, found.fails) == ("branch trunk", str(tmp_path / "remote.git"), False)
    assert found_of_remote(tmp_path, more='branch = "release"').found == "branch release"
    other = found_of_remote(tmp_path, more='branch = "other"')
    assert (other.found, other.fails) == (f"The remote {tmp_path}/remote.git has no branch other", True)


def test_a_remote_that_does_not_answer_fails_with_a_command_to_try(tmp_path: Path) -> None:
    """The message has what git says, and no user part of the address."""
    found = found_of_remote(tmp_path, remote="file://ann@localhost/nowhere.git")
    assert found.fails
    assert "does not appear to be a git repository" in found.found
    assert found.remedy.endswith("git ls-remote file://localhost/nowhere.git")
    assert "ann@" not in found.found
