"""The findings of seeds as a test file: it fails as long as the rules allow the runs.

It contains the deviations, not the seed: they have the same meaning with other faults and rates.
"""

from collections.abc import Iterator, Sequence
from pprint import pformat
from typing import Final

from lifefold.interpreters.campaign.findings import SeedFinding
from lifefold.interpreters.report.emitted_file import docstring, head, title

WIDTH: Final = 110


def emitted(findings: Sequence[SeedFinding]) -> str:
    """Return the file; an empty text if there is nothing to test."""
    if not findings:
        return ""
    tests: dict[str, str] = {}
    for each in findings:
        name = title(each.target.name, each.found.prop, tests)
        tests[name] = "\n".join(_test(name, each))
    first = f'{head("simulate")}: runs in which a property is broken. Fails until they are fixed."""'
    runners = sorted({each.driver.imported() for each in findings} - {""})
    imports = (
        "from lifefold.interpreters.simulate import Limits, simulate",
        *runners,
        "from lifefold.interpreters.simulate.story import told",
        "from lifefold.interpreters.targets.simulation_targets import named",
    )
    return "\n".join([first, "", *imports, "", "", "\n\n\n".join(tests.values()), ""])


def _test(name: str, finding: SeedFinding) -> Iterator[str]:
    found, limits = finding.found, finding.limits
    runner = finding.driver.imported().rpartition(" ")[2]
    yield f"def {name}() -> None:"
    yield f"    {docstring(f'{found.owner}: {found.prop}.')}"
    yield f"    target = named({finding.target.name!r})"
    deviations = pformat(dict(finding.run.deviations), width=WIDTH - 4, sort_dicts=False).splitlines()
    yield f"    but = {deviations[0]}" if len(deviations) == 1 else f"    but = {deviations[0][0]}"
    if len(deviations) > 1:
        yield f"        {deviations[0][1:]}"
        yield from (f"        {line.strip()}" for line in deviations[1:-1])
        yield f"        {deviations[-1].strip().removesuffix('}')},"
        yield "    }"
    yield f"    limits = Limits(until_ms={limits.until_ms}, healing_ms={limits.healing_ms}, inputs={limits.inputs})"
    yield (
        "    run = simulate(target.subject, opening=target.opening, environment=target.environment,"
        f" limits=limits, but=but{f', runner={runner}' if runner else ''})"
    )
    yield "    assert run.found is None, told(target.system, run)"
