"""The command ``output``: what the session of an agent prints, decoded by the adapter of its program."""

import sys
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from time import sleep
from typing import Final, TypeVar

import anyio
import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.system.rerun import is_over
from lifefold.interpreters.cli import excerpts, logs
from lifefold.interpreters.cli.addressees import addressee
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.wording import moment
from lifefold.interpreters.desk.elsewhere import host_of, known, where
from lifefold.interpreters.desk.history import History, SessionRecord
from lifefold.interpreters.desk.output_lines import OutputLine
from lifefold.interpreters.desk.session_output import SessionOutput, secrets_of_log
from lifefold.interpreters.engine import Decision
from lifefold.interpreters.explain import status, task_status
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.hosts import Host, hosts_of
from lifefold.interpreters.store import LogStore

T = TypeVar("T")
Waits = Callable[[], bool]

_MOST_NAMED: Final = 6
"""The most sessions that an error names."""


class LineOfSession(msgspec.Struct, frozen=True):
    """A line of ``--json``: an output line with its session. The same fields are in the answers of the web."""

    agent: str
    session: int
    task: str
    kind: str
    text: str
    is_bad: bool = False
    until_ms: int = 0
    attempt: int = 0
    """The attempt at the task; 0 for a service, which has no task."""


def output(arguments: Namespace) -> None:
    """Print the output of a session, and with ``--follow`` that of the next ones."""
    if arguments.raw and arguments.json:
        raise BadInput("--raw and --json: accepted: one of them")
    if arguments.attempt and arguments.session:
        raise BadInput("--attempt and --session: accepted: one of them")
    if arguments.follow and arguments.at:
        raise BadInput("--follow and --at: accepted: one of them, because the past does not go on")
    with logs.peek(arguments.db, arguments.at) as store:
        Reading(store, arguments).run()


