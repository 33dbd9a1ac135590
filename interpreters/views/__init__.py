"""Views: the catalogue of known machines and systems, their tables, and their diagrams."""

from lifefold.interpreters.targets.catalogue import UnknownNameError, about, machine_named, machines, systems
from lifefold.interpreters.views.diagram import FORMATS, dot, draw, mermaid, scxml, xstate
from lifefold.interpreters.views.table import markdown, plain, table_rows

__all__ = [
    "FORMATS",
    "UnknownNameError",
    "about",
    "dot",
    "draw",
    "machine_named",
    "machines",
    "markdown",
    "mermaid",
    "plain",
    "scxml",
    "systems",
    "table_rows",
    "xstate",
]
