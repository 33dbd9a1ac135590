"""A PostgreSQL server for tests: in a folder of its own, reached by a socket there and by a port of loopback.

The server does not run as root, so a test that runs as root starts it as the user ``postgres``, or as ``nobody``. It
flushes to the disk, as a server of users does. ``server()`` raises ``NoServer`` with the reason where it cannot be had.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

import psycopg

from free_port import free_port

START_S: Final = 60
STOP_S: Final = 60
PAUSE_S: Final = 0.02

_FOLDERS: Final = ("/usr/lib/postgresql", "/usr/local/lib/postgresql", "/opt/homebrew/opt")
_USERS: Final = ("postgres", "nobody")


class NoServer(Exception):
    """There is no server program here; the message says what would help."""


class PostgresServer:
    """A running server. Its folder is gone after ``close``."""

    def __init__(self, primary: "PostgresServer | None" = None) -> None:
        """Start a server, or a standby of another one. Raises ``NoServer``."""
        self._bin = _programs()
        self._user = _user()
        self.folder = Path(tempfile.mkdtemp(prefix="lifefold-postgres-"))
        self.folder.chmod(0o755)
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._data = self.folder / "data"
        self.port = free_port()
        self._names = (f"log_{number}" for number in count(1))
        self._process: subprocess.Popen[bytes] | None = None
        self._is_gone = threading.Event()
        try:
            if primary is None:
                trusting = ("--auth", "trust", "--username", "lifefold")
                self._run("initdb", "--pgdata", str(self._data), *trusting, "--no-sync")
            else:
                copying = ("--dbname", primary.url, "--checkpoint", "fast", "--write-recovery-conf", "--no-sync")
                self._run("pg_basebackup", "--pgdata", str(self._data), *copying)
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The address of the database, by loopback."""
        return self.url_by(self.port)

    def url_by(self, port: int) -> str:
        """Return the address of the database by another port of loopback, as that of a proxy."""
        return f"postgresql://lifefold@127.0.0.1:{port}/postgres"

    @property
    def programs(self) -> Path:
        """The folder with the programs of PostgreSQL."""
        return self._bin

    def new_log(self) -> str:
        """Return the address of a log that is not there yet."""
        return f"{self.url}?log={next(self._names)}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = ["-D", str(self._data), "-k", str(self.folder), "-p", str(self.port), "-h", "127.0.0.1"]
        output = (self.folder / "output.log").open("ab")
        with output:
            self._process = subprocess.Popen(
                [self._bin / "postgres", *options, "-c", "fsync=on", "-c", "max_connections=60"],
                user=self._user,
                group=_group(self._user),
                extra_groups=[] if self._user else None,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        until_s = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > until_s or self._process.poll() is not None:
                    raise
                time.sleep(PAUSE_S)
            else:
                return

    def wait_for_standbys(self) -> None:
        """Acknowledge a commit from now on when a standby has it on its disk."""
        with psycopg.connect(self.url, autocommit=True) as session:
            session.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            session.execute("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make a standby a server that is written to."""
        self._run("pg_ctl", "promote", "--pgdata", str(self._data), "--wait")

    def kill(self) -> None:
        """Kill all processes of the server at once, as a crash of its machine does."""
        if self._process is None:
            return
        os.kill(self._process.pid, signal.SIGSTOP)  # so it begins no new session meanwhile
        for child in _children(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(STOP_S)
        self._process = None
        self._is_gone.set()

    def wait_until_gone(self) -> None:
        """Wait until another thread has killed the server."""
        self._is_gone.wait(STOP_S)

    def close(self) -> None:
        """Stop the server, and remove its folder."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # ends all sessions
            self._process.wait(STOP_S)
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(
            [self._bin / program, *words],
            user=self._user,
            group=_group(self._user),
            extra_groups=[] if self._user else None,
            cwd=self.folder,
            check=True,
            capture_output=True,
        )


@contextmanager
def server() -> Generator[PostgresServer]:
    """Run a server. Raises ``NoServer``."""
    running = PostgresServer()
    try:
        yield running
    finally:
        running.close()


def _programs() -> Path:
    """Return the folder with the newest server program. Raises ``NoServer``."""
    found = shutil.which("postgres")
    if found:
        return Path(found).resolve().parent
    every = [each for folder in _FOLDERS for each in Path(folder).glob("*/bin/postgres")]
    if not every:
        raise NoServer("no PostgreSQL server here; `make postgres` installs one (needs apt and root)")
    return max(every, key=lambda each: float(each.parent.parent.name.removeprefix("postgresql@") or 0)).parent


def _user() -> str | None:
    """Return the user that the server runs as; None for this one. Raises ``NoServer``."""
    if os.geteuid():
        return None
    for name in _USERS:
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise NoServer("PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody' here")


def _group(user: str | None) -> int | None:
    return None if user is None else pwd.getpwnam(user).pw_gid


def _children(parent: int) -> list[int]:
    """Return the direct children of a process."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[1] == str(parent):
                found.append(int(stat.parent.name))
    return found
