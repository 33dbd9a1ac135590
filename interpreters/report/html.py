"""A report for a notebook, as HTML without a style sheet or a script."""

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lifefold.interpreters.report.trace import Trace
    from lifefold.interpreters.search.report import Message, Report, Verdict

_COLOURS: Final = {"holds": "#1a7f37", "undecided": "#9a6700"}
"""The colour of each outcome; all others are red."""
_RED: Final = "#cf222e"


def _unpictured(_trace: "Trace") -> str:
    return ""


def html(report: "Report", picture: "Callable[[Trace], str]" = _unpictured) -> str:
    """Return a report: the size of the search, a line for each property, and the trace of each broken one.

    ``picture`` draws a trace, as SVG; without it the report has its text only.
    """
    met = f"{report.states:,} states, {report.steps:,} steps, {report.depth} deep, in {report.seconds:.1f} s"
    conclusion = _coloured(_COLOURS["holds"] if report.ok else _RED, report.conclusion())
    lines = [
        '<div style="line-height: 1.5">',
        f"<div><b>{escape(report.target)}</b>: {conclusion}</div>",
        f"<div>{met}</div>",
        *(f"<div>{escape(what)}: {escape(said)}</div>" for what, said in report.said()),
        '<table style="text-align: left"><tbody>',
        *(line for each in report.sorted() for line in _row(each, report.target, picture)),
        "</tbody></table>",
        *(line for each in report.messages for line in _message(each)),
        "</div>",
    ]
    return "\n".join(lines)


def _message(message: "Message") -> Iterator[str]:
    yield f"<div>{_coloured(_RED, '!')} {escape(message.words())}"
    yield from _way(message.way())
    yield "</div>"


def _way(lines: Iterable[str]) -> Iterator[str]:
    way = "\n".join(lines)
    if way:
        yield f"<details open><summary>the shortest trace</summary><pre>{escape(way)}</pre></details>"


def _row(verdict: "Verdict", of: str, picture: "Callable[[Trace], str]") -> Iterator[str]:
    mark = _coloured(_COLOURS.get(verdict.outcome, _RED), verdict.mark)
    cell = '<td style="text-align: left; vertical-align: top">'
    yield f"<tr>{cell}{mark}</td>{cell}{verdict.property_kind}</td>"
    yield f"{cell}{escape(verdict.words(of=of))}"
    yield from _way(verdict.way())
    if verdict.trace is not None and any(verdict.way()):
        yield picture(verdict.trace)
    yield "</td></tr>"


def _coloured(colour: str, text: str) -> str:
    return f'<span style="color: {colour}">{escape(text)}</span>'
