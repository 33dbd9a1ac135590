"""The display of reports, and of the progress of a search: the one place that prints them."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from shutil import get_terminal_size
from typing import Any, Final

import msgspec

from lifefold.core.kernel import System
from lifefold.interpreters.check import Progress
from lifefold.interpreters.cli.wording import age
from lifefold.interpreters.report.report import ReportBase
from lifefold.interpreters.report.steps import Lengthen, machines_in, only_shown, stepwise

WIDTH: Final = 80
"""The width of a line without a terminal."""

MARKS: Final = {r"^  ✓": "green", r"^  ✗.*": "bold red", r"^  [?!].*": "yellow"}
"""The style of a verdict, by the beginning of its line."""

Tell = Callable[[Progress], None]


@contextmanager
def shown(name: str) -> Generator[Tell | None]:
    """Show the progress of a search on one line of a terminal; elsewhere show nothing."""
    if not sys.stdout.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import, and only a terminal needs it

    console = Console()
    with console.status(f"{name}: the search begins", spinner="line") as status:
        yield lambda progress: status.update(in_words(name, progress))


def in_words(name: str, progress: Progress) -> str:
    """Return the progress of a search, on one line."""
    rate = progress.states / progress.seconds if progress.seconds else 0
    met = f"{progress.states:,} states, {progress.frontier:,} to search, {progress.depth} deep"
    return f"{name}: {met}, {rate:,.0f}/s, {age(round(progress.seconds * 1_000))}"


def tell(report: ReportBase, *, shows_unused: bool = False) -> None:
    """Print a report, as wide as the terminal, with colours on a terminal."""
    if not sys.stdout.isatty():
        print("\n".join(report.lines(WIDTH, shows_unused=shows_unused)))
        return
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    console = Console()
    lines = list(report.lines(get_terminal_size().columns - 1, shows_unused=shows_unused))
    for line in lines[:-1]:
        text = Text(line, no_wrap=True)
        for beginning, style in MARKS.items():
            text.highlight_regex(beginning, style)
        console.print(text, highlight=False)
    console.print(Text(lines[-1], "bold green" if report.ok else "bold red"))


def page_of(report: ReportBase, system: System, lengthen: Lengthen = only_shown) -> dict[str, Any]:
    """Return what the pages of ``lifefold serve`` show of a report, in types of JSON.

    It has pictures of the machines of the system that move in its traces. Without the extra for pictures it has none.
    """
    from lifefold.interpreters.views.picture import LayoutMissingError, statechart, svg  # noqa: PLC0415 - as above

    page = stepwise(report, lengthen)
    machines = {machine.name: machine for of in system.aggregates.values() for machine in of.machines.values()}
    pictures: dict[str, str] = {}
    with suppress(LayoutMissingError):
        pictures = {name: svg(statechart(machines[name])) for name in machines_in(page)}
    found: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(page, pictures=pictures))
    return found
