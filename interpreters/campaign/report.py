"""The report of a campaign, as text and as JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median, quantiles
from typing import Any, Final

import msgspec

from lifefold.core.kernel import Does
from lifefold.interpreters.campaign.campaign import Tally, campaign
from lifefold.interpreters.campaign.driver import Driver
from lifefold.interpreters.campaign.findings import SeedFinding, Unshrunk, first_of_each, identity
from lifefold.interpreters.report.finding import Finding
from lifefold.interpreters.report.report import ReportBase
from lifefold.interpreters.search.used_parts import machines_of
from lifefold.interpreters.simulate.faults import Faults
from lifefold.interpreters.simulate.simulation import Limits
from lifefold.interpreters.targets.simulation_targets import named
from lifefold.interpreters.targets.target import Target

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
MICRO: Final = 1_000_000

STATES_SHOWN: Final = 4
"""The most states of a machine that are shown with their times: those with most of it."""


class Report(ReportBase, frozen=True):
    """The result of a campaign: the target, the sum of all runs, and the shrunk findings."""

    target: Target
    tally: Tally
    findings: tuple[SeedFinding, ...] = ()

    @property
    def title(self) -> str:
        """The name of the target."""
        return self.target.name

    @property
    def ok(self) -> bool:
        """Whether no property is broken."""
        return not self.tally.found

    def met(self) -> str:
        """Return the number of runs in words."""
        return tried(self.tally)

    def said(self) -> Iterator[tuple[str, str]]:
        """Yield the speed, the faults, the coverage, the cost, and the times in states."""
        yield "speed", speed(self.tally)
        yield from facts_in_words(self.target, self.tally)
        yield from times_in_words(self.tally)

    def unused(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield the unused parts of the tables, and the unused rules."""
        yield "missing", missing(self.target, self.tally)
        yield "unused_rules", unused_rules(self.target, self.tally)

    def shown_findings(self) -> list[Finding]:
        """Return the shrunk findings, and then those that there was no time to shrink, each by its first seed."""
        known = {identity(each.found) for each in self.findings}
        left: dict[tuple[str, ...], Finding] = {}
        for seed, found in self.tally.found:
            if identity(found) not in known:
                left.setdefault(identity(found), Unshrunk(seed, found))
        return [*self.findings, *left.values()]

    def conclusion(self) -> str:
        """Return the conclusion in a few words."""
        return conclusion(self.tally)

    def facts(self) -> dict[str, Any]:
        """Return everything that the text has, in types of JSON."""
        return _facts(self)


def trial(  # noqa: PLR0913 - what may be chosen, each with its name
    target: str | Target,
    seeds: Sequence[int],
    *,
    faults: Faults | None = None,
    limits: Limits | None = None,
    jobs: int = 1,
    tell: Callable[[Tally], None] | None = None,
    stop_at: int | None = None,
    is_stopped: Callable[[], bool] | None = None,
    driver: Driver = Driver.OWN,
) -> Report:
    """Try a target with these seeds as ``campaign`` does, and shrink the findings. Raises as it does."""
    of = named(target) if isinstance(target, str) else target
    faults, limits = faults or Faults(), limits or Limits()
    tally = campaign(
        target,
        seeds,
        faults=faults,
        limits=limits,
        jobs=jobs,
        tell=tell,
        stop_at=stop_at,
        is_stopped=is_stopped,
        driver=driver,
    )
    return Report(of, tally, tuple(first_of_each(of, tally, faults, limits, is_stopped)))


def tried(tally: Tally) -> str:
    """Return the number of runs in words."""
    inputs = f"{tally.inputs:,} inputs, {tally.transitions:,} transitions"
    return f"{_seeds(tally)}, {inputs}, {tally.virtual_ms / HOUR_MS:,.0f} virtual hours"


def speed(tally: Tally) -> str:
    """Return the speed in words, for each process."""
    seconds = max(tally.seconds, 1e-6)
    quick = tally.virtual_ms / SECOND_MS / seconds
    each = f"{tally.inputs / seconds:,.0f} inputs/s, {quick:,.0f} times the clock"
    return f"{tally.seconds:.1f} s of work, {each}"


