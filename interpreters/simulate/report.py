"""What came of a campaign, as people read it on a screen."""

from collections.abc import Iterator, Sequence
from statistics import median, quantiles
from typing import Final

from lifefold.core.kernel import Machine, System, alone
from lifefold.interpreters.check.trace import WIDTH, wrapped
from lifefold.interpreters.simulate.campaign import Tally
from lifefold.interpreters.simulate.findings import Finding
from lifefold.interpreters.simulate.story import deviation_lines, last_lines
from lifefold.interpreters.simulate.targets import Target

HOUR_MS: Final = 3_600_000
SECOND_MS: Final = 1_000

STATES_SHOWN: Final = 4
"""How many of a machine's states are shown with the time spent in them: those with most of it."""


def lines(target: Target, tally: Tally, findings: Sequence[Finding], width: int = WIDTH) -> Iterator[str]:
    """Yield the report: how much was tried, what went wrong meanwhile, what was used, what was found, the sum of it."""
    rate = tally.inputs / tally.seconds if tally.seconds else 0
    hours = tally.virtual_ms / HOUR_MS
    quick = f", {tally.virtual_ms / SECOND_MS / tally.seconds:,.0f} times as fast as the clock" if tally.seconds else ""
    met = (
        f"{tally.seeds:,} seeds, {tally.inputs:,} inputs, {tally.transitions:,} transitions, {hours:,.0f} virtual hours"
    )
    yield from wrapped(f"{target.name}: ", f"{met}, in {tally.seconds:.1f} s ({rate:,.0f} inputs/s{quick})", width)
    for what, said in _said(target, tally):
        yield from wrapped(f"  {what:<13}", said, width)
    yield ""
    for finding in findings:
        yield from _finding(finding, width)
    yield from wrapped(f"{target.name}: ", conclusion(tally), width)


def conclusion(tally: Tally) -> str:
    """Return the sum of it in a few words."""
    if not tally.found:
        return f"no promise is broken in {tally.seeds:,} seeds"
    broken = len({(found.owner, found.promise) for _, found in tally.found})
    promises = "one promise is" if broken == 1 else f"{broken} promises are"
    return f"{promises} broken, in {len(tally.found):,} of {tally.seeds:,} seeds"


def _said(target: Target, tally: Tally) -> Iterator[tuple[str, str]]:
    struck = (f"{name} {count:,}" for name, count in tally.struck.most_common())
    yield "faults", " · ".join(struck) or "none"
    yield "runners", _runners(tally)
    yield "used", " · ".join(f"{name} {used}/{of}" for name, used, of in used(target, tally))
    for machine, times in _times(tally).items():
        whole = sum(times.values())
        most = sorted(times.items(), key=lambda each: -each[1])[:STATES_SHOWN]
        yield f"time of {machine}"[:12], " · ".join(f"{state} {100 * spent / whole:.1f} %" for state, spent in most)


def _runners(tally: Tally) -> str:
    if not tally.crashes:
        return "none has died"
    died = f"{tally.crashes:,} have died; {tally.again:,} effects were performed again"
    if len(tally.recovery_ms) < 2:  # noqa: PLR2004 - as few as have no distribution
        return died
    half, often = median(tally.recovery_ms) / SECOND_MS, quantiles(tally.recovery_ms, n=20)[-1] / SECOND_MS
    return f"{died}; there was another after {half:.1f} s (median), {often:.1f} s (95 %)"


def used(target: Target, tally: Tally) -> Iterator[tuple[str, int, int]]:
    """Yield of states, rows, and both answers of guards, how many were used of how many."""
    system = _system(target)
    machines = {m.name: m for of in system.aggregates.values() for m in of.machines.values()}.values()
    guarded = [(m.name, number) for m in machines for number, row in enumerate(m.rows) if row.when is not None]
    both = sum((*each, True) in tally.guards and (*each, False) in tally.guards for each in guarded)
    yield "states", len(tally.states), sum(len(m.states) - len(m.detached) for m in machines)
    yield "rows", len(tally.rows), sum(len(m.rows) for m in machines)
    yield "guards, both ways", both, len(guarded)


def _system(target: Target) -> System:
    return alone(target.subject)[0] if isinstance(target.subject, Machine) else target.subject


def _times(tally: Tally) -> dict[str, dict[str, int]]:
    times: dict[str, dict[str, int]] = {}
    for (machine, state), spent_ms in sorted(tally.state_ms.items()):
        if spent_ms:
            times.setdefault(machine, {})[state] = spent_ms
    return times


def _finding(finding: Finding, width: int) -> Iterator[str]:
    found = finding.run.found
    if found is None:
        return
    yield from wrapped("  ✗ ", f"{found.owner}: {found.promise}: broken, first with seed {finding.seed}", width)
    yield from wrapped("     ", f"not so of {found.of}", width)
    yield from deviation_lines(finding.run.deviations, width)
    yield from last_lines(finding.system, finding.run.entries, width)
    yield ""
