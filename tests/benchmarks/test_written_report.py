"""The results of one benchmark are written into the document beside the others, which stay as they are."""

from pathlib import Path

import pytest

from benchmarks.report import BEGIN, Report, Table, write, write_alone

HOST = Table("Measured on", ("", ""), (("processor", "one"), ("load before", "0.1")))


def report(name: str, figure: str) -> Report:
    return Report(name, (Table("Runs", ("run", "time"), (("all", figure),)),), notes=(f"About {name}.",))


def test_a_report_replaces_its_own_part_only(tmp_path: Path) -> None:
    document = tmp_path / "benchmarks.md"
    document.write_text(f"# Words\n\n{BEGIN}\n")
    write(document, HOST, [report("fold", "1 s"), report("desk", "2 s")])
    before = document.read_text()
    write_alone(document, HOST, [report("runner", "3 s")])
    added = document.read_text()
    assert added.startswith(before.rstrip())
    assert "### `runner`\n\nMeasured by itself:\n\n- processor: one\n- load before: 0.1\n\nRuns:" in added
    write_alone(document, HOST, [report("fold", "9 s")])
    text = document.read_text()
    heads = [line for line in text.splitlines() if line.startswith("### ")]
    assert sorted(heads) == ["### `desk`", "### `fold`", "### `runner`"]
    assert "| all | 9 s |" in text
    assert "| all | 1 s |" not in text
    assert text.count("Measured by itself:") == 2
    write_alone(document, HOST, [report("runner", "4 s")])
    assert document.read_text().count("### `runner`") == 1
    assert "| all | 3 s |" not in document.read_text()


def test_a_document_without_the_line_for_results_is_refused(tmp_path: Path) -> None:
    document = tmp_path / "other.md"
    document.write_text("# Words\n")
    with pytest.raises(ValueError, match="there is no line"):
        write_alone(document, HOST, [])
