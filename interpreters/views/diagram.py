"""A machine or a system in the languages of other tools (Mermaid, Graphviz, SCXML, XState), and as a picture in SVG."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, TypeVar

from lifefold.core.kernel import Machine, System
from lifefold.interpreters.targets.catalogue import UnknownNameError
from lifefold.interpreters.views.formats.dot import dot
from lifefold.interpreters.views.formats.drawn import digraph, flowchart
from lifefold.interpreters.views.formats.mermaid import mermaid
from lifefold.interpreters.views.formats.scxml import scxml
from lifefold.interpreters.views.formats.xstate import xstate
from lifefold.interpreters.views.picture import overview, statechart, svg

T = TypeVar("T")

__all__ = ["FORMATS", "SYSTEM_FORMATS", "dot", "draw", "mermaid", "scxml", "xstate"]

FORMATS: MappingProxyType[str, Callable[[Machine[Any]], str]] = MappingProxyType(
    {"mermaid": mermaid, "dot": dot, "svg": lambda machine: svg(statechart(machine)), "scxml": scxml, "xstate": xstate}
)
"""The renderers of machines by the name of their format; the first is the default."""

SYSTEM_FORMATS: MappingProxyType[str, Callable[[System], str]] = MappingProxyType(
    {
        "mermaid": lambda system: flowchart(overview(system)),
        "dot": lambda system: digraph(overview(system)),
        "svg": lambda system: svg(overview(system)),
    }
)
"""The renderers of systems: their machines, and the rules and messages between them."""


def draw(subject: Machine[Any] | System, form: str = "mermaid") -> str:
    """Return a machine or a system in a format, always the same text for the same subject.

    Raises ``UnknownNameError`` for an unknown format, and ``LayoutMissingError`` for ``svg`` without pygraphviz.
    """
    if isinstance(subject, Machine):
        return _renderer(FORMATS, form)(subject)
    return _renderer(SYSTEM_FORMATS, form)(subject)


def _renderer(formats: MappingProxyType[str, Callable[[T], str]], form: str) -> Callable[[T], str]:
    if form not in formats:
        raise UnknownNameError("format", form, tuple(formats))
    return formats[form]
