"""A machine as a Mermaid state diagram, which GitHub and most notebooks draw.

Arrows between the same two states are one arrow with a line for each row. Rows of any state leave a state of their own,
so that they do not cross the picture once for every state. An activity of several states is drawn around them.
"""

from collections.abc import Iterator
from typing import Any

from lifefold.core.kernel import Machine
from lifefold.interpreters.views.outline import ANY_STATE, Names, Region, arrows, goings_on, regions

KEYWORDS = frozenset(
    {"class", "classdef", "click", "default", "end", "hide", "note", "root", "scale", "state", "style"}
)
"""The names of states that Mermaid reserves."""


def mermaid(machine: Machine[Any]) -> str:
    """Return the machine as a ``stateDiagram-v2``."""
    names = Names(*machine.states, keywords=KEYWORDS)
    lines = [line for region in regions(machine) for line in _region(machine, names, region)]
    lines += [f"[*] --> {names[machine.initial.state]}", *_arrows(machine, names)]
    lines += [f"{names[state]} --> [*]" for state in machine.states if state in machine.final]
    return "\n".join(["stateDiagram-v2", *(f"    {line}" for line in lines)]) + "\n"


def _region(machine: Machine[Any], names: Names, region: Region) -> Iterator[str]:
    """Yield the declaration of a state or of a composite of states. The first description of a state is its title."""
    if not region.parts:
        identifier = names[region.states[0]]
        yield from (f"{identifier} : {safe(text)}" for text in (region.title, *goings_on(machine, region)))
        return
    title = ", ".join(goings_on(machine, region))
    yield f'state "{safe(title)}" as {names.of(region.states, region.title)} {{'
    yield from (f"    {line}" for part in region.parts for line in _region(machine, names, part))
    yield "}"


def _arrows(machine: Machine[Any], names: Names) -> Iterator[str]:
    drawn = arrows(machine)
    if any(source is None for source, _target in drawn):
        yield f'state "{ANY_STATE}" as {names.of(None, "ANY")}'
    for (source, target), lines in drawn.items():
        yield f"{names[source]} --> {names[target]} : {'<br/>'.join(map(safe, lines))}"


def safe(text: str) -> str:
    """Write the characters that end a label, or have a meaning in it, as Mermaid's entities."""
    meanings = {"#": "#35;", ":": "#58;", ";": "#59;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "%": "#37;"}
    return "".join(meanings.get(character, character) for character in text)