def conclusion(tally: Tally) -> str:
    """Return the conclusion in a few words."""
    if not tally.found:
        return f"no property is broken in {_seeds(tally)}{tally.driver.where}"
    broken = len({(found.owner, found.prop) for _, found in tally.found})
    properties = "one property is" if broken == 1 else f"{broken} properties are"
    return f"{properties} broken, in {len(tally.found):,} of {_seeds(tally)}"


def _seeds(tally: Tally) -> str:
    return "one seed" if tally.seeds == 1 else f"{tally.seeds:,} seeds"


def facts_in_words(target: Target, tally: Tally) -> Iterator[tuple[str, str]]:
    """Yield further facts, each with a word for its subject."""
    yield from mishaps(tally)
    yield "used", " · ".join(f"{name} {used}/{of}" for name, used, of in used(target, tally) if of)
    missing = never(target, tally)
    if missing:
        yield "never met", " · ".join(missing)
    yield "cost", " · ".join(_costs(target, tally))


def times_in_words(tally: Tally) -> Iterator[tuple[str, str]]:
    """Yield for each machine the states with most time."""
    return ((machine, f"{shares(times)} of its time") for machine, times in state_times(tally).items())


def mishaps(tally: Tally) -> Iterator[tuple[str, str]]:
    """Yield the faults, and the time until they were over."""
    struck = (f"{name} {count:,}" for name, count in tally.struck.most_common())
    yield "faults", " · ".join(struck) or "none"
    yield "crash points", _crash_points(tally)
    yield "runners", _runners(tally)
    if tally.unclaimed_ms:
        back = "one came" if len(tally.unclaimed_ms) == 1 else f"{len(tally.unclaimed_ms):,} times one came"
        yield "tasks", f"{back} back undone; it had a worker again after {spread(tally.unclaimed_ms)}"


def shares(times: Mapping[str, int]) -> str:
    """Return the states with most time, and their shares of it."""
    whole = sum(times.values())
    most = sorted(times.items(), key=lambda each: -each[1])[:STATES_SHOWN]
    return " · ".join(f"{state} {100 * spent / whole:.1f} %" for state, spent in most)


def crash_points(tally: Tally) -> dict[str, int]:
    """Return for each fault that ends a runner the number of different points at which it happened."""
    counts = Counter(str(name[0]) for name in tally.points)
    return {fault: counts[fault] for fault in tally.driver.deadly}


def _crash_points(tally: Tally) -> str:
    counts = crash_points(tally)
    missing = [fault for fault, count in counts.items() if not count]
    where = " · ".join(f"{fault} {count:,}" for fault, count in counts.items() if count)
    never = f"never {', '.join(missing)}" if where else "none"
    return " · ".join(filter(None, (where, never if missing else "")))


def _runners(tally: Tally) -> str:
    if not tally.crashes:
        return "none has died"
    again = "one effect was" if tally.again == 1 else f"{tally.again:,} effects were"
    died = f"{tally.crashes:,} have crashed; {again} performed again"
    if not tally.recovery_ms:
        return died
    return f"{died}; there was another after {spread(tally.recovery_ms)}"


def _costs(target: Target, tally: Tally) -> Iterator[str]:
    """Yield the cost: money if it is in the log, sessions if there are any, the time of activities."""
    if tally.microusd is None:
        yield "no money is in the log"
    else:
        yield f"{tally.microusd / MICRO:,.6f} USD"
    if tally.sessions:
        yield f"{tally.sessions:,} sessions, {duration(tally.session_ms)} by the log"
    if tally.task_ms:
        few, many = median(tally.task_sessions), percentile_95(tally.task_sessions)
        yield f"of a task {few:g} (median), {many:g} (95 %), in {spread(tally.task_ms)}"
    for name, spent_ms in working_ms(target, tally).items():
        yield f"{name} {duration(spent_ms)}"


