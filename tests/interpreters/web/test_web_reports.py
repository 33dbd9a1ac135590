"""Reports of ``check`` and ``simulate`` in the browser: a counterexample is shown step by step, on the lit picture."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifefold.interpreters.cli.app import main
from lifefold.interpreters.web.reports import Reports
from web_desk import Served, served
from web_reports import OWN, report_of, restaurant


@pytest.fixture(scope="module", name="files")
def _files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("reports")
    return (
        report_of(folder, "own", OWN, ["check", "own:machine", "--depth", "4"]),
        report_of(folder, "inn", restaurant(), ["check", "inn:target"]),
        report_of(folder, "own", OWN, ["simulate", "own:machine", "--seeds", "5", "--hours", "1"]),
    )


@pytest.fixture(name="shown")
def _shown(files: tuple[Path, Path, Path]) -> Iterator[Served]:
    with served([], reports=files) as desk:
        yield desk


def test_a_counterexample_is_shown_step_by_step_on_the_lit_picture(shown: Served) -> None:
    states: list[str] = []
    for step in range(4):
        page = shown.json(f"/reports/own-check/trace.json?step={step}")
        assert page["finding"]["words"] == "it <b>never</b> runs: broken"
        (placed,) = page["placed"]
        states.append(placed["state"])
        html = shown.get(f"/reports/own-check/trace?step={step}").text
        assert f'alt="session: {placed["state"]} is lit"' in html
        picture = shown.get(f"/reports/own-check/picture?machine=session&state={placed['state']}")
        assert picture.headers["content-type"] == "image/svg+xml"
        assert f'<g class="box lit" data-key="{placed["state"]}">' in picture.text
        assert "it &lt;b&gt;never&lt;/b&gt; runs: broken" in html
        assert ('rel="next"' in html, 'rel="prev"' in html) == (step < 3, step > 0)
    assert states == ["Initializing", "BuildingPrompt", "Spawning", "Running"]


def test_a_report_without_pictures_has_those_that_come_with_lifefold(
    tmp_path: Path, files: tuple[Path, Path, Path]
) -> None:
    reports = [tmp_path / "own.json", tmp_path / "inn.json"]
    for source, file in zip(files, reports, strict=False):
        (one,) = json.loads(source.read_text())
        file.write_text(json.dumps({**one, "page": {**one["page"], "pictures": {}}}))
    with served([], reports=reports) as desk:
        assert '<g class="box lit" data-key="Spawning">' in desk.get("/reports/own/trace?step=2").text
        assert "kitchen stove: <b>Hot</b>" in desk.get("/reports/inn/trace?finding=2&step=2").text
        desk.json("/reports/own/picture?machine=session", 404)


def test_a_picture_of_a_report_runs_nothing(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    """It is an image, and an answer of its own whose policy forbids scripts."""
    (one,) = json.loads(files[0].read_text())
    evil = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    file = tmp_path / "own.json"
    file.write_text(json.dumps({**one, "page": {**one["page"], "pictures": {"session": evil}}}))
    with served([], reports=[file]) as desk:
        assert "alert(1)" not in desk.get("/reports/own/trace?step=2").text
        answer = desk.get("/reports/own/picture?machine=session")
        assert answer.text == evil
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_step_has_the_record_before_and_after_its_effects_and_the_messages_in_flight(shown: Served) -> None:
    first = shown.json("/reports/own-check/trace.json?step=2")["now"]
    (moved,) = first["moved"]
    assert (moved["before"], moved["after"], moved["event"]) == (
        "BuildingPrompt",
        "Spawning",
        "PromptReady(prompt='do it')",
    )
    assert {"name": "prompt", "before": "''", "after": "'do it'"} in moved["fields"]
    assert any("RunSession" in each for each in first["effects"])
    ordered = shown.json("/reports/inn-check/trace.json?finding=2&step=1")
    assert ordered["now"]["messages"] == ["inn → kitchen: Cook()"]
    assert {(each["aggregate"], each["state"]) for each in ordered["placed"]} == {
        ("inn", "Waiting"),
        ("kitchen", "Cold"),
    }
    taken = shown.json("/reports/inn-check/trace.json?finding=2&step=2")
    assert taken["now"]["messages"] == []
    last = shown.json("/reports/inn-check/trace.json?finding=2&step=3")
    assert last["end"] == "From then on nothing happens any more."
    assert last["end"] in shown.get("/reports/inn-check/trace?finding=2&step=3").text
    assert last["end"] not in shown.get("/reports/inn-check/trace?finding=2&step=2").text


def test_the_run_of_a_simulation_is_shown_with_its_deviations(shown: Served) -> None:
    page = shown.json("/reports/own-simulate/trace.json?step=1")
    assert page["finding"]["words"].startswith("session: it <b>never</b> runs: broken, first with seed ")
    assert page["notes"][0] == "not so of session"
    assert page["steps"][-1]["moves"] == ["session Spawning → Running"]
    assert page["now"]["at_ms"] == 0


def test_a_report_says_how_far_it_went_and_leads_to_its_traces(shown: Served) -> None:
    page = shown.json("/reports/inn-check.json")
    assert page["report"]["conclusion"] == "8 of 10 properties hold, 2 broken"
    assert [each["steps"] for each in page["traced"]] == [3, 3]
    assert len(page["told"]) == 8
    html = shown.get("/reports/inn-check").text
    assert "/reports/inn-check/trace?finding=2" in html
    (every,) = (shown.json("/reports.json")["reports"],)
    assert [each["key"] for each in every] == ["own-check", "inn-check", "own-simulate"]
    assert "/reports/own-simulate" in shown.get("/").text


def test_the_page_of_a_machine_has_the_reports_on_it(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    (one,) = json.loads(files[0].read_text())
    file = tmp_path / "report.json"
    file.write_text(json.dumps([{**one, "target": "session"}, {**one, "target": "task"}]))
    with served([], reports=[file]) as desk:
        assert [each["key"] for each in desk.json("/machines/session.json")["reports"]] == ["report-session"]
        assert "/reports/report-task" in desk.get("/machines/task").text
        assert "/machines/session" in desk.get("/reports/report-session").text
        assert "lifefold serve report.json" in desk.get("/machines/mailbox").text


@pytest.mark.parametrize(
    "path",
    [
        "/reports/other",
        "/reports/other/trace",
        "/reports/own-check/trace?step=4",
        "/reports/own-check/trace?finding=2",
        "/reports/own-check/trace?finding=0",
    ],
)
def test_what_a_report_does_not_have_is_not_found(shown: Served, path: str) -> None:
    assert (
        "there is no report" in str(problem := shown.json(path, 404))
        or "step" in str(problem)
        or "finding" in str(problem)
    )


def test_a_file_is_read_again_when_it_has_changed_and_a_broken_one_is_named(
    tmp_path: Path, files: tuple[Path, Path, Path]
) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(files[1].read_bytes())
    reports = Reports([file, file])
    assert [line.target for line, _ in reports.every()] == ["inn:target"]
    file.write_text("[]")
    assert list(reports.every()) == []
    file.write_text('{"target": 3}')
    (problem,) = reports.problems()
    assert "it is not a report" in problem
    file.unlink()
    assert reports.problems() == (f"{file}: No such file or directory",)


def test_files_of_the_same_name_have_keys_of_their_own(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_bytes(files[1].read_bytes())
    keys = [line.key for line, _ in Reports([tmp_path / name / "report.json" for name in ("a", "b")]).every()]
    assert len(set(keys)) == 2
    assert all(each.startswith("report-") for each in keys)


def test_serve_refuses_a_file_that_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.json"
    file.write_text('{"notes": []}')
    assert main(["serve", str(file)]) == 2
    assert "it is not a report" in capsys.readouterr().err
