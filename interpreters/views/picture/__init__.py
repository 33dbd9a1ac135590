"""Pictures as SVG: of a machine, of a system, of a run, and of other boxes with arrows.

Graphviz computes the layout (the extra ``lifefold[notebook]`` brings it); the style is lifefold's. No text is measured
with a font, so a picture is the same on every machine.
"""

from lifefold.interpreters.views.picture.correspondence import correspondence
from lifefold.interpreters.views.picture.drawing import Arrow, Box, Drawing, Group, Tint
from lifefold.interpreters.views.picture.lanes import sequence_svg
from lifefold.interpreters.views.picture.layout import LayoutMissingError
from lifefold.interpreters.views.picture.lit import lit
from lifefold.interpreters.views.picture.overview import overview
from lifefold.interpreters.views.picture.statechart import statechart
from lifefold.interpreters.views.picture.svg import svg

__all__ = [
    "Arrow",
    "Box",
    "Drawing",
    "Group",
    "LayoutMissingError",
    "Tint",
    "correspondence",
    "lit",
    "overview",
    "sequence_svg",
    "statechart",
    "svg",
]
