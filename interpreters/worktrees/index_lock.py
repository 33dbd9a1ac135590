"""Git's lock on the user's index: taken with a text that identifies it, and described if another process has it.

Git's own lock file is empty, so the lock of a dead git looks like that of a running one. A lock of lifefold contains a
text that git never writes. Only a lock with exactly that text is ever removed.
"""

import errno
import os
import pwd
import stat
import time
from contextlib import suppress
from pathlib import Path

from lifefold.interpreters.processes.shim import proc
from lifefold.interpreters.worktrees.aside import read_regular
from lifefold.interpreters.worktrees.locks import who_has

MARK = "lifefold"
"""The key in the text of each fleet's lock; its value is the fleet's name."""

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EXDEV, errno.EMLINK)
_LIMIT_BYTES = 65_536


def take(lock: Path, note: Path) -> bool:
    """Take the lock, with the text of ``note`` in it from the start; return whether it was free."""
    try:
        os.link(note, lock)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _write(lock, read_regular(note, _LIMIT_BYTES))
    return True


def is_ours(lock: Path, note: Path) -> bool:
    """Tell whether the lock exists and contains the text of ``note``."""
    text = read_regular(lock, _LIMIT_BYTES)
    return bool(text) and text == read_regular(note, _LIMIT_BYTES)


def whose(lock: Path, folder: Path) -> str:
    """Describe a lock on the index of ``folder``: its owner, its age, and what the operator can do."""
    try:
        found, text = lock.lstat(), read_regular(lock, _LIMIT_BYTES)
    except OSError:
        return f"{lock} existed, and is gone"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found.st_mtime))
    made = f"{lock} exists since {since}, made by {_login(found.st_uid)}"
    holders = sorted({*who_has(found), *_gits_at(folder)})
    if holders:
        return f"{made}; at work there: {', '.join(_named(pid) for pid in holders)}. The merge continues when that ends"
    if text.startswith(b'{"' + MARK.encode() + b'"'):
        return f"{made}: a merge of another lifefold fleet was interrupted. Run that fleet again; it removes the lock"
    remove = "rm -r" if stat.S_ISDIR(found.st_mode) else "rm"
    return f"{made}; no git is at work there, so one was probably killed. If none of yours is: {remove} '{lock}'"


def _write(lock: Path, text: bytes) -> bool:
    try:
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)
    return True


def _login(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _gits_at(folder: Path) -> list[int]:
    """Return the git processes whose working directory is in a folder (Linux)."""
    return [pid for pid in proc.pids() if _called(pid).startswith("git") and _is_in(pid, folder.resolve())]


def _is_in(pid: int, folder: Path) -> bool:
    with suppress(OSError):  # it is dead, or belongs to another user
        return Path(f"/proc/{pid}/cwd").resolve(strict=True).is_relative_to(folder)
    return False


def _called(pid: int) -> str:
    try:
        return proc.read_bytes(f"/proc/{pid}/comm", 64).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _named(pid: int) -> str:
    return f"process {pid} ({_called(pid) or 'gone'})"
