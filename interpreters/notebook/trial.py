"""Simulations to look at: one run, a campaign of many, and what they have found, as text and as HTML.

The HTML needs neither a style sheet nor a script nor a network. Bars say in which states time was spent.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import Final

from lifefold.interpreters.check.trace import WIDTH, Trace, wrapped
from lifefold.interpreters.notebook.space import FILLS
from lifefold.interpreters.simulate.campaign import Tally, points
from lifefold.interpreters.simulate.findings import Finding
from lifefold.interpreters.simulate.report import (
    HOUR_MS,
    Report,
    conclusion,
    duration,
    facts_in_words,
    finding_lines,
    mishaps,
    shares,
    speed,
    state_times,
    times_in_words,
    tried,
)
from lifefold.interpreters.simulate.simulation import Run
from lifefold.interpreters.simulate.story import happenings

_GREEN: Final = "#1a7f37"
_RED: Final = "#cf222e"
_WIDE_PT: Final = 420
_NAME_PT: Final = 90
_ROW_PT: Final = 34

Picture = Callable[[Trace], str]


def run_text(run: Run) -> str:
    """Return what happened in a run."""
    return "\n".join(_run_lines(run))


def run_html(run: Run) -> str:
    """Return what happened in a run, with how long what was in which state."""
    tally = _tally(run)
    head = f"<b>{escape(_which(run))}</b>: {_coloured(_outcome(run), is_well=run.ok)}"
    return _block([head, escape(_much(run)), _table(mishaps(tally)), bars(state_times(tally))])


def report_html(report: Report, picture: Picture) -> str:
    """Return a campaign: how much was tried, what went wrong, what was used, and the way to what was found."""
    tally = report.tally
    head = f"<b>{escape(report.target.name)}</b>: {_coloured(conclusion(tally), is_well=report.ok)}"
    facts = list(facts_in_words(report.target, tally))
    ways = [_way(each, picture) for each in report.findings]
    return _block([head, escape(tried(tally)), escape(speed(tally)), _table(facts), bars(state_times(tally)), *ways])


def finding_text(finding: Finding) -> str:
    """Return what is broken, and the small run that breaks it."""
    return "\n".join(finding_lines(finding)).rstrip()


def finding_html(finding: Finding, picture: Picture) -> str:
    """Return what is broken, the small run that breaks it, and its way as a picture."""
    return _block([_way(finding, picture)])


def story(finding: Finding) -> Trace:
    """Return the small run as a way, such as a check finds."""
    return Trace(tuple(happenings(finding.system, finding.run.entries)))


def bars(times: Mapping[str, Mapping[str, int]]) -> str:
    """Return how the time of each machine's entities is divided among its states: a bar for each machine, as SVG."""
    high = len(times) * _ROW_PT
    drawn = (part for number, (name, spent) in enumerate(times.items()) for part in _bar(name, spent, number * _ROW_PT))
    wide = _NAME_PT + _WIDE_PT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    return "\n".join([f'{head} font-family="Helvetica, Arial, sans-serif" font-size="10">', *drawn, "</svg>"])


def _bar(name: str, spent: Mapping[str, int], top: int) -> Iterator[str]:
    yield f'<text x="0" y="{top + 12}" fill="#24324a">{escape(name)}</text>'
    whole, x = sum(spent.values()), float(_NAME_PT)
    for number, (state, spent_ms) in enumerate(spent.items()):
        wide = _WIDE_PT * spent_ms / whole
        hint = f"<title>{escape(state)}: {duration(spent_ms)}</title>"
        fill = FILLS[number % len(FILLS)]
        yield f'<rect x="{x:.1f}" y="{top + 2}" width="{wide:.1f}" height="12" fill="{fill}">{hint}</rect>'
        x += wide
    yield f'<text x="{_NAME_PT}" y="{top + 25}" fill="#57606a">{escape(shares(spent))}</text>'


def _run_lines(run: Run) -> Iterator[str]:
    tally = _tally(run)
    yield from wrapped(f"{_which(run)}: ", _outcome(run), WIDTH)
    yield from wrapped("  ", _much(run), WIDTH)
    for what, said in (*mishaps(tally), *times_in_words(tally)):
        yield from wrapped(f"  {what:<12} ", said, WIDTH)


def _tally(run: Run) -> Tally:
    """Return one run as if it were many; what it has cost, its system knows."""
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
        return "no promise is broken"
    found = run.found
    return f"{found.owner}: {found.promise}: not so of {found.of}, {duration(found.at_ms)} after the beginning"


def _much(run: Run) -> str:
    counts = run.counts
    deviations = f"{len(run.deviations):,} of its choices were not orderly"
    inputs = f"{counts.inputs:,} inputs, {counts.refused:,} of them refused, {counts.transitions:,} transitions"
    return f"{inputs}, {run.until_ms / HOUR_MS:,.1f} virtual hours; {deviations}"


def _way(finding: Finding, picture: Picture) -> str:
    shown = f"<pre>{escape(finding_text(finding))}</pre>"
    return f"{shown}{picture(story(finding))}"


def _table(said: Iterable[tuple[str, str]]) -> str:
    cell = '<td style="text-align: left; vertical-align: top">'
    rows = (f"<tr>{cell}{escape(what)}</td>{cell}{escape(words)}</td></tr>" for what, words in said)
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _coloured(words: str, *, is_well: bool) -> str:
    return f'<span style="color: {_GREEN if is_well else _RED}">{escape(words)}</span>'


def _block(parts: Iterable[str]) -> str:
    return "\n".join(['<div style="line-height: 1.5">', *(f"<div>{part}</div>" for part in parts), "</div>"])
