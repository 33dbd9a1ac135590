"""Every decoder and reader with changed input: it returns a value, or raises the errors that it documents.

A *reader* has valid inputs, a function, and the documented errors. A *change* cuts, repeats, replaces or inserts a part
of an input. Any other error is a finding, and so is a reader that needs more than ``LIMIT_S`` for a small input.
"""

import contextlib
import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, ClassVar, Final, NamedTuple

import anyio
import msgspec

from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.kernel import Codec, Envelope, UnreadableEntry
from lifefold.interpreters.adapters import Cutter, adapter_of, cut, remaining
from lifefold.interpreters.adapters.adapter import Now
from lifefold.interpreters.adapters.registry import SHIPPED
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.engine import Ledger, LogMismatchError
from lifefold.interpreters.engine.ledger import Decision
from lifefold.interpreters.fleet_file import FleetFileError
from lifefold.interpreters.fleet_file.loading import load_text
from lifefold.interpreters.processes.left_command import CommandRecord
from lifefold.interpreters.processes.session_files import SessionFileError, read_exit, read_order, read_start
from lifefold.interpreters.processes.shim import durable
from lifefold.interpreters.store import Batch, Entry, SqliteStore, StoreError
from lifefold.interpreters.store.base import _pages
from lifefold.interpreters.web.app import command_of
from lifefold.interpreters.web.pages import BadParameter
from trials import Verdict

ROOT: Final = Path(__file__).parents[2]
LIMIT_S: Final = 5.0
"""The processor time that no reader needs for an input of this size."""

PIECES: Final = (
    b"", b"\0", b"\n", b'"', b"{", b"[[[[[[[[", b"]", b"}", b",", b"-1", b"1e999", b"99999999999999999999", b"null",
    b"NaN", b"\xff\xfe", b"\\ud800", "é\u2028😀".encode(), b"{}" * 200, b"[" * 2_000, b"a" * 5_000, b"../../etc/passwd",
)  # fmt: skip
"""What is put into an input."""

NOW: Final = Now(1_700_000_000_000, 0)


RUNS: Final = 2_000
"""The number of inputs of a reader in a trial of ``guided``."""


class Change(NamedTuple):
    """A change of an input: what is done at which place, a share of its length; ``size_bytes`` are concerned."""

    kind: int
    place: float
    size_bytes: int
    piece: bytes

    def of(self, text: bytes) -> bytes:
        """Return the changed input."""
        begin = int(self.place * len(text))
        end = min(len(text), begin + self.size_bytes)
        part = text[begin:end]
        put = (b"", part + part, self.piece, self.piece + part, bytes(byte ^ 1 << self.size_bytes % 8 for byte in part))
        return text[:begin] + put[self.kind % len(put)] + text[end:]


def changed(text: bytes, changes: Sequence[Change]) -> bytes:
    """Return an input with changes."""
    for each in changes:
        text = each.of(text)
    return text


class Reader(NamedTuple):
    """A reader: its valid inputs, its function, and the errors that it documents."""

    inputs: Sequence[bytes]
    read: Callable[[bytes], object]
    errors: tuple[type[BaseException], ...] = ()


def adapter(name: str) -> Reader:
    """Return the reader of an agent program's output."""
    folder = ROOT / "tests" / "data" / "adapters" / name
    files = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []
    made = adapter_of(name)

    def read(text: bytes) -> object:
        cutter, lines = cut(Cutter(), text)
        state: Any = made.initial
        for line in (*lines, *remaining(cutter)):
            state, _ = made.read(state, line, NOW)
        return made.finish(state, 1)

    return Reader([file.read_bytes()[:8_000] for file in files] or [b"a line\n"], read)


@cache
def entries() -> tuple[Entry, ...]:
    """Return a small log of a fleet."""
    plan = Plan("small", (AgentPlan("ann"),), (TaskPlan("T1", "one"), TaskPlan("T2", "two", depends_on=("T1",))))
    ledger, made = Ledger(system), list[Entry]()
    for name, envelope in opening(plan, 1_000):
        decision = ledger.decide(name, envelope)
        assert isinstance(decision, Decision)
        made.append(decision.entry)
    return tuple(each for each in made if each.stream == "board")


@cache
def _codec() -> Codec:
    return Codec(system)


def read_envelope(text: bytes) -> Envelope:
    """Decode an input of the board, as a command is decoded."""
    return _codec().decode("board", text)


def read_outcome(text: bytes) -> object:
    """Fold a log whose first entry has this outcome."""
    first, *_ = entries()
    return list(Ledger(system, _codec()).fold([msgspec.structs.replace(first, outcome=text)]))


def read_command_line(text: bytes) -> object:
    """Parse the words of a command; what it prints is not shown."""
    words = text.decode("utf-8", "surrogateescape").split()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return parser().parse_args(words)


