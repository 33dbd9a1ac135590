"""A machine in Graphviz's language, drawn like its Mermaid picture: one edge between two states, a line per row."""

from collections.abc import Iterator
from html import escape
from typing import Any

from lifefold.core.kernel import Machine
from lifefold.interpreters.views.outline import ANY_STATE, Names, Region, arrows, goings_on, regions

# Without newrank, a cluster is ranked first and by itself, and the initial state ends up below it.
HEAD = (
    'graph [rankdir=TB, newrank=true, nodesep=0.6, ranksep=0.7, style="rounded,dashed", color="#777777"]',
    'graph [fontname="Helvetica", fontsize=11]',
    'node [shape=box, style="rounded,filled", fillcolor="#f4f6fb", color="#44546a", fontname="Helvetica", fontsize=12]',
    'edge [color="#44546a", fontname="Helvetica", fontsize=10, arrowsize=0.8]',
)

KEYWORDS = frozenset({"digraph", "edge", "graph", "node", "strict", "subgraph"})
"""The names of nodes that Graphviz reserves."""


def dot(machine: Machine[Any]) -> str:
    """Return the machine as a directed graph, with activities in states, and those of several states as clusters."""
    names = Names(*machine.states, keywords=KEYWORDS)
    lines = [*HEAD, *(line for region in regions(machine) for line in _region(machine, names, region))]
    start = names.of("start", "start")
    lines.append(f'{start} [shape=point, width=0.15, fillcolor="#44546a", label=""]')
    lines.append(f"{start} -> {names[machine.initial.state]}")
    lines += _edges(machine, names)
    return "\n".join([f"digraph {quoted(machine.name)} {{", *(f"    {line}" for line in lines), "}"]) + "\n"


def _region(machine: Machine[Any], names: Names, region: Region) -> Iterator[str]:
    if not region.parts:
        lines = [f"<b>{escape(region.title)}</b>", *_small(goings_on(machine, region))]
        final = ", peripheries=2" if region.states[0] in machine.final else ""
        yield f"{names[region.states[0]]} [label=<{'<br/>'.join(lines)}>{final}]"
        return
    yield f"subgraph cluster_{names.of(region.states, region.title)} {{"
    yield f"    label={quoted(', '.join(goings_on(machine, region)))}"
    yield from (f"    {line}" for part in region.parts for line in _region(machine, names, part))
    yield "}"


def _small(lines: tuple[str, ...]) -> list[str]:
    return [f'<font point-size="10">{escape(line)}</font>' for line in lines]


def _edges(machine: Machine[Any], names: Names) -> Iterator[str]:
    drawn = arrows(machine)
    if any(source is None for source, _target in drawn):
        yield f'{names.of(None, "ANY")} [label="{ANY_STATE}", shape=ellipse, style=dashed]'
    for (source, target), lines in drawn.items():
        yield f"{names[source]} -> {names[target]} [label={quoted(*lines)}]"


def quoted(*lines: str) -> str:
    r"""Return a string of the language. Several lines are aligned to the left: ``\l`` at the end of each says so."""
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    text = escaped[0] if len(lines) == 1 else "".join(line + "\\l" for line in escaped)
    return f'"{text}"'
