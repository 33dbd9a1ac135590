"""The displays of lifefold's types in IPython: a bundle of forms for each type, of which a front end takes the best."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from lifefold.core.kernel import Machine, System
from lifefold.interpreters.campaign.findings import SeedFinding
from lifefold.interpreters.campaign.report import Report as Trial
from lifefold.interpreters.notebook.figure import Figure
from lifefold.interpreters.notebook.history import History
from lifefold.interpreters.notebook.image import embedded, image
from lifefold.interpreters.notebook.play import Play
from lifefold.interpreters.notebook.play_picture import picture
from lifefold.interpreters.notebook.space import Space
from lifefold.interpreters.notebook.trial import finding_html, finding_text, report_html, run_html, run_text
from lifefold.interpreters.notebook.way import way
from lifefold.interpreters.report.html import html
from lifefold.interpreters.report.trace import Trace
from lifefold.interpreters.search.report import Report
from lifefold.interpreters.simulate.simulation import Run
from lifefold.interpreters.views import plain
from lifefold.interpreters.views.picture import Drawing, LayoutMissingError, overview, sequence_svg, statechart, svg
from lifefold.interpreters.views.sequence import Sequence

TEXT: Final = "text/plain"
HTML: Final = "text/html"

Bundle = dict[str, str]


def _machine(machine: Machine[Any]) -> Bundle:
    return _pictured(plain(machine), statechart(machine))


def _system(system: System) -> Bundle:
    kinds = [f"{kind}: {', '.join(of.machines)}" for kind, of in system.aggregates.items()]
    return _pictured("\n".join([system.name, *(f"  {each}" for each in kinds)]), overview(system))


def _trace(trace: Trace) -> Bundle:
    return _pictured("\n".join(trace.lines()), way(trace))


def _drawing(drawing: Drawing) -> Bundle:
    return _pictured(drawing.text(), drawing)


def _space(space: Space) -> Bundle:
    return _pictured(space.text(), space.drawing())


def _report(report: Report) -> Bundle:
    return {TEXT: str(report), HTML: html(report, picture_of)}


def _history(history: History) -> Bundle:
    return {TEXT: history.text(), HTML: history.html()}


def _trial(report: Trial) -> Bundle:
    return {TEXT: str(report), HTML: report_html(report, picture_of)}


def _finding(finding: SeedFinding) -> Bundle:
    return {TEXT: finding_text(finding), HTML: finding_html(finding, picture_of)}


def _run(run: Run) -> Bundle:
    return {TEXT: run_text(run), HTML: run_html(run)}


def _sequence(drawn: Sequence) -> Bundle:
    return {TEXT: drawn.text(), **image(sequence_svg(drawn))}


def _play(play: Play) -> Bundle:
    return {TEXT: play.text(), **image(picture(play))}


def _figure(figure: Figure) -> Bundle:
    try:
        return {TEXT: figure.words, **image(figure.svg())}
    except ImportError:
        return {TEXT: figure.words}


BUNDLES: Final[Mapping[type, Callable[[Any], Bundle]]] = MappingProxyType(
    {
        Machine: _machine,
        System: _system,
        Trace: _trace,
        Drawing: _drawing,
        Space: _space,
        Report: _report,
        History: _history,
        Play: _play,
        Sequence: _sequence,
        Run: _run,
        Trial: _trial,
        SeedFinding: _finding,
        Figure: _figure,
    }
)
"""The types with a display."""


def picture_of(trace: Trace) -> str:
    """Return a trace as an image of HTML; empty if it has no transition, or if pictures cannot be laid out here."""
    drawing = way(trace)
    try:
        return embedded(svg(drawing), "the trace, drawn") if drawing.boxes else ""
    except LayoutMissingError:
        return ""


def _pictured(text: str, drawing: Drawing) -> Bundle:
    try:
        return {TEXT: text, **image(svg(drawing))}
    except LayoutMissingError:
        return {TEXT: text}


def load_ipython_extension(shell: Any) -> None:
    """Register the displays with a shell; IPython calls it."""
    for kind, bundle in BUNDLES.items():
        shell.display_formatter.mimebundle_formatter.for_type(kind, bundle)


def unload_ipython_extension(shell: Any) -> None:
    """Remove them; IPython calls it."""
    for kind in BUNDLES:
        shell.display_formatter.mimebundle_formatter.pop(kind, None)
