"""``lifefold export``: logs as traces and metrics of OpenTelemetry, and as ITF traces that other programs read."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from collector import collector
from fleet_log import FleetLog
from fleet_sandbox import Sandbox
from itf_reader import trace_in
from lifefold.core.fleet import TaskPlan
from lifefold.core.lifecycles import task
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.telemetry import genai
from lobby import ALLOWED, written

OWN = "lobby:system"


@pytest.fixture
def door(tmp_path: Path) -> Path:
    """Return the log of a system of one's own."""
    return written(tmp_path / "door.db", ALLOWED)


@pytest.fixture
def fleet(tmp_path: Path) -> FleetLog:
    """Return the log of a fleet with one task."""
    return FleetLog(tmp_path / "fleet.db", TaskPlan("T1", "write it", max_retries=0))


def spans_in(text: str) -> list[dict[str, Any]]:
    """Return the spans in the lines of a file."""
    found = [json.loads(line) for line in text.splitlines()]
    return [
        span
        for each in found
        for of in each.get("resourceSpans", [])
        for scope in of["scopeSpans"]
        for span in scope["spans"]
    ]


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span, each with its plain value."""
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_a_fleet_is_written_as_spans_and_metrics(
    fleet: FleetLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To standard output or to a file, with the same bytes each time."""
    fleet.failed("T1")
    assert main(["export", "otel", str(fleet.path)]) == 0
    printed = capsys.readouterr().out
    (span,) = spans_in(printed)
    assert (span["name"], span["status"]["message"]) == ("task T1", "tests fail")
    assert '"name":"lifefold.tasks"' in printed.splitlines()[-1]
    for _ in range(2):  # it overwrites its own file
        assert main(["export", "otel", "--db", str(fleet.path), "--to", str(tmp_path / "out.jsonl")]) == 0
        assert (tmp_path / "out.jsonl").read_text() == printed
    said = capsys.readouterr().err.splitlines()
    assert said == [f"1 span written to {tmp_path / 'out.jsonl'}"] * 2


def test_a_system_of_ones_own_is_written_until_a_position(door: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its spans are the lives of its entities."""
    assert main(["export", "otel", OWN, str(door), "--at", "2"]) == 0
    (span,) = spans_in(capsys.readouterr().out)
    assert span["name"] == "door"
    assert len(span["events"]) == 2


def test_a_collector_gets_a_running_log(fleet: FleetLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """New entries are sent while the command waits; Ctrl-C ends it, and an unfinished span is not sent."""
    happens = iter((lambda: fleet.claimed("T1"), lambda: fleet.happens("board", "task:T1", task.Failed(1, "no"))))

    def wait(seconds: float) -> None:
        assert seconds == logs.LOOK_S
        try:
            next(happens)()
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(time, "sleep", wait)
    with collector() as server:
        assert main(["export", "otel", str(fleet.path), "--to", server.url, "--follow"]) == 130
    (request,) = server.traces
    (span,) = request.resource_spans[0].scope_spans[0].spans
    assert (span.name, span.status.message) == ("task T1", "no")
    counted = [each.resource_metrics[0].scope_metrics[0].metrics[0] for each in server.metrics]
    entries = [each.sum.data_points[0].as_int for each in counted]
    assert entries == sorted(entries)
    assert len(set(entries)) == 3


def test_a_session_has_the_span_that_the_export_has(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    """The environment of a session names its span, so what its program traces is a part of it."""
    sandbox.prepare("T1")
    script = sandbox.folder / "agent.py"
    keep = '(count.with_name(f"{task}.trace")).write_text(os.environ["TRACEPARENT"])\n'
    script.write_text(script.read_text() + keep)
    sandbox.run()
    assert main(["export", "otel", str(sandbox.log)]) == 0
    spans = spans_in(capsys.readouterr().out)
    (session,) = (each for each in spans if genai.OPERATION in attributes(each))
    traceparent = (sandbox.folder / "counts" / "T1.trace").read_text()
    assert traceparent == f"00-{session['traceId']}-{session['spanId']}-01"
    by_id = {each["spanId"]: each for each in spans}
    attempt = by_id[session["parentSpanId"]]
    assert by_id[attempt["parentSpanId"]]["name"] == "task T1"
    children = {each["name"] for each in spans if each.get("parentSpanId") == attempt["spanId"]}
    assert {"check out work", "invoke_agent agent", "verify work", "merge work"} <= children


def test_a_collector_that_is_not_there_is_named(
    door: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 3, and the address."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    assert main(["export", "otel", OWN, str(door), "--to", "http://127.0.0.1:1"]) == 3
    assert capsys.readouterr().err.startswith("lifefold: http://127.0.0.1:1: has not accepted the spans: ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["otel", "--follow", "--at", "2"], "--follow and --at: accepted: one of them"),
        (["itf", "--follow"], "--follow: accepted with otel only"),
        (["itf", "--to", "http://localhost:4318"], "accepted with itf: a file"),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    door: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    """Exit code 2."""
    assert main(["export", options[0], OWN, str(door), *options[1:]]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("form", ["otel", "itf"])
def test_another_file_is_not_overwritten(
    door: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """Exit code 2, and the file is as it was."""
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    assert main(["export", form, OWN, str(door), "--to", str(notes)]) == 2
    assert "that lifefold has written" in capsys.readouterr().err
    assert notes.read_text() == "mine"


def test_a_log_is_an_itf_trace(door: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``itf-py`` reads every state: the first one is empty, and each input leads to the next."""
    path = tmp_path / "door.itf.json"
    assert main(["export", "itf", OWN, str(door), "--to", str(path)]) == 0
    assert capsys.readouterr().out == f"written: {path}\n"
    trace = trace_in(path.read_text())
    assert trace.vars == ["aggregates", "in_flight", "input", "now_ms"]
    assert len(trace.states) == 1 + len(ALLOWED)
    first, last = trace.states[0].values, trace.states[-1].values
    assert (first["aggregates"], first["input"]) == ({}, ())
    assert last["aggregates"]["lobby"]["door"].state == last["aggregates"]["lobby"]["door"].record.state
    assert [each.values["input"].aggregate for each in trace.states[1:]] == ["lobby"] * len(ALLOWED)
    assert main(["export", "itf", OWN, str(door)]) == 0
    assert capsys.readouterr().out == path.read_text()


def test_a_fleet_is_an_itf_trace_with_its_messages(fleet: FleetLog, capsys: pytest.CaptureFixture[str]) -> None:
    """The board has told the worker of its task, and no entry has received that."""
    fleet.claimed("T1")
    assert main(["export", "itf", str(fleet.path)]) == 0
    trace = trace_in(capsys.readouterr().out)
    last = trace.states[-1].values
    assert "Assigned" in {type(each.event).__name__ for each in last["in_flight"]}
    assert last["aggregates"]["board"]["task:T1"].state == "IN_PROGRESS"
