"""The results of the campaigns in docs/reliability.md and docs/cluster.md, written from their files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from trials import Result

DOCS: Final = Path(__file__).parents[2] / "docs"

BEGIN: Final = "<!-- results: written by `make torture` -->\n"
END: Final = "<!-- end of results -->\n"

PAGES: Final[Mapping[Path, tuple[str, ...]]] = {
    DOCS / "reliability.md": ("power", "disk", "kills", "signals", "fuzz", "guided"),
    DOCS / "cluster.md": ("cluster",),
}
"""The pages, with the campaigns on each."""

LISTED: Final = frozenset({"disk", "kills", "cluster"})
"""The campaigns whose points are in the second table."""


def with_results(page: str, results: Iterable[Result]) -> str:
    """Return the page with these results in their place."""
    every = list(results)
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{_table(every)}\n{_points(every)}\n{END}{after}"


def _table(results: Iterable[Result]) -> str:
    lines = ["| campaign | trials | points | counted | something wrong |", "| --- | ---: | ---: | --- | ---: |"]
    for each in results:
        counted = ", ".join(f"{name} {number:,}" for name, number in each.counted.items())
        lines.append(f"| {each.name} | {each.trials:,} | {len(each.points):,} | {counted} | {len(each.wrong):,} |")
    return "\n".join(lines) + "\n"


def _points(results: Iterable[Result]) -> str:
    lines = ["| campaign | point | trials |", "| --- | --- | ---: |"]
    for each in results:
        if each.name in LISTED:
            lines += [f"| {each.name} | {point} | {number:,} |" for point, number in each.points.items()]
    return "\n".join(lines) + "\n"
