"""The findings of seeds as a test file: it fails as long as the rules allow the runs.

It contains the deviations, not the seed: they have the same meaning with other faults and rates.
"""

import re
from collections.abc import Iterator, Sequence
from pprint import pformat
from typing import Final

from lifefold.interpreters.simulate.findings import Finding

WIDTH: Final = 110
_HEAD: Final = '"""Written by lifefold simulate --emit-test'


def emitted(findings: Sequence[Finding]) -> str:
    """Return the file; an empty text if there is nothing to test."""
    if not findings:
        return ""
    titles = _titles(findings)
    tests = ["\n".join(_test(title, each)) for title, each in zip(titles, findings, strict=True)]
    head = f'{_HEAD}: runs in which a property is broken. Fails until they are fixed."""'
    imports = (
        "from lifefold.interpreters.simulate import Limits, simulate",
        "from lifefold.interpreters.simulate.story import told",
        "from lifefold.interpreters.simulate.simulation_targets import named",
    )
    return "\n".join([head, "", *imports, "", "", "\n\n\n".join(tests), ""])


def is_emitted(text: bytes) -> bool:
    """Tell whether the text of a file was written here, by its head."""
    return text.startswith(_HEAD.encode())


def _titles(findings: Sequence[Finding]) -> list[str]:
    titles: list[str] = []
    for each in findings:
        prop = each.run.found.prop if each.run.found else ""
        name = re.sub(r"\W+", "_", f"test_{each.target.name}_{prop}".lower()).strip("_")
        titles.append(name if name not in titles else f"{name}_{each.seed}")
    return titles


def _test(title: str, finding: Finding) -> Iterator[str]:
    found, limits = finding.run.found, finding.limits
    yield f"def {title}() -> None:"
    yield f"    {_quoted(f'{found.owner}: {found.prop}.' if found else 'Nothing is found.')}"
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
        " limits=limits, but=but)"
    )
    yield "    assert run.found is None, told(target.system, run)"


def _quoted(text: str) -> str:
    """Return any text as a docstring."""
    safe = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').replace("\r", "\\r").replace("\0", "\\0")
    return f'"""{safe}"""'
