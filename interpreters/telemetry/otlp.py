"""Spans and metrics for OpenTelemetry: into a file of OTLP's JSON lines, or to a collector over HTTP.

A file has one request a line, as the OTLP file exporter writes it: first of spans, at the end of metrics. Equal spans
give equal bytes. A collector gets the same requests as protobuf. The variables ``OTEL_EXPORTER_OTLP_HEADERS``,
``OTEL_EXPORTER_OTLP_TIMEOUT`` and the like apply, as the library reads them.
"""

import base64
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Final, Protocol, Self, cast

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from lifefold.interpreters.telemetry.identifiers import Place
from lifefold.interpreters.telemetry.metrics import Distribution, Kind, Metric, Point
from lifefold.interpreters.telemetry.spans import Span

BATCH: Final = 512
"""The most spans in a request."""

SCOPE: Final = InstrumentationScope("lifefold")
_NS: Final = 1_000_000
"""Nanoseconds in a millisecond."""


class UndeliveredError(Exception):
    """A collector has not accepted a request; the message has its address, and why."""


class Writer(Protocol):
    """Takes requests."""

    def spans(self, spans: Sequence[ReadableSpan]) -> None:
        """Write spans, at most ``BATCH``. Raises ``OSError``, ``UndeliveredError``."""
        ...

    def metrics(self, data: sdk.MetricsData) -> None:
        """Write metrics. Raises ``OSError``, ``UndeliveredError``."""
        ...


class FileWriter:
    """Writes requests as lines of JSON."""

    def __init__(self, file: IO[str]) -> None:
        """Write into an open file."""
        self._file: Final = file

    def spans(self, spans: Sequence[ReadableSpan]) -> None:
        """Write a line of spans."""
        self._write(encode_spans(spans))

    def metrics(self, data: sdk.MetricsData) -> None:
        """Write a line of metrics."""
        self._write(encode_metrics(data))

    def _write(self, request: Message) -> None:
        found = MessageToDict(request, use_integers_for_enums=True)
        self._file.write(json.dumps(_with_hex(found), ensure_ascii=False, separators=(",", ":")) + "\n")
        self._file.flush()


class HttpWriter:
    """Sends requests to a collector. ``url`` is its address without the path of a signal."""

    def __init__(self, url: str) -> None:
        """Connect at the first request."""
        self._url: Final = url.rstrip("/")
        self._spans: Final = OTLPSpanExporter(endpoint=f"{self._url}/v1/traces")
        self._metrics: Final[Any] = OTLPMetricExporter(endpoint=f"{self._url}/v1/metrics")

    def spans(self, spans: Sequence[ReadableSpan]) -> None:
        """Send spans."""
        with _Said() as said:
            if self._spans.export(spans) is not SpanExportResult.SUCCESS:
                raise UndeliveredError(f"{self._url}: has not accepted the spans{said.words}")

    def metrics(self, data: sdk.MetricsData) -> None:
        """Send metrics."""
        with _Said() as said:
            if self._metrics.export(data) is not sdk.MetricExportResult.SUCCESS:
                raise UndeliveredError(f"{self._url}: has not accepted the metrics{said.words}")


class _Said(logging.Handler):
    """Keeps what the library logs about a request, instead of printing it."""

    def __init__(self) -> None:
        super().__init__()
        self._last = ""
        self._logger: Final = logging.getLogger("opentelemetry.exporter.otlp")
        self._propagated = self._logger.propagate

    @property
    def words(self) -> str:
        return f": {self._last}" if self._last else ""

    def emit(self, record: logging.LogRecord) -> None:
        self._last = record.getMessage()

    def __enter__(self) -> Self:
        self._logger.addHandler(self)
        self._logger.propagate = False
        return self

    def __exit__(self, *_exc: object) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagated


class Exporter:
    """Gives spans and metrics of one log to a writer. ``resource`` has the attributes of the log."""

    def __init__(self, writer: Writer, resource: Mapping[str, str]) -> None:
        """Write nothing yet."""
        self._writer: Final = writer
        self._resource: Final = Resource(dict(resource))
        self._waiting: Final[list[ReadableSpan]] = []
        self.written = 0
        """The number of spans that were written."""

    def put(self, spans: Iterable[Span]) -> None:
        """Take spans, and write them in full batches. Raises ``OSError``, ``UndeliveredError``."""
        for each in spans:
            self._waiting.append(_readable(each, self._resource))
            if len(self._waiting) >= BATCH:
                self.flush()

    def flush(self) -> None:
        """Write the spans that wait. Raises ``OSError``, ``UndeliveredError``."""
        if self._waiting:
            self._writer.spans(self._waiting)
            self.written += len(self._waiting)
            self._waiting.clear()

    def count(self, metrics: Iterable[Metric], first_ms: int, last_ms: int) -> None:
        """Write metrics of a time, in Unix milliseconds. Raises ``OSError``, ``UndeliveredError``."""
        found = [_metric(each, first_ms * _NS, last_ms * _NS) for each in metrics if each.points]
        scope = sdk.ScopeMetrics(SCOPE, found, "")
        self._writer.metrics(sdk.MetricsData([sdk.ResourceMetrics(self._resource, [scope], "")]))


def _readable(span: Span, resource: Resource) -> ReadableSpan:
    status = Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error)
    return ReadableSpan(
        span.name,
        context=_context(span.place),
        parent=_context(Place(span.place.trace, span.parent)) if span.parent else None,
        resource=resource,
        attributes=dict(span.attributes),
        events=[Event(each.name, dict(each.attributes), each.at_ms * _NS) for each in span.events],
        links=[Link(_context(each.to), {"lifefold.cause": each.why}) for each in span.links],
        status=status,
        start_time=span.start_ms * _NS,
        end_time=span.end_ms * _NS,
        instrumentation_scope=SCOPE,
    )


def _context(place: Place) -> SpanContext:
    sampled = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(place.trace, 16), int(place.span, 16), is_remote=False, trace_flags=sampled)


def _metric(of: Metric, first_ns: int, last_ns: int) -> sdk.Metric:
    return sdk.Metric(of.name, of.about, of.unit, _data(of, first_ns, last_ns))


def _data(of: Metric, first_ns: int, last_ns: int) -> sdk.Sum | sdk.Gauge | sdk.Histogram:
    cumulative = sdk.AggregationTemporality.CUMULATIVE
    numbers = [
        sdk.NumberDataPoint(dict(each.attributes), first_ns, last_ns, each.value)
        for each in of.points
        if isinstance(each, Point)
    ]
    match of.kind:
        case Kind.SUM:
            return sdk.Sum(numbers, cumulative, is_monotonic=True)
        case Kind.GAUGE:
            return sdk.Gauge(numbers)
        case Kind.HISTOGRAM:
            observed = [_observed(each, first_ns, last_ns) for each in of.points if isinstance(each, Distribution)]
            return sdk.Histogram(observed, cumulative)


def _observed(of: Distribution, first_ns: int, last_ns: int) -> sdk.HistogramDataPoint:
    return sdk.HistogramDataPoint(
        dict(of.attributes), first_ns, last_ns, sum(of.counts), of.total, of.counts, of.bounds, of.least, of.most
    )


_IDENTIFIERS: Final = frozenset({"traceId", "spanId", "parentSpanId"})


def _with_hex(value: Any) -> Any:
    """Return a message with its identifiers in hexadecimal digits, as OTLP has them in JSON; protobuf has base64."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            key: base64.b64decode(each).hex() if key in _IDENTIFIERS else _with_hex(each)
            for key, each in fields.items()
        }
    if isinstance(value, list):
        return [_with_hex(each) for each in cast("Sequence[Any]", value)]
    return value