def working_ms(target: Target, tally: Tally) -> dict[str, int]:
    """Return the time of each kind of activity, by its states, the longest first."""
    spent: Counter[str] = Counter()
    machines = machines_of(target.system)
    for (machine, state), spent_ms in tally.state_ms.items():
        of = machines[machine]
        for slot, span in of.spans.items():
            if isinstance(span.during, Does) and slot not in of.served and state in map(str, span.states):
                spent[slot] += spent_ms
    return {name: spent_ms for name, spent_ms in spent.most_common() if spent_ms}


def used(target: Target, tally: Tally) -> Iterator[tuple[str, int, int]]:
    """Yield the used and the total number of states, rows, results of guards, rules and faults."""
    yield from ((name, count, of) for name, (count, of) in tally.used.counts(target.system).items())
    yield "faults", sum(count > 0 for count in tally.struck.values()), len(tally.driver.faults)
    points = crash_points(tally)
    yield "crash points", sum(count > 0 for count in points.values()), len(points)


def never(target: Target, tally: Tally) -> list[str]:
    """Return the states without an entity, each with its machine if there are several."""
    machines = machines_of(target.system).values()
    return [
        f"{m.name} {state}" if len(machines) > 1 else str(state)
        for m in machines
        for state in m.states
        if state not in m.detached and (m.name, state) not in tally.used.states
    ]


def missing(target: Target, tally: Tally) -> list[str]:
    """Return in words the unused parts of the machines without the states, which ``never`` has."""
    return [*tally.used.missing(target.system, with_states=False)]


def unused_rules(target: Target, tally: Tally) -> list[str]:
    """Return in words the rules that never answered a transition."""
    return [*tally.used.unused_rules(target.system)]


def state_times(tally: Tally) -> dict[str, dict[str, int]]:
    """Return by machine the time of its entities in each state, in milliseconds; without states with no time."""
    times: dict[str, dict[str, int]] = {}
    for (machine, state), spent_ms in sorted(tally.state_ms.items()):
        if spent_ms:
            times.setdefault(machine, {})[state] = spent_ms
    return times


def spread(each_ms: Sequence[int]) -> str:
    """Return the median and the 95th percentile of durations, in words."""
    return f"{duration(median(each_ms))} (median), {duration(percentile_95(each_ms))} (95 %)"


def percentile_95(each: Sequence[int]) -> float:
    """Return the 95th percentile."""
    return quantiles(each, n=20, method="inclusive")[-1] if len(each) > 1 else each[0]


def duration(spent_ms: float) -> str:
    """Return a duration in words, in a suitable unit."""
    for unit_ms, unit in ((HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s")):
        if spent_ms >= unit_ms:
            return f"{spent_ms / unit_ms:,.1f} {unit}"
    return f"{spent_ms:.0f} ms"


def _facts(report: Report) -> dict[str, Any]:
    target, tally = report.target, report.tally
    return {
        "target": target.name,
        "ok": report.ok,
        "conclusion": conclusion(tally),
        "seeds": tally.seeds,
        "inputs": tally.inputs,
        "refused": tally.refused,
        "transitions": tally.transitions,
        "crashes": tally.crashes,
        "performed_again": tally.again,
        "virtual_ms": tally.virtual_ms,
        "seconds": round(tally.seconds, 3),
        "faults": dict(tally.struck),
        "crash_points": crash_points(tally),
        "never_met": never(target, tally),
        "missing": missing(target, tally),
        "unused_rules": unused_rules(target, tally),
        "coverage": {name: [count, of] for name, count, of in used(target, tally)},
        "seen": sorted(f"{owner}: {prop}" for owner, prop in tally.seen),
        "state_ms": {f"{machine} {state}": spent for (machine, state), spent in sorted(tally.state_ms.items())},
        "recovery_ms": tally.recovery_ms,
        "unclaimed_ms": tally.unclaimed_ms,
        "cost": {
            "microusd": tally.microusd,
            "sessions": tally.sessions,
            "session_ms": tally.session_ms,
            "task_sessions": tally.task_sessions,
            "task_ms": tally.task_ms,
            "working_ms": working_ms(target, tally),
        },
        "found": [
            {
                "seed": each.seed,
                **msgspec.to_builtins(each.found),
                "deviations": [[list(name), way] for name, way in each.run.deviations.items()],
                "inputs": len(each.run.entries),
            }
            for each in report.findings
        ],
    }
