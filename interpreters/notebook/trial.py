"""Displays of simulations: one run, a campaign, and its findings, as text and as HTML.

The HTML needs no style sheet, no script and no network. Bars show the time in each state; below each bar are its
states, in the same order and colours.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import Final, NamedTuple

from lifefold.interpreters.campaign.campaign import Tally, points
from lifefold.interpreters.campaign.findings import SeedFinding
from lifefold.interpreters.campaign.report import (
    HOUR_MS,
    Report,
    conclusion,
    duration,
    facts_in_words,
    mishaps,
    speed,
    state_times,
    times_in_words,
    tried,
)
from lifefold.interpreters.notebook.image import embedded
from lifefold.interpreters.notebook.space import FILLS
from lifefold.interpreters.report.report import MARGIN
from lifefold.interpreters.report.trace import WIDTH, Trace, wrapped
from lifefold.interpreters.simulate.simulation import Run

_GREEN: Final = "#1a7f37"
_RED: Final = "#cf222e"
_WIDE_PT: Final = 420
_NAME_PT: Final = 90
_BAR_PT: Final = 20
_LINE_PT: Final = 14
_CHARACTER_PT: Final = 6.2
"""The mean width of a character, at most."""

NAMED: Final = 0.01
"""The least share of the time of a state with a name below its bar; the others have a hint."""

Picture = Callable[[Trace], str]


def run_text(run: Run) -> str:
    """Return the summary of a run."""
    return "\n".join(_run_lines(run))


def run_html(run: Run) -> str:
    """Return the summary of a run, with the times in states."""
    tally = _tally(run)
    head = f"<b>{escape(_which(run))}</b>: {_coloured(_outcome(run), is_well=run.ok)}"
    return _block([head, escape(_much(run)), _table(mishaps(tally)), _bars(tally)])


def report_html(report: Report, picture: Picture) -> str:
    """Return a campaign: the number of runs, the faults, the coverage, and the traces of findings."""
    tally = report.tally
    head = f"<b>{escape(report.target.name)}</b>: {_coloured(conclusion(tally), is_well=report.ok)}"
    facts = list(facts_in_words(report.target, tally))
    ways = [_way(each, picture) for each in report.findings]
    return _block([head, escape(tried(tally)), escape(speed(tally)), _table(facts), _bars(tally), *ways])


def finding_text(finding: SeedFinding) -> str:
    """Return the broken property, and the shrunk run."""
    return "\n".join(finding.lines(margin=MARGIN)).rstrip()


def finding_html(finding: SeedFinding, picture: Picture) -> str:
    """Return the broken property, the shrunk run, and its trace as a picture."""
    return _block([_way(finding, picture)])


class _Share(NamedTuple):
    """A state's part of a bar: the time, and its share."""

    state: str
    spent_ms: int
    share: float
    fill: str


def _bars(tally: Tally) -> str:
    """Return the times as an image; its description has the small shares, too."""
    times = state_times(tally)
    words = (f"{name}: {', '.join(map(_said, _parted(spent)))}" for name, spent in times.items())
    return embedded(bars(times), "\n".join(words) or "no time is spent in any state")


def bars(times: Mapping[str, Mapping[str, int]]) -> str:
    """Return the times of each machine's entities in its states: a bar for each machine, as SVG."""
    drawn, top = list[str](), 0
    for name, spent in times.items():
        components = _parted(spent)
        lines = _named(components)
        drawn += [*_bar(name, components, top), *_legend(lines, top + _BAR_PT)]
        top += _BAR_PT + (len(lines) + 1) * _LINE_PT
    wide = _NAME_PT + _WIDE_PT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{top}" viewBox="0 0 {wide} {top}"'
    return "\n".join([f'{head} font-family="Helvetica, Arial, sans-serif" font-size="10">', *drawn, "</svg>"])


def _parted(spent: Mapping[str, int]) -> list[_Share]:
    whole = sum(spent.values())
    return [
        _Share(state, spent_ms, spent_ms / whole, FILLS[number % len(FILLS)])
        for number, (state, spent_ms) in enumerate(spent.items())
    ]


