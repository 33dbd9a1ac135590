"""The writer: OTLP in a file and to a collector, equal bytes for equal spans."""

import io
import json

import pytest

from collector import collector
from lifefold.interpreters.telemetry.identifiers import Place
from lifefold.interpreters.telemetry.metrics import Distribution, Kind, Metric, Point
from lifefold.interpreters.telemetry.otlp import BATCH, Exporter, FileWriter, HttpWriter, UndeliveredError
from lifefold.interpreters.telemetry.spans import Link, Span, SpanEvent

ROOT = Place("a" * 32, "b" * 16)
CHILD = Span(
    Place("a" * 32, "c" * 16),
    "verify work",
    1_000,
    2_000,
    ROOT.span,
    {"lifefold.task": "T1", "lifefold.claim": 2, "lifefold.cost_usd": 0.5, "lifefold.unfinished": True},
    (SpanEvent("Verified", 1_500, {"lifefold.state": "Merging"}),),
    (Link(Place("d" * 32, "e" * 16), "depends on"),),
    "exit status 1",
)
METRICS = (
    Metric("lifefold.entries", "{entry}", "Entries", Kind.SUM, (Point((), 3),)),
    Metric("lifefold.tasks", "{task}", "Tasks", Kind.GAUGE, (Point((("lifefold.state", "OPEN"),), 2),)),
    Metric("lifefold.task.wait", "s", "Waits", Kind.HISTOGRAM, (Distribution((), (1, 5), (1, 0, 1), 7.5, 0.5, 7.0),)),
    Metric("lifefold.cost", "USD", "Nothing yet", Kind.SUM, ()),
)


def written() -> str:
    """Return a file of spans and metrics."""
    file = io.StringIO()
    exporter = Exporter(FileWriter(file), {"service.name": "demo"})
    exporter.put([Span(ROOT, "task T1", 0, 3_000), CHILD])
    exporter.flush()
    exporter.count(METRICS, 0, 3_000)
    return file.getvalue()


def test_a_file_has_the_spans_as_json_of_otlp() -> None:
    """Identifiers are hexadecimal digits, times nanoseconds, enumerations numbers."""
    spans, metrics = (json.loads(line) for line in written().splitlines())
    root, child = spans["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert Place(root["traceId"], root["spanId"]) == ROOT
    assert "parentSpanId" not in root
    assert (child["parentSpanId"], child["startTimeUnixNano"]) == (ROOT.span, "1000000000")
    assert child["links"][0]["traceId"] == "d" * 32
    assert child["status"] == {"message": "exit status 1", "code": 2}
    assert child["events"][0]["name"] == "Verified"
    assert {each["key"]: each["value"] for each in child["attributes"]}["lifefold.claim"] == {"intValue": "2"}
    assert spans["resourceSpans"][0]["resource"]["attributes"][0]["value"] == {"stringValue": "demo"}
    found = metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    assert [each["name"] for each in found] == ["lifefold.entries", "lifefold.tasks", "lifefold.task.wait"]
    assert found[2]["histogram"]["dataPoints"][0]["bucketCounts"] == ["1", "0", "1"]


def test_equal_spans_are_equal_bytes() -> None:
    """Nothing of the time or of the machine is written."""
    assert written() == written()


def test_a_collector_gets_the_same_spans_as_protobuf() -> None:
    """In batches of a limited size."""
    with collector() as server:
        exporter = Exporter(HttpWriter(f"{server.url}/"), {"service.name": "demo"})
        exporter.put([CHILD] * (BATCH + 1))
        exporter.flush()
        exporter.flush()
        exporter.count(METRICS, 0, 3_000)
    counts = [len(each.resource_spans[0].scope_spans[0].spans) for each in server.traces]
    assert counts == [BATCH, 1]
    assert exporter.written == BATCH + 1
    (span,) = server.traces[1].resource_spans[0].scope_spans[0].spans
    assert (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()) == (*CHILD.place, ROOT.span)
    assert span.end_time_unix_nano == 2_000_000_000
    (request,) = server.metrics
    assert len(request.resource_metrics[0].scope_metrics[0].metrics) == 3


def test_a_collector_that_refuses_is_reported_with_its_answer() -> None:
    """The message has the address and the status, and nothing is printed besides."""
    with collector(status=400) as server:
        exporter = Exporter(HttpWriter(server.url), {})
        with pytest.raises(UndeliveredError, match=rf"{server.url}: has not accepted the spans: .*400"):
            exporter.put([CHILD] * BATCH)
        with pytest.raises(UndeliveredError, match=rf"{server.url}: has not accepted the metrics: .*400"):
            exporter.count(METRICS, 0, 1)
