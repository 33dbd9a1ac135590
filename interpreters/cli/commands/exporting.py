"""The command ``export``: a log as spans and metrics of OpenTelemetry, or as an ITF trace."""

import sys
import time
from argparse import Namespace
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from lifefold.core.kernel import World
from lifefold.core.kernel.shown import counted
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.recorded_logs import OneLog, must_be_of, one_log, opened, position_of
from lifefold.interpreters.cli.written import see_to, write
from lifefold.interpreters.engine import Decision, Ledger, LogMismatchError
from lifefold.interpreters.store import Entry, LogStore, NotAStore

if TYPE_CHECKING:
    from lifefold.interpreters.telemetry.fleet_spans import FleetSpans
    from lifefold.interpreters.telemetry.metrics import Metrics
    from lifefold.interpreters.telemetry.otlp import Exporter, Writer
    from lifefold.interpreters.telemetry.system_spans import SystemSpans

EXTRA: Final = "lifefold export otel needs OpenTelemetry, and {} is not installed: pip install 'lifefold[otel]'"

_OF_EXTRA: Final = frozenset({"opentelemetry", "google"})


def export(arguments: Namespace) -> int:
    """Write a log in the format of the arguments. Raises ``BadInput``."""
    if arguments.follow and arguments.at:
        raise BadInput("--follow and --at: accepted: one of them, because the past does not go on")
    if arguments.format == "itf":
        return _itf(arguments)
    try:
        from lifefold.interpreters.telemetry import otlp  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _OF_EXTRA:
            raise
        raise BadInput(EXTRA.format(error.name)) from error

    of = one_log(arguments.log, arguments.db)
    try:
        with opened(of) as store, _writer(arguments.to) as writer:
            return _otel(arguments, of, store, writer)
    except otlp.UndeliveredError as error:
        print(f"lifefold: {error}", file=sys.stderr)
        return 3


def _itf(arguments: Namespace) -> int:
    """Write the states of a log as an ITF trace."""
    from lifefold.interpreters.recorder.recording import recorded  # noqa: PLC0415 - seldom needed
    from lifefold.interpreters.report.itf import is_written_here, of_steps, text  # noqa: PLC0415 - as above

    if arguments.follow:
        raise BadInput("--follow: accepted with otel only, because an ITF trace is one whole value")
    if arguments.to is not None and _is_url(arguments.to):
        raise BadInput(f"--to {arguments.to}: accepted with itf: a file")
    of = one_log(arguments.log, arguments.db)
    with opened(of) as store:
        entries = _entries(store, of)[: position_of(store, arguments)]
    try:
        steps = [each.step for each in recorded(of.system, entries) if each.is_of_system]
    except LogMismatchError as error:
        raise BadInput(str(error)) from error
    written = text(of_steps(of.path.name, steps, World(of.system)))
    if arguments.to is None:
        sys.stdout.write(written)
        return 0
    see_to(Path(arguments.to), "trace", is_written_here)
    write(Path(arguments.to), written.encode(), is_quiet=False)
    return 0


def _otel(arguments: Namespace, of: OneLog, store: LogStore, writer: "Writer") -> int:
    """Write the spans and the metrics of a log; return 130 after leaving early."""
    from lifefold.interpreters.telemetry.fleet_spans import FleetSpans  # noqa: PLC0415 - slow to import
    from lifefold.interpreters.telemetry.identifiers import identity_of  # noqa: PLC0415 - as above
    from lifefold.interpreters.telemetry.metrics import Metrics  # noqa: PLC0415 - as above
    from lifefold.interpreters.telemetry.otlp import Exporter  # noqa: PLC0415 - needs an extra
    from lifefold.interpreters.telemetry.system_spans import SystemSpans  # noqa: PLC0415 - slow to import

    entries = _entries(store, of)
    if arguments.at is not None:
        entries = entries[: position_of(store, arguments)]
    if not entries and not arguments.follow:
        raise BadInput(f"{of.path} has no entry yet")
    while not entries:
        time.sleep(logs.LOOK_S)
        entries = _entries(store, of)
    identity = store.meta("run") or identity_of(entries[0])
    resource = {"service.name": store.meta("fleet") or of.path.stem, "lifefold.log": identity}
    exporter, metrics = Exporter(writer, resource), Metrics(is_fleet=of.is_fleet)
    spans = FleetSpans(identity) if of.is_fleet else SystemSpans(of.system, identity)
    ledger = Ledger(of.system)
    try:
        _put(exporter, spans, metrics, ledger.fold(entries))
        is_over = True
        if arguments.follow:
            is_over = _follow(store, of, ledger, exporter, spans, metrics)
        if is_over:
            exporter.put(spans.rest())
        exporter.flush()
        exporter.count(metrics.metrics(), metrics.first_ms, metrics.last_ms)
    except LogMismatchError as error:
        raise BadInput(str(error)) from error
    if arguments.to is not None:
        print(f"{counted(exporter.written, 'span')} written to {arguments.to}", file=sys.stderr)
    return 0 if is_over else _LEFT


_LEFT: Final = 130


def _put(
    exporter: "Exporter", spans: "FleetSpans | SystemSpans", metrics: "Metrics", decisions: Iterable[Decision]
) -> None:
    for decision in decisions:
        metrics.take(decision)
        exporter.put(spans.take(decision))


def _follow(  # noqa: PLR0913, PLR0917 - the parts of an export, each with its name
    store: LogStore,
    of: OneLog,
    ledger: Ledger,
    exporter: "Exporter",
    spans: "FleetSpans | SystemSpans",
    metrics: "Metrics",
) -> bool:
    """Export new entries; return True at the end of the fleet, and False if the user leaves."""
    from lifefold.core.fleet.system.rerun import is_over  # noqa: PLC0415 - slow to import

    try:
        while not (of.is_fleet and is_over(ledger.aggregates)):
            exporter.flush()
            exporter.count(metrics.metrics(), metrics.first_ms, metrics.last_ms)
            seen = ledger.entries
            while ledger.entries == seen:
                time.sleep(logs.LOOK_S)
                _put(exporter, spans, metrics, ledger.fold(anyio.run(store.read_on, ledger.entries)))
    except KeyboardInterrupt:
        return False
    return True


def _entries(store: LogStore, of: OneLog) -> "list[Entry]":
    try:
        entries = list(anyio.run(store.read))
    except NotAStore as error:
        raise BadInput(str(error)) from error
    must_be_of(of, entries)
    return entries


def _is_url(to: str) -> bool:
    return to.startswith(("http://", "https://"))


@contextmanager
def _writer(to: str | None) -> "Generator[Writer]":
    """Open what ``--to`` names. Raises ``BadInput`` for a file that another program has written."""
    from lifefold.interpreters.telemetry.otlp import FileWriter, HttpWriter  # noqa: PLC0415 - needs an extra

    if to is None:
        yield FileWriter(sys.stdout)
    elif _is_url(to):
        yield HttpWriter(to)
    else:
        path = Path(to)
        see_to(path, "export", _is_otlp)
        with path.open("w", encoding="utf-8") as file:
            yield FileWriter(file)


def _is_otlp(text: bytes) -> bool:
    return text.startswith((b'{"resourceSpans"', b'{"resourceMetrics"'))
