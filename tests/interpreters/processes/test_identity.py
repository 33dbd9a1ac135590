"""Identities: a signal reaches the intended process, or none."""

import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager

import msgspec
import pytest

from lifefold.interpreters.processes import ProcessIdentity, identify, is_alive, signal_group_if_ours, signal_if_ours
from session_scripts import PATIENCE_S


@contextmanager
def sleeper() -> Generator[tuple[subprocess.Popen[bytes], ProcessIdentity]]:
    """Have a process that leads its own group."""
    with subprocess.Popen(["/bin/sleep", "1000"], process_group=0) as process:
        try:
            identity = identify(process.pid)
            assert identity is not None
            yield process, identity
        finally:
            process.kill()


def test_a_process_is_itself_and_alive() -> None:
    """A process keeps its identity for life."""
    me = identify(os.getpid())
    assert me is not None
    assert me == identify(os.getpid())
    assert is_alive(me)


def test_a_signal_reaches_the_process_that_is_meant() -> None:
    """A proven identity is all it takes."""
    with sleeper() as (process, identity):
        assert signal_if_ours(identity, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == -signal.SIGTERM
        assert not signal_if_ours(identity, signal.SIGTERM)


def test_a_signal_reaches_the_group_that_is_meant() -> None:
    """The leader's identity proves the group, even when the leader is a zombie, but not when it was reaped."""
    with sleeper() as (process, identity):
        assert signal_group_if_ours(identity, signal.SIGTERM)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert signal_group_if_ours(identity, signal.SIGTERM)
        process.wait(PATIENCE_S)
        assert not signal_group_if_ours(identity, signal.SIGTERM)


def test_a_group_is_signalled_only_through_its_leader() -> None:
    """A member of another group proves nothing about the other members."""
    with subprocess.Popen(["/bin/sleep", "1000"]) as process:
        identity = identify(process.pid)
        assert identity is not None
        assert not signal_group_if_ours(identity, signal.SIGKILL)
        assert is_alive(identity)
        process.kill()


@pytest.mark.parametrize("changed", ["start_time", "boot_id"])
def test_a_recycled_pid_is_not_signalled(changed: str) -> None:
    """A pid with another start time, or of another boot, belongs to another process."""
    with sleeper() as (process, identity):
        old = msgspec.structs.replace(
            identity, **{changed: "other" if changed == "boot_id" else identity.start_time - 1}
        )
        assert not is_alive(old)
        assert not signal_if_ours(old, signal.SIGKILL)
        assert not signal_group_if_ours(old, signal.SIGKILL)
        assert process.poll() is None
        assert is_alive(identity)


def test_a_zombie_is_dead() -> None:
    """An unreaped dead process does nothing any more."""
    with sleeper() as (process, identity):
        os.kill(process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(identity)
        assert identify(process.pid) is None
        assert not signal_if_ours(identity, signal.SIGTERM)
