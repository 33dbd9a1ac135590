"""A report for a notebook, as HTML without a style sheet or a script."""

from collections.abc import Callable, Iterator
from html import escape
from typing import Final

from lifefold.interpreters.report.finding import Finding
from lifefold.interpreters.report.report import ReportBase
from lifefold.interpreters.report.trace import Trace

_COLOURS: Final = {"✓": "#1a7f37", "?": "#9a6700"}
"""The colour of each mark; all others are red."""
_RED: Final = "#cf222e"


def _unpictured(_trace: Trace) -> str:
    return ""


def html(report: ReportBase, picture: Callable[[Trace], str] = _unpictured) -> str:
    """Return a report: the size of the work, a line for each finding, and the way to each broken property.

    ``picture`` draws a trace, as HTML; without it the report has its text only.
    """
    conclusion = _coloured(_COLOURS["✓"] if report.ok else _RED, report.conclusion())
    lines = [
        '<div style="line-height: 1.5">',
        f"<div><b>{escape(report.title)}</b>: {conclusion}</div>",
        f"<div>{escape(report.met())}</div>",
        *(f"<div>{escape(what)}: {escape(said)}</div>" for what, said in report.said()),
        '<table style="text-align: left"><tbody>',
        *(line for each in report.shown_findings() for line in _row(each, report.title, picture)),
        "</tbody></table>",
        "</div>",
    ]
    return "\n".join(lines)


def _row(finding: Finding, of: str, picture: Callable[[Trace], str]) -> Iterator[str]:
    mark = _coloured(_COLOURS.get(finding.mark, _RED), finding.mark)
    cell = '<td style="text-align: left; vertical-align: top">'
    yield f"<tr>{cell}{mark}</td>{cell}{escape(finding.kind)}</td>"
    yield f"{cell}{escape(finding.words(of=of))}"
    way = "\n".join(finding.way())
    if way:
        yield f"<details open><summary>the shortest trace</summary><pre>{escape(way)}</pre></details>"
    if finding.shown is not None:
        yield picture(finding.shown)
    yield "</td></tr>"


def _coloured(colour: str, text: str) -> str:
    return f'<span style="color: {colour}">{escape(text)}</span>'
