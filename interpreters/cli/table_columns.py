"""Columns that a table has only if they say something: a cost, a trust level, a next step."""

from collections.abc import Sequence

from lifefold.core.lifecycles.session import Usage
from lifefold.interpreters.cli.wording import cost


def with_cost(rows: Sequence[tuple[str, ...]], usages: Sequence[Usage], place: int) -> list[tuple[str, ...]]:
    """Return rows, the first of them the head, with a column COST; without it if no cost is known."""
    known = any(usage != Usage() for usage in usages)
    return with_column(rows, "COST", [cost(usage) for usage in usages] if known else ["-"] * len(usages), place)


def with_column(rows: Sequence[tuple[str, ...]], head: str, cells: Sequence[str], place: int) -> list[tuple[str, ...]]:
    """Return rows with one more column; without it if all its cells are hyphens."""
    if all(cell == "-" for cell in cells):
        return list(rows)
    return [(*row[:place], cell, *row[place:]) for row, cell in zip(rows, (head, *cells), strict=True)]


def without_hyphens(rows: Sequence[tuple[str, ...]], head: str) -> list[tuple[str, ...]]:
    """Return rows without a column of hyphens."""
    place = rows[0].index(head)
    if any(row[place] != "-" for row in rows[1:]):
        return list(rows)
    return [(*row[:place], *row[place + 1 :]) for row in rows]
