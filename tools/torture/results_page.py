"""The results of the campaigns in docs/reliability.md and docs/cluster.md, written from their files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from trials import Result

DOCS: Final = Path(__file__).parents[2] / "docs"

BEGIN: Final = "<!-- results: written by `make torture` -->\n"
END: Final = "<!-- end of results -->\n"

PAGES: Final[Mapping[Path, tuple[str, ...]]] = {
    DOCS / "reliability.md": ("power", "disk", "kills", "signals", "fuzz", "guided", "soak"),
    DOCS / "cluster.md": ("cluster",),
}
"""The pages, with the campaigns on each."""

LISTED: Final = frozenset({"disk", "kills", "cluster"})
"""The campaigns whose points are in the second table."""


MOMENTS: Final = 10
"""The most moments of which the resident size is in the third table, besides the last one."""


def with_results(page: str, results: Iterable[Result]) -> str:
    """Return the page with these results in their place."""
    every = list(results)
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    tables = "\n".join(filter(None, (_table(every), _points(every), _memory(every))))
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def _table(results: Iterable[Result]) -> str:
    lines = ["| campaign | trials | points | counted | something wrong |", "| --- | ---: | ---: | --- | ---: |"]
    for each in results:
        counted = ", ".join(f"{name} {number:,}" for name, number in each.counted.items())
        lines.append(f"| {each.name} | {each.trials:,} | {len(each.points):,} | {counted} | {len(each.wrong):,} |")
    return "\n".join(lines) + "\n"


def _memory(results: Iterable[Result]) -> str:
    """Return the resident size of each campaign that has measured it, in some moments; nothing without one."""
    lines = []
    for each in results:
        sizes = list(each.resident_mib.items())
        some = {*sizes[:: len(sizes) // MOMENTS + 1], *sizes[-1:]}
        lines += [f"| {each.name} | {trials:,} | {mib:,} |" for trials, mib in sorted(some)]
    heads = ["| campaign | after trials | resident size in MiB |", "| --- | ---: | ---: |"]
    return "\n".join([*heads, *lines]) + "\n" if lines else ""


def _points(results: Iterable[Result]) -> str:
    lines = ["| campaign | point | trials |", "| --- | --- | ---: |"]
    for each in results:
        if each.name in LISTED:
            lines += [f"| {each.name} | {point} | {number:,} |" for point, number in each.points.items()]
    return "\n".join(lines) + "\n"
