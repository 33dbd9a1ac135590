"""Writes the tables of keys in docs/fleet-file.md, from what a fleet file is read by. Run by ``make pages``.

The variables by which agent programs log in are in docs/fleet/agents.md, the kinds of notifications in
docs/fleet/notify.md.
"""

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lifefold.interpreters.fleet_file.config import FileKeys
from lifefold.interpreters.fleet_file.keys import Heading, Key, Section, heading, keys_of, sections_of
from lifefold.interpreters.fleet_file.notify import KINDS
from lifefold.interpreters.fleet_runner.redaction import SECRET
from lifefold.interpreters.fleet_runner.variables import LOGIN, PASSED

PAGE = Path(__file__).parent / "fleet-file.md"
AGENTS = Path(__file__).parent / "fleet" / "agents.md"
NOTIFY = Path(__file__).parent / "fleet" / "notify.md"
PART = re.compile(r"<!-- keys of (?P<header>\S+) -->\n.*?<!-- end of keys -->", re.DOTALL)


def page(text: str) -> str:
    """Return the page with its tables written anew. Raises ``KeyError`` for one of a section that there is not."""
    tables = {heading(section).header: section for section in within(FileKeys)}

    def table(part: re.Match[str]) -> str:
        header = part["header"]
        rows = "".join(f"| {' | '.join(cells)} |\n" for cells in cells_of(tables[header]))
        return f"<!-- keys of {header} -->\n{rows}<!-- end of keys -->"

    with_tables = PART.sub(table, text)
    for what, names in (("passed", PASSED), ("secret", SECRET)):
        listed = f"```text\n{textwrap.fill(' '.join(names), 120, break_on_hyphens=False)}\n```"
        with_tables = between(with_tables, what, f"{listed}\n")
    return with_tables


def agents_page(text: str) -> str:
    """Return the page of agents by kind with the variables by which their programs log in."""
    rows = "".join(f"| `{kind}` | {', '.join(f'`{name}`' for name in names)} |\n" for kind, names in LOGIN.items())
    return between(text, "login", f"| `kind` | variables |\n|---|---|\n{rows}")


def notify_page(text: str) -> str:
    """Return the page of notifications with the list of their kinds."""
    head, _, rest = text.partition(KINDS_BEGIN)
    rows = "".join(f"| `{kind}` | {about} |\n" for kind, about in KINDS.items())
    return f"{head}{KINDS_BEGIN}| `on` | told when |\n|---|---|\n{rows}{KINDS_END}{rest.partition(KINDS_END)[2]}"


KINDS_BEGIN = "<!-- kinds of notifications -->\n"
KINDS_END = "<!-- end of kinds -->"


def between(text: str, what: str, listed: str) -> str:
    """Return a page with another list between the marks of some variables."""
    marks = f"<!-- {what} variables -->\n", f"<!-- end of {what} variables -->"
    head, _, rest = text.partition(marks[0])
    _, _, tail = rest.partition(marks[1])
    return f"{head}{marks[0]}{listed}{marks[1]}{tail}"


def within(section: type[Section]) -> Iterator[type[Section]]:
    """Yield all sections of the file, each before those within it."""
    for inner in sections_of(section).values():
        yield inner
        yield from within(inner)


def cells_of(section: type[Section]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the rows of a section's table: each key, its default, what is accepted, what it means."""
    head = heading(section)
    yield "key", "default", "accepted", "meaning"
    yield "---", "---", "---", "---"
    for key in keys_of(section).values():
        yield f"`{key.name}`", default_of(key, head), key.form.brief, key.about
    if head.others:
        yield "every other key", "", "", head.others


def default_of(key: Key[Any], head: Heading) -> str:
    """Return what is said of a key's absence."""
    if key.name in head.one_of:
        return f"one of {', '.join(f'`{name}`' for name in head.one_of)}"
    if key.required:
        wanted = " or ".join(f'`"{value}"`' for value in key.when[1:])
        return f"required if `{key.when[0]}` is {wanted}" if wanted else "required"
    written = key.default_as_written()
    return f"`{json.dumps(written)}`" if written not in (None, [], {}) else key.absent or "none"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    AGENTS.write_text(agents_page(AGENTS.read_text()))
    NOTIFY.write_text(notify_page(NOTIFY.read_text()))