class Reading:
    """One reading of the outputs of an agent or a task."""

    def __init__(self, store: LogStore, arguments: Namespace) -> None:
        """Fold the log, and find the session. Raises ``BadInput`` without one."""
        self._store: Final = store
        self._arguments: Final = arguments
        self._ledger: Final = logs.fold(store)
        self._history: Final = History()
        self._folder: Final = FleetFolder(store.path)
        self._secrets: Final = secrets_of_log(store)
        self._of: Final = addressee(self._ledger.aggregates, arguments.name)
        of = excerpts.of_task if self._of.is_task else excerpts.of_agent
        self._observe(of(store, self._ledger, self._of.name))

    def run(self) -> None:
        """Print until the last session is over; with ``--follow`` until no further one can come."""
        follows = self._arguments.follow
        if self._arguments.attempt or self._arguments.session:
            for record in self._numbered():
                self._print(record, follows=follows)
            return
        last = self._last()
        while last is not None:
            self._print(last, follows=follows)
            last = self._next(last) if follows else None

    def _fold(self) -> None:
        self._observe(logs.decisions(self._store, self._ledger))

    def _observe(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            self._history.observe(decision.entry.stream, decision.reaction)

    def _sessions(self) -> Sequence[SessionRecord]:
        if self._of.is_task:
            return self._history.sessions(task=self._of.name)
        of = self._ledger.aggregates.get(f"{service.KIND}/{self._of.name}")
        if of is not None:
            runs = status.service_status(of)
            return tuple(SessionRecord(of.key, each + 1, "", 0, 0) for each in range(runs.attempt))
        return self._history.sessions(agent=self._of.name)

    def _numbered(self) -> Sequence[SessionRecord]:
        """Return the sessions of ``--attempt`` or ``--session``. Raises ``BadInput``."""
        found, name, attempt = self._sessions(), self._of.name, self._arguments.attempt
        if attempt and not self._of.is_task:
            raise BadInput(
                f"--attempt is of a task, and {name} is an agent; accepted: --session N, or the name of a task"
            )
        if not attempt and self._of.is_task:
            raise BadInput(
                f"--session is of an agent, and {name} is a task; accepted: --attempt N, or the name of an agent"
            )
        numbered: dict[int, list[SessionRecord]] = {}
        for each in found:
            numbered.setdefault(self._attempt(each) if attempt else each.number, []).append(each)
        wanted = attempt or self._arguments.session
        if wanted not in numbered:
            known = ", ".join(map(str, list(numbered)[-_MOST_NAMED:])) or "none yet"
            option, what = ("--attempt", "attempt with a session") if attempt else ("--session", "session")
            raise BadInput(f"{option} {wanted}: {name} has no such {what}; accepted: {known}")
        return numbered[wanted]

    def _attempt(self, of: SessionRecord) -> int:
        """Return the number of the attempt at a task that a session belongs to; 0 without a task."""
        if self._of.is_task or not of.task:
            return self._history.attempt(of.task, of.claim)
        claims = History()
        for decision in excerpts.of_claims(self._store, self._ledger, of.task):
            claims.observe(decision.entry.stream, decision.reaction)
        return claims.attempt(of.task, of.claim)

    def _last(self) -> SessionRecord | None:
        """Return the last session; None if the first one is waited for, and none comes."""
        found = self._sessions()
        if found:
            return found[-1]
        if not self._arguments.follow:
            why = f"; lifefold why {self._of.name}{logs.LOG} explains it" if self._of.is_task else ""
            raise BadInput(logs.typed(f"{self._of.name} has had no session yet{why}", self._store))
        return self._next(None)

    def _next(self, record: SessionRecord | None) -> SessionRecord | None:
        """Wait for the session after another; None if no further one comes while this runner is at work."""
        while True:
            self._fold()
            found = list(self._sessions())
            place = 0 if record is None else 1 + next(n for n, each in enumerate(found) if _are_one(each, record))
            if place < len(found):
                return found[place]
            if self._is_settled() or not self._store.is_written():
                return None
            sleep(logs.LOOK_S)

    def _is_settled(self) -> bool:
        there = self._ledger.aggregates
        if is_over(there):
            return True
        if self._of.is_task:
            return any(each.settled for each in task_status.tasks(there) if each.id == self._of.name)
        of = there.get(f"{worker.KIND}/{self._of.name}")
        return of is not None and status.agent_status(of).state == "Stopped"

    def _print(self, record: SessionRecord, *, follows: bool) -> None:
        found = SessionOutput(self._folder, record, self._secrets)
        host = None if found.is_there else host_of(record, anyio.run(hosts_of, self._store))
        if not found.is_there and (host is not None or record.ended_ms):
            self._print_known(record, host)
            return
        if self._arguments.raw:
            _until_over(found, found.raw, _write, self._waits if follows else None)
            return
        if not self._arguments.json:
            print(_head(record, found.kind, self._attempt(record)), flush=True)
        show = self._json_of(record) if self._arguments.json else OutputLine.line
        last = self._arguments.last

        def print_lines(lines: Iterable[OutputLine]) -> None:
            nonlocal last
            wanted = deque(lines, maxlen=last) if last else lines
            last = 0  # only what is there at the beginning is shortened
            for each in wanted:
                print(show(_dated(each) if show is OutputLine.line else each), flush=follows)

        _until_over(found, found.read, print_lines, self._waits if follows else None)
        if not found.is_over and not self._arguments.json and follows:
            print("(no runner is at work, and the session has no output)")

    def _print_known(self, record: SessionRecord, host: Host | None) -> None:
        """Print what is known of a session whose output is not on this machine."""
        if self._arguments.raw:
            print(where(record, host), file=sys.stderr)
            return
        if not self._arguments.json:
            print(_head(record, "", self._attempt(record)))
        show = self._json_of(record) if self._arguments.json else OutputLine.line
        for line in known(record, host):
            print(show(msgspec.structs.replace(line, text=self._secrets.hidden(line.text))), flush=True)

    def _waits(self) -> bool:
        """Wait a moment, and tell whether a runner may still begin the session."""
        sleep(logs.LOOK_S)
        return self._store.is_written()

    def _json_of(self, record: SessionRecord) -> Callable[[OutputLine], str]:
        of, attempt = (record.agent, record.number, record.task), self._attempt(record)

        def shown(line: OutputLine) -> str:
            said = LineOfSession(*of, line.kind, line.text, line.is_bad, line.until_ms, attempt)
            return msgspec.json.encode(said).decode()

        return shown


def _until_over(
    found: SessionOutput, read: Callable[[], Iterable[T]], show: Callable[[Iterable[T]], None], waits: Waits | None
) -> None:
    """Tell what there is; with ``waits`` go on until the session is over, or can neither begin nor end."""
    show(read())
    while waits is not None and not found.is_over:
        if not waits() and not found.is_there:
            return
        show(read())


def _write(pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _head(record: SessionRecord, kind: str, attempt: int) -> str:
    """Return the line above the output of a session, with the attempt that it belongs to."""
    at = f" at {record.task}, attempt {attempt}" if record.task else ""
    program = f" ({kind})" if kind else ""
    since = f", begun {moment(record.began_ms)}" if record.began_ms else ""
    return f"== session {record.number} of {record.agent}{at}{program}{since} =="


def _dated(line: OutputLine) -> OutputLine:
    """Return a line with the time of day at which its limit ends."""
    return msgspec.structs.replace(line, text=f"{line.text}, until {moment(line.until_ms)}") if line.until_ms else line


def _are_one(record: SessionRecord, other: SessionRecord) -> bool:
    return (record.agent, record.number) == (other.agent, other.number)
