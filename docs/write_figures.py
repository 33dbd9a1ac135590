"""Writes the figures of proofs in README.md, docs/check.md and the desk, from docs/certificates. Run by ``make pages``.

A table stands between ``<!-- proven: NAME ... -->`` and ``<!-- end of proven -->``; NAME is a certificate's. The desk
has the figures of all certificates in one file of its package.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lifefold.interpreters.certificates.certificate import Certificate, read
from lifefold.interpreters.targets.configurations import CHECK_CONFIGURATIONS, CheckConfiguration
from lifefold.interpreters.web.proofs import Crashed, Proof, Proofs

ROOT = Path(__file__).parent.parent
PROOFS = ROOT / "interpreters" / "web" / "proofs.json"
PAGES = (ROOT / "README.md", ROOT / "docs" / "check.md")
PART = re.compile(r"<!-- proven: (?P<names>[^>]+) -->\n.*?<!-- end of proven -->", re.DOTALL)
HEAD = ("target", "states", "steps", "operator commands", "properties that hold", "rows used")


def page(text: str) -> str:
    """Return a page with its tables of proofs written anew. Raises ``OSError`` if there is no such certificate."""

    def table(part: re.Match[str]) -> str:
        rows = "".join(f"| {' | '.join(cells)} |\n" for cells in cells_of(part["names"].split()))
        return f"<!-- proven: {part['names']} -->\n{rows}<!-- end of proven -->"

    return PART.sub(table, text)


def cells_of(names: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table: what each certificate says that was looked at, and what came of it."""
    yield HEAD
    yield ("---", *("---:" for _ in HEAD[1:]))
    for name in names:
        yield _cells(read(ROOT / "docs" / "certificates" / f"{name}.json"))


def _cells(certificate: Certificate) -> tuple[str, ...]:
    commands = certificate.configuration.limits["commands"]
    used, rows = certificate.coverage["rows"]
    held = certificate.verdicts.held
    asked = held + len(certificate.verdicts.open)
    return (
        f"`{certificate.target}`",
        f"{certificate.counts.states:,}",
        f"{certificate.counts.steps:,}",
        "any number" if commands is None else f"at most {commands}",
        f"all {held}" if held == asked else f"{held} of {asked}",
        f"{used} of {rows}",
    )


def proofs() -> bytes:
    """Return the figures of all certificates for the desk, by target."""
    certificates = [read(each) for each in sorted((ROOT / "docs" / "certificates").glob("*.json"))]
    modules = sorted({each for of in certificates for each in of.modules.items()})
    places = {each: place for place, each in enumerate(modules)}
    made_of = {of.target: tuple(places[each] for each in of.modules.items()) for of in certificates}
    found = Proofs(tuple(modules), made_of, tuple(map(_proof, certificates)))
    return msgspec.json.encode(found) + b"\n"


def _proof(of: Certificate) -> Proof:
    crashes = of.crashes
    return Proof(
        of.target,
        CHECK_CONFIGURATIONS.get(of.target, CheckConfiguration()).of or of.target,
        of.verdicts.held,
        tuple(f"{each.owner}: {each.name}: {each.outcome}" for each in of.verdicts.open),
        of.lacking(),
        of.counts.states,
        of.counts.steps,
        of.counts.depth,
        dict(of.configuration.limits),
        dict(of.coverage),
        None if crashes is None else Crashed(crashes.inputs, crashes.crashes, crashes.states, crashes.steps),
        of.code,
        dict(of.versions),
        of.scope() if of.rules else None,
    )


if __name__ == "__main__":
    PROOFS.write_bytes(proofs())
    for path in PAGES:
        path.write_text(page(path.read_text()))
