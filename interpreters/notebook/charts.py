"""Charts of the results of simulations: recovery times, costs, states over time.

They are made with Altair, and each is a ``Figure``: a picture that needs no network, and the same in words.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import altair as alt

from lifefold.core.kernel import START_MS, Machine
from lifefold.interpreters.campaign.campaign import Tally
from lifefold.interpreters.campaign.report import HOUR_MS, MINUTE_MS, SECOND_MS, duration, percentile_95, spread
from lifefold.interpreters.notebook.figure import Figure
from lifefold.interpreters.notebook.space import FILLS
from lifefold.interpreters.simulate.simulation import Run
from lifefold.interpreters.simulate.story import steps
from lifefold.interpreters.targets.target import Target

WIDTH: Final = 560
HEIGHT: Final = 150
BAR: Final = 30
"""The length of the longest bar in words, in characters."""

STEPS: Final = (
    *(round(number * SECOND_MS) for number in (0.1, 0.3, 1, 3, 10, 30)),
    *(number * MINUTE_MS for number in (1, 3, 10, 30)),
    *(number * HOUR_MS for number in (1, 3, 10, 24)),
)
"""The limits of classes of times: a factor of about three between them, at round units."""

MOMENTS: Final = 160
"""The number of times at which the states are counted."""

_LOOK: Final[dict[str, Any]] = {
    "font": "Liberation Sans, Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {"grid": False, "labelColor": "#24324a", "titleColor": "#24324a", "titleFontWeight": "normal"},
    "header": {"labelColor": "#24324a", "labelAnchor": "start", "labelFontSize": 11},
    "title": {"color": "#24324a", "anchor": "start", "fontSize": 13, "subtitleColor": "#57606a"},
    "legend": {"labelColor": "#24324a"},
}

_FEW: Final = alt.Axis(tickCount=4, tickMinStep=1)
"""The ticks of an axis of numbers."""


def recovery(tally: Tally) -> Figure:
    """Return the times without a runner, and the times without a worker of tasks that came back undone."""
    by = {"until there was a runner again": tally.recovery_ms, "until the task had a worker again": tally.unclaimed_ms}
    return times("time to recover", by)


def cost(tally: Tally) -> Figure:
    """Return the cost of tasks: the time of their sessions."""
    return times("what a task costs", {"in sessions, by the log": tally.task_ms})


def sessions(tally: Tally) -> Figure:
    """Return the number of sessions of tasks."""
    return counts("sessions of a task", {"tasks": tally.task_sessions})


def times(title: str, by: Mapping[str, Sequence[int]]) -> Figure:
    """Return the distributions of times in milliseconds, one below the other, by name."""
    names = [f"up to {_edge(each)}" for each in STEPS] + [f"over {_edge(STEPS[-1])}"]
    places = {name: Counter(bisect_left(STEPS, each_ms) for each_ms in every) for name, every in by.items()}
    used = [place for count in places.values() for place in count]
    shown = range(min(used, default=0), max(used, default=0) + 1)
    bars = [(name, names[place], count[place]) for name, count in places.items() for place in shown]
    return _bars(title, bars, {name: spread(every) for name, every in by.items() if every})


def counts(title: str, by: Mapping[str, Sequence[int]]) -> Figure:
    """Return the distributions of numbers from 1 on, one below the other, by name."""
    most = max((number for every in by.values() for number in every), default=0)
    counted = {name: Counter(every) for name, every in by.items()}
    bars = [(name, str(number), count[number]) for name, count in counted.items() for number in range(1, most + 1)]
    said = {name: f"{fmean(every):.2f} (mean), {percentile_95(every):g} (95 %)" for name, every in by.items() if every}
    return _bars(title, bars, said)


def amounts(title: str, by: Mapping[str, float], unit: str) -> Figure:
    """Return one number for each name, with a bar."""
    values = [{"name": name, "amount": amount, "said": f"{amount:,.1f}"} for name, amount in by.items()]
    base = alt.Chart(alt.InlineData(values), title=title).encode(
        alt.Y("name:N", sort=None, title=None), alt.X("amount:Q", title=unit, axis=_FEW)
    )
    chart = base.mark_bar(color=FILLS[0]) + base.mark_text(align="left", dx=3).encode(alt.Text("said:N"))
    most = max(by.values(), default=0) or 1
    lines = [f"  {name:<24} {'█' * round(BAR * each / most):<{BAR}} {each:,.1f} {unit}" for name, each in by.items()]
    return _figure(chart.properties(width=WIDTH), [title, *lines])


def states(target: Target, run: Run, machine: Machine[Any], title: str = "") -> Figure:
    """Return the number of a machine's entities in each state, until none moves any more.

    The line below the title has the time of the run after that.
    """
    last_ms = max((at_ms for at_ms, _, _ in _entered(target, run, machine)), default=0)
    timestamps = [last_ms * number // (MOMENTS - 1) for number in range(MOMENTS)]
    found = list(_standing(target, run, machine, timestamps))
    met = [state for state in map(str, machine.states) if any(each[state] for each in found)]
    unit_ms, unit = _unit(last_ms)
    values = [
        {"after": at_ms / unit_ms, "state": state, "count": count[state], "place": place}
        for at_ms, count in zip(timestamps, found, strict=True)
        for place, state in enumerate(met)
    ]
    head, rest = title or f"{machine.name}: how many are in which state", _rest(last_ms, run.until_ms)
    chart = (
        alt.Chart(alt.InlineData(values), title=alt.Title(head, subtitle=rest))
        .mark_area(interpolate="step-after")
        .encode(
            alt.X("after:Q", title=f"virtual time, {unit}", axis=alt.Axis(tickCount=8)),
            alt.Y("count:Q", title=None, stack="zero", axis=_FEW),
            alt.Color("state:N", scale=alt.Scale(domain=met, range=_fills(machine, met)), title=None),
            alt.Order("place:Q"),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return _figure(chart, [head, *_moments(timestamps, found, met), f"  {rest}"])


def _rest(last_ms: int, until_ms: int) -> str:
    """Return the line about the time after the last transition."""
    if until_ms <= last_ms:
        return f"the run ends after {duration(until_ms)}"
    return f"after {duration(last_ms)} none moves any more; the run ends after {duration(until_ms)}"


def _fills(machine: Machine[Any], met: Iterable[str]) -> list[str]:
    """Return the colours of states: those of every other picture of the machine."""
    places = {str(state): place for place, state in enumerate(machine.states)}
    return [FILLS[places[state] % len(FILLS)] for state in met]


def _entered(target: Target, run: Run, machine: Machine[Any]) -> Iterator[tuple[int, tuple[str, str], str]]:
    """Yield the transitions of a machine's entities, by the log."""
    for each in steps(target.system, run.entries):
        for step in each.reaction.transitions:
            if step.machine == machine.name and step.entered is not None:
                at_ms = max(0, each.envelope.at_ms - START_MS)
                yield at_ms, (each.aggregate, step.entity), str(step.entered)


