"""A machine in the languages of other tools: Mermaid, Graphviz, SCXML, XState."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from lifefold.core.kernel import Machine
from lifefold.interpreters.targets.catalogue import UnknownNameError
from lifefold.interpreters.views.formats.dot import dot
from lifefold.interpreters.views.formats.mermaid import mermaid
from lifefold.interpreters.views.formats.scxml import scxml
from lifefold.interpreters.views.formats.xstate import xstate

__all__ = ["FORMATS", "dot", "draw", "mermaid", "scxml", "xstate"]

FORMATS: MappingProxyType[str, Callable[[Machine[Any]], str]] = MappingProxyType(
    {"mermaid": mermaid, "dot": dot, "scxml": scxml, "xstate": xstate}
)
"""The renderers by the name of their format; the first is the default."""


def draw(machine: Machine[Any], form: str = "mermaid") -> str:
    """Return the machine in a format, always the same text for the same machine. Raises ``UnknownNameError``."""
    if form not in FORMATS:
        raise UnknownNameError("format", form, tuple(FORMATS))
    return FORMATS[form](machine)
