"""Pictures as SVG: of a machine, of a system, and of whatever else is boxes with arrows between them.

Where things stand is Graphviz's work (the extra ``lifefold[notebook]`` brings it); what they look like is ours. So a
picture has no text that Graphviz has measured: it is the same on every machine, whatever fonts there are.
"""

from lifefold.interpreters.views.picture.drawing import Arrow, Box, Drawing, Group, Tint
from lifefold.interpreters.views.picture.layout import LayoutMissingError
from lifefold.interpreters.views.picture.overview import overview
from lifefold.interpreters.views.picture.statechart import statechart
from lifefold.interpreters.views.picture.svg import svg

__all__ = ["Arrow", "Box", "Drawing", "Group", "LayoutMissingError", "Tint", "overview", "statechart", "svg"]