def _bar(name: str, components: Iterable[_Share], top: int) -> Iterator[str]:
    yield f'<text x="0" y="{top + 12}" fill="#24324a">{escape(name)}</text>'
    x = float(_NAME_PT)
    for each in components:
        wide = _WIDE_PT * each.share
        hint = f"<title>{escape(each.state)}: {duration(each.spent_ms)}</title>"
        yield f'<rect x="{x:.1f}" y="{top + 2}" width="{wide:.1f}" height="12" fill="{each.fill}">{hint}</rect>'
        x += wide


def _named(components: Iterable[_Share]) -> list[list[tuple[float, _Share]]]:
    """Return the names below a bar, in order: line by line, each with its place."""
    lines: list[list[tuple[float, _Share]]] = [[]]
    x = 0.0
    for each in components:
        if each.share >= NAMED:
            wide = _LINE_PT * 1.5 + len(_said(each)) * _CHARACTER_PT
            if x + wide > _WIDE_PT and lines[-1]:
                lines.append([])
                x = 0.0
            lines[-1].append((x, each))
            x += wide
    return lines


def _legend(lines: Iterable[Iterable[tuple[float, _Share]]], top: int) -> Iterator[str]:
    for number, line in enumerate(lines):
        y = top + number * _LINE_PT
        for x, each in line:
            left = _NAME_PT + x
            yield f'<circle cx="{left + 4:.1f}" cy="{y + 5}" r="4" fill="{each.fill}"/>'
            yield f'<text x="{left + 11:.1f}" y="{y + 8.5}" fill="#57606a">{escape(_said(each))}</text>'


def _said(each: _Share) -> str:
    return f"{each.state} {100 * each.share:.1f} %"


def _run_lines(run: Run) -> Iterator[str]:
    tally = _tally(run)
    yield from wrapped(f"{_which(run)}: ", _outcome(run), WIDTH)
    yield from wrapped("  ", _much(run), WIDTH)
    for what, said in (*mishaps(tally), *times_in_words(tally)):
        yield from wrapped(f"  {what:<12} ", said, WIDTH)


def _tally(run: Run) -> Tally:
    """Return one run as a campaign, with the cost by its system."""
    return Tally(
        seeds=1,
        crashes=run.counts.crashes,
        again=run.counts.again,
        struck=Counter(run.struck),
        points=points(run),
        state_ms=Counter(run.state_ms),
        recovery_ms=list(run.recovery_ms),
    )


def _which(run: Run) -> str:
    return "a run by its deviations" if run.seed is None else f"seed {run.seed}"


def _outcome(run: Run) -> str:
    if run.found is None:
        return "no property is broken"
    found = run.found
    return f"{found.owner}: {found.prop}: not so of {found.of}, {duration(found.at_ms)} after the beginning"


def _much(run: Run) -> str:
    counts = run.counts
    deviations = f"{len(run.deviations):,} of its choices were not orderly"
    inputs = f"{counts.inputs:,} inputs, {counts.refused:,} of them refused, {counts.transitions:,} transitions"
    return f"{inputs}, {run.until_ms / HOUR_MS:,.1f} virtual hours; {deviations}"


def _way(finding: SeedFinding, picture: Picture) -> str:
    shown = f"<pre>{escape(finding_text(finding))}</pre>"
    return f"{shown}{picture(finding.shown)}"


def _table(said: Iterable[tuple[str, str]]) -> str:
    cell = '<td style="text-align: left; vertical-align: top">'
    rows = (f"<tr>{cell}{escape(what)}</td>{cell}{escape(words)}</td></tr>" for what, words in said)
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _coloured(words: str, *, is_well: bool) -> str:
    return f'<span style="color: {_GREEN if is_well else _RED}">{escape(words)}</span>'


def _block(components: Iterable[str]) -> str:
    return "\n".join(
        ['<div style="line-height: 1.5">', *(f"<div>{component}</div>" for component in components), "</div>"]
    )
