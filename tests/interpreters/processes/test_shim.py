"""The shim as a program: starts that it refuses, failures that it survives, and its own JSON codec."""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.processes import read_exit, read_start
from lifefold.interpreters.processes.session_files import write_spec
from lifefold.interpreters.processes.shim import durable, output, proc, program
from session_scripts import PATIENCE_S, SHIM, Bell, run_shim, script, start_shim

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def test_a_second_shim_refuses(tmp_path: Path) -> None:
    """One directory, one shim: neither beside it nor after it is there another."""
    bell, go = Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    write_spec(tmp_path, script(f"echo > {bell}; read line < {go}"), lease_until_boot_ms=None)
    with start_shim(tmp_path) as first:
        bell.heard_now()
        before = (tmp_path / "started.json").read_bytes()
        assert run_shim(tmp_path) == program.BUSY
        go.ring()
        assert first.wait(PATIENCE_S) == program.OK
    assert run_shim(tmp_path) == program.REPEATED
    assert (tmp_path / "started.json").read_bytes() == before


@pytest.mark.parametrize("spec", ["", "{}", "[]", '{"argv": []}', "no JSON"])
def test_a_shim_with_a_useless_order_records_that(spec: str, tmp_path: Path) -> None:
    """An unreadable order is recorded as a failed start, so that no runner waits for it."""
    (tmp_path / "spec.json").write_text(spec)
    assert run_shim(tmp_path) == program.OK
    ended = read_exit(tmp_path)
    assert ended is not None
    assert ended.outcome == "spawn-failed"
    assert ended.message.startswith("cannot start the agent")
    assert read_start(tmp_path) is None


@pytest.mark.parametrize("told", [b"", b'{"PATH": "/b', b"[]"])
def test_a_shim_that_was_not_told_all_variables_starts_nothing_and_another_launch_may(
    told: bytes, tmp_path: Path
) -> None:
    """A runner that dies while it hands the values over leaves a directory in which nothing was started."""
    write_spec(tmp_path, script(f"echo ran > {tmp_path}/ran"), lease_until_boot_ms=None)
    assert run_shim(tmp_path, told) == program.NO_ENVIRONMENT
    assert (read_start(tmp_path), read_exit(tmp_path), (tmp_path / "ran").exists()) == (None, None, False)
    assert run_shim(tmp_path) == program.OK
    assert (tmp_path / "ran").exists()


def test_a_variable_without_a_value_is_a_start_that_failed(tmp_path: Path) -> None:
    """The agent never runs with less than it was to have."""
    write_spec(tmp_path, script("exit 0", env={"PATH": "/bin", "TOKEN": "x"}), lease_until_boot_ms=None)
    assert run_shim(tmp_path, b'{"PATH": "/bin"}') == program.OK
    ended = read_exit(tmp_path)
    assert ended is not None
    assert (ended.outcome, "TOKEN" in ended.message) == ("spawn-failed", True)


def test_a_full_disk_keeps_no_output_but_the_end_is_recorded(tmp_path: Path) -> None:
    """The agent is not held up, and what is missing is counted."""
    (tmp_path / "output.log").symlink_to("/dev/full")
    write_spec(tmp_path, script("head -c 300000 /dev/zero; exit 5"), lease_until_boot_ms=None)
    assert run_shim(tmp_path) == program.OK
    ended = read_exit(tmp_path)
    assert ended is not None
    assert (ended.code, ended.output_bytes, ended.output_dropped_bytes) == (5, 300_000, 300_000)
    assert "No space left" in ended.message


def test_space_for_the_last_record_is_reserved_before_the_start(tmp_path: Path) -> None:
    """On a disk that the agent filled up, the end can be written over what was reserved."""
    bell, go = Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    write_spec(tmp_path, script(f"echo > {bell}; read line < {go}"), lease_until_boot_ms=None)
    with start_shim(tmp_path):
        bell.heard_now()
        reserved = (tmp_path / "exit.json.tmp").stat()
        go.ring()
    assert reserved.st_size == 16 * 1024
    assert (tmp_path / "exit.json").stat().st_ino == reserved.st_ino


STANDS = {
    "pipe": "mkfifo {path}",
    "link to a pipe": "mkfifo {path}.pipe; ln -s {path}.pipe {path}",
    "link to a file": "ln -s {folder}/precious {path}",
    "link to nothing": "ln -s {path}.none {path}",
    "folder": "mkdir {path}; echo kept > {path}/inner",
}
"""What an agent puts at the path of a file of its shim."""


