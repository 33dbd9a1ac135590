"""Named pipes at which a process waits are found, and other waits are not taken for them."""

import os
import subprocess
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from lifefold.interpreters.processes.shim import proc
from lifefold.interpreters.worktrees import pipes
from session_scripts import PATIENCE_S


@contextmanager
def at_work(folder: Path, command: Sequence[str]) -> Generator[int]:
    """Run a command in a process group of its own; yield the number of the group."""
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    ) as child:
        try:
            yield child.pid
        finally:
            child.kill()


def found(group: int) -> str:
    """Look at a group until a pipe is found before it."""
    until_ms = proc.monotonic_ms() + PATIENCE_S * 1000
    while proc.monotonic_ms() < until_ms:
        if pipe := pipes.pipe_before(group, None):
            return pipe
    raise AssertionError("no pipe is found")


@pytest.mark.parametrize("command", [("cat", "pipe"), ("sh", "-c", "echo > pipe"), ("sh", "-c", "cat pipe; :")])
def test_the_pipe_that_a_process_of_a_group_opens_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    """To read or to write, relative to its own folder, in a child of the command."""
    os.mkfifo(tmp_path / "pipe")
    with at_work(tmp_path, command) as group:
        assert found(group) == str(tmp_path / "pipe")


def test_a_pipe_that_is_open_and_empty_is_named(tmp_path: Path) -> None:
    """An agent can hold the other end open, so that the reader waits for a text."""
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDWR)
    with at_work(tmp_path, ("cat", "pipe")) as group:
        assert found(group) == str(tmp_path / "pipe")
    os.close(held)


def waiting(group: int) -> Counter[str]:
    """Return the programs of a group that sleep in a system call, with their numbers."""
    found = [(pid, each) for pid in proc.pids() if (each := proc.stat(pid)) is not None and each.pgid == group]
    calls = {pid: proc.read_bytes(f"/proc/{pid}/syscall").split()[0] for pid, _ in found}
    return Counter(proc.read_bytes(f"/proc/{pid}/comm").decode().strip() for pid in calls if calls[pid] != b"running")


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        (("sleep", "600"), {"sleep": 1}),
        (("sh", "-c", "sleep 600 | cat"), {"sh": 1, "sleep": 1, "cat": 1}),
    ],
)
def test_a_process_that_waits_for_something_else_waits_at_no_pipe(
    tmp_path: Path, command: tuple[str, ...], programs: dict[str, int]
) -> None:
    """A pipe between two commands has another end that writes. All of them wait when they are looked at."""
    os.mkfifo(tmp_path / "pipe")
    with at_work(tmp_path, command) as group:
        until_ms = proc.monotonic_ms() + PATIENCE_S * 1000
        while waiting(group) != programs:
            assert proc.monotonic_ms() < until_ms, waiting(group)
        assert pipes.pipe_before(group, tmp_path) == ""
        assert waiting(group) == programs


def test_the_usual_files_of_git_are_examined_if_the_system_does_not_show_what_a_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is on systems without ``/proc``."""
    monkeypatch.setattr(proc, "pids", list)
    assert pipes.pipe_before(1, tmp_path) == ""
    (tmp_path / "info").mkdir()
    os.mkfifo(tmp_path / "info" / "exclude")
    assert pipes.pipe_before(1, tmp_path) == str(tmp_path / "info" / "exclude")
    assert pipes.pipe_before(1, None) == ""