def in_folder(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Return a function that reads a file with this name from a folder of its own."""

    def written(text: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / name).write_bytes(text)
            return read(Path(folder))

    return written


@cache
def log_files() -> tuple[bytes, bytes]:
    """Return the main file and the write-ahead log of a small log that is in use."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        with SqliteStore.create(path, {"name": "small"}) as store:
            for number in range(1, 6):
                anyio.run(store.append, Batch([Entry("a", number, number, "", b"{}" * 300, b"{}")]))
            return path.read_bytes(), path.with_name("log.db-wal").read_bytes()


def read_fleet(text: bytes) -> object:
    """Read a fleet file."""
    return load_text(text.decode("utf-8", "replace"), ROOT / "examples" / "fleet.toml")


def read_durable(text: bytes) -> object:
    """Decode a file of the shim."""
    return durable.decode(text.decode("utf-8", "replace"))


def read_log(main: bytes, wal: bytes) -> object:
    """Open a log, and read and verify all its entries."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        path.write_bytes(main)
        path.with_name("log.db-wal").write_bytes(wal)
        with SqliteStore.peek(path) as store:
            return anyio.run(store.read_on, 0)


STARTED: Final = (
    b'{"pid": 10, "pgid": 10, "start_time": 5, "boot_id": "b", "shim_pid": 9, "shim_start_time": 4, "at_ms": 1,'
    b' "generation": 1}'
)
EXIT: Final = (
    b'{"outcome": "ended", "at_ms": 1, "code": 0, "escaped": [1], "usage": {"utime_ms": 1, "stime_ms": 2,'
    b' "maxrss_kib": 3}}'
)
ORDER: Final = b'{"argv": ["a", "b"], "kind": "command", "cwd": "/"}'
IDENTITY: Final = b'{"pid": 10, "start_time": 5, "boot_id": "b"}'
BODIES: Final = (
    b'{"command": "approve", "names": ["T1"], "reason": "r"}',
    b'{"command": "send", "name": "agent", "text": "hello"}',
    b'{"command": "retry", "names": ["T1"]}',
    b'{"command": "pause", "names": ["a"]}',
    b'{"command": "cancel", "names": ["T1"], "reason": "r"}',
)
LINES: Final = (
    b"run fleet.toml --no-live --db log.db", b"status --db log.db --json", b"send agent hello", b"why T1 --db log.db",
    b"check session --states 100", b"simulate fleet --seeds 5", b"tasks --json", b"stop --all", b"retry T1",
)  # fmt: skip


@cache
def readers() -> Mapping[str, Reader]:
    """Return all readers, by name."""
    main, wal = log_files()
    fleets = [file.read_bytes() for file in sorted((ROOT / "examples").glob("*.toml"))]
    pages = in_folder("log-wal", lambda folder: list(_pages(folder / "log-wal")))
    return {
        **{f"output of {name}": adapter(name) for name in SHIPPED},
        "input": Reader([each.envelope for each in entries()], read_envelope, (UnreadableEntry,)),
        "outcome": Reader([each.outcome for each in entries()], read_outcome, (LogMismatchError,)),
        "fleet file": Reader(
            fleets,
            read_fleet,
            (FleetFileError,),
        ),
        "command line": Reader(LINES, read_command_line, (SystemExit,)),
        "HTTP body": Reader(BODIES, command_of, (BadParameter,)),
        "start of a session": Reader([STARTED], in_folder("started.json", read_start), (SessionFileError,)),
        "end of a session": Reader([EXIT], in_folder("exit.json", read_exit), (SessionFileError,)),
        "order of a session": Reader([ORDER], in_folder("spec.json", read_order), (SessionFileError,)),
        "JSON of the shim": Reader([STARTED, EXIT, ORDER], read_durable, (ValueError,)),
        "record of a command": Reader(
            [IDENTITY], in_folder("left", lambda folder: CommandRecord(folder / "left")._read())
        ),
        "log": Reader([main], partial(read_log, wal=wal), (StoreError,)),
        "write-ahead log": Reader([wal], partial(read_log, main), (StoreError,)),
        "pages of a write-ahead log": Reader([wal], pages),
    }


def tried(reader: Reader, text: bytes) -> str:
    """Read an input; return what is wrong with that, or an empty text."""
    began = process_time()
    try:
        reader.read(text)
    except reader.errors:
        pass
    except BaseException as error:  # noqa: BLE001 - any other error is a finding
        return f"{type(error).__name__}: {re.sub(r'0x[0-9a-f]+', '', str(error))[:200]} of {text[:300]!r}"
    taken_s = process_time() - began
    return f"{taken_s:.1f} s for {text[:300]!r}" if taken_s > LIMIT_S else ""


def drawn(random: Random) -> list[Change]:
    """Return some changes."""
    return [
        Change(random.randrange(5), random.random(), random.choice((0, 1, 2, 8, 40, 400)), random.choice(PIECES))
        for _ in range(random.randint(0, 4))
    ]


class GuidedCampaign:
    """Each reader in turn, with ``RUNS`` inputs that follow its branches (``guided``)."""

    name: ClassVar[str] = "guided"

    def attempt(self, number: int) -> Verdict:
        """Try one reader. Raises ``LookupError`` without atheris."""
        if find_spec("atheris") is None:
            raise LookupError("needs atheris, and so a Python with a wheel of it: pip install atheris")
        name = list(readers())[number % len(readers())]
        program = [sys.executable, str(Path(__file__).with_name("guided.py")), name, str(RUNS)]
        done = subprocess.run(program, check=False, capture_output=True, text=True, errors="replace")
        wrong = () if done.returncode == 0 else (done.stderr[-600:],)
        return Verdict(name, wrong, {"inputs": RUNS})

    def close(self) -> None:
        """Keep nothing."""


class FuzzCampaign:
    """Each reader in turn, with a valid input that is changed by chance."""

    name: ClassVar[str] = "fuzz"

    def attempt(self, number: int) -> Verdict:
        """Try one input."""
        names, random = list(readers()), Random(number)
        name = names[number % len(names)]
        reader = readers()[name]
        text = changed(random.choice(reader.inputs), drawn(random))
        found = tried(reader, text)
        return Verdict(name, (found,) if found else (), {"bytes": len(text)})

    def close(self) -> None:
        """Keep nothing."""