@pytest.mark.parametrize("name", ["exit.json.tmp", "exit.json", "output.position", "output.log.tmp"])
@pytest.mark.parametrize("stands", STANDS.values(), ids=STANDS)
def test_the_end_is_recorded_whatever_an_agent_puts_in_place_of_the_files(
    stands: str, name: str, tmp_path: Path
) -> None:
    """The shim neither waits for a reader nor writes through a link, and removes no folder's contents."""
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "precious").write_text("p")
    puts = stands.format(path=folder / name, folder=tmp_path)
    text = f"rm -f {folder / name}; {puts}; head -c 300000 /dev/zero; exit 5"
    write_spec(folder, script(text, output_limit_bytes=4_000), lease_until_boot_ms=None)
    assert run_shim(folder) == program.OK
    ended = read_exit(folder)
    assert ended is not None
    assert (ended.code, ended.output_bytes, ended.message) == (5, 300_000, "exit status 5")
    assert len(output.tail(str(folder), 10_000)) > 4_000
    assert (tmp_path / "precious").read_text() == "p"
    if stands == STANDS["folder"]:
        assert (folder / f"{name}-1" / "inner").read_text() == "kept\n"


def test_a_file_that_another_process_keeps_replacing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of tries is bounded, so an agent cannot hold its shim up with a loop of links."""
    path = tmp_path / "file"
    path.symlink_to("elsewhere")
    real = os.unlink

    def replaced(there: str) -> None:
        real(there)
        path.symlink_to("elsewhere")

    monkeypatch.setattr(os, "unlink", replaced)
    with pytest.raises(OSError, match="keeps replacing"):
        durable.open_to_write(str(path))
    assert not (tmp_path / "elsewhere").exists()


def test_a_shim_that_is_killed_before_the_record_has_run_nothing(tmp_path: Path) -> None:
    """The gate opens after the record: without a record there was no agent, however early the shim died."""
    write_spec(tmp_path, script(f"echo ran > {tmp_path}/ran"), lease_until_boot_ms=None)
    with start_shim(tmp_path, writes="time.sleep(1_000)") as shim:
        agent = only_child(shim.pid)
        pidfd = os.pidfd_open(agent)
        shim.kill()
    assert select.select([pidfd], [], [], PATIENCE_S)[0], "the agent waits at its gate for ever"
    os.close(pidfd)
    assert not (tmp_path / "ran").exists()
    assert read_start(tmp_path) is None


def only_child(pid: int) -> int:
    """Wait until a process has a child."""
    until_ms = proc.monotonic_ms() + PATIENCE_S * 1000
    while proc.monotonic_ms() < until_ms:
        if children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            return int(children[0])
    raise AssertionError("it has no child")


def test_a_start_that_cannot_be_recorded_runs_nothing(tmp_path: Path) -> None:
    """No room for the record of the start: the agent is given up before it ran, and that is on record."""
    write_spec(tmp_path, script(f"echo ran > {tmp_path}/ran"), lease_until_boot_ms=None)
    assert run_shim(tmp_path, writes='raise OSError(28, "No space left on device")') == program.OK
    assert not (tmp_path / "ran").exists()
    assert read_start(tmp_path) is None
    ended = read_exit(tmp_path)
    assert ended is not None
    assert (ended.outcome, "No space left" in ended.message) == ("spawn-failed", True)


@pytest.mark.parametrize("text", ['{"a": "b', '"', "[1, tru", '"\\x"', '{"a" 1}', "[1] 2", ""])
def test_what_is_no_json_is_refused_without_the_json_package(text: str) -> None:
    """A shim has no json package; what was cut off is a ValueError there, too, and ends no shim."""
    reads = f"import sys; sys.path.append({str(SHIM.parents[1])!r}); from shim import durable; durable.decode({text!r})"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", reads], check=False, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith(("ValueError: ", "json.decoder.JSONDecodeError: "))


@given(VALUES)
def test_the_shims_json_is_json(value: "durable.Json") -> None:
    """What the shim writes and reads without the json package is what the package would."""
    assert json.loads(durable.encode(value)) == value
    assert durable.decode(json.dumps(value)) == value
    assert durable.decode(f" {durable.encode(value)}\n") == value


@pytest.mark.parametrize("text", ["", "{", "[1,]", "1 2", "nul", '{"a" 1}', "[" * 100_000, '"\n"'])
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    """Whatever comes through the pipe, the shim has one error to expect."""
    with pytest.raises(ValueError):  # noqa: PT011 - any text will do
        durable.decode(text)


def test_starting_a_shim_imports_nothing_slow() -> None:
    """A session's start is not to cost more than the interpreter's own."""
    slow = {"enum", "re", "json", "typing", "pathlib", "signal", "subprocess", "selectors", "collections"}
    code = f"import sys; sys.path.append({str(SHIM.parent.parent)!r}); import shim.program; print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", code]
    found = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert slow.isdisjoint(found.stdout.split())