def _standing(target: Target, run: Run, machine: Machine[Any], timestamps: Sequence[int]) -> Iterator[Counter[str]]:
    """Yield the number of a machine's entities in each state at each of these times, in order."""
    now: dict[tuple[str, str], str] = {}
    waiting = deque(timestamps)
    for at_ms, entity, state in _entered(target, run, machine):
        while waiting and waiting[0] < at_ms:
            waiting.popleft()
            yield Counter(now.values())
        now[entity] = state
    for _ in waiting:
        yield Counter(now.values())


def _moments(timestamps: Sequence[int], found: Sequence[Counter[str]], met: Sequence[str]) -> Iterator[str]:
    """Yield the counts at the beginning, at the end, and a few times between."""
    for number in range(0, MOMENTS, (MOMENTS - 1) // 3):
        standing = ", ".join(f"{found[number][state]} {state}" for state in met if found[number][state])
        yield f"  after {duration(timestamps[number]):>9}: {standing or 'none'}"


def _bars(title: str, bars: Sequence[tuple[str, str, int]], said: Mapping[str, str]) -> Figure:
    """Return adjacent bars in a row for each name, with the figures above."""
    headings = {name: f"{name}: {said.get(name, 'never')}" for name, _, _ in bars}
    values = [{"of": headings[name], "bin": label, "count": count} for name, label, count in bars]
    labels = list(dict.fromkeys(label for _, label, _ in bars))
    chart: Any = (
        alt.Chart(alt.InlineData(values), title=title)
        .mark_bar(color=FILLS[0])
        .encode(
            alt.X("bin:O", sort=labels, title=None, axis=alt.Axis(labelAngle=0 if _is_short(labels) else -40)),
            alt.Y("count:Q", title=None, axis=_FEW),
            alt.Facet("of:N", sort=list(headings.values()), title=None, columns=1),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return _figure(chart.resolve_scale(y="independent"), [title, *_in_words(bars, headings)])


def _in_words(bars: Sequence[tuple[str, str, int]], headings: Mapping[str, str]) -> Iterator[str]:
    for name, heading in headings.items():
        yield f"  {heading}"
        own = [(label, count) for each, label, count in bars if each == name]
        most = max(count for _, count in own) or 1
        for label, count in own:
            yield f"    {label:<14} {'█' * round(BAR * count / most):<{BAR}} {count:,}".rstrip()


def _edge(edge_ms: int) -> str:
    """Return a round time in few characters."""
    unit_ms, unit = _unit(edge_ms)
    return f"{edge_ms // unit_ms} {unit}"


def _unit(most_ms: int) -> tuple[int, str]:
    """Return the unit for times up to this one: its milliseconds, and its name."""
    units = ((HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s"))
    return next((each for each in units if most_ms >= each[0]), (1, "ms"))


def _is_short(labels: Sequence[str]) -> bool:
    return all(len(each) < 5 for each in labels)  # noqa: PLR2004 - as wide as a bar is


def _figure(chart: Any, lines: Iterable[str]) -> Figure:
    return Figure(chart.configure(**_LOOK).to_dict(), "\n".join(lines))
