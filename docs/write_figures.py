"""Writes the figures of proofs in README.md and docs/check.md, from docs/certificates. Run by ``make pages``.

A table stands between ``<!-- proven: NAME ... -->`` and ``<!-- end of proven -->``; NAME is a certificate's.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from lifefold.interpreters.certificates.certificate import Certificate, read

ROOT = Path(__file__).parent.parent
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


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path.read_text()))
