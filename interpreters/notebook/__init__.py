"""Lifecycles in a notebook: after ``%load_ext lifefold.interpreters.notebook`` machines and reports have displays.

The core has no pictures, so a machine has no method that draws it: the extension registers displays of the core's
types with IPython. Every display has a text, too; pictures need the extra ``lifefold[notebook]`` and no network.
"""

from lifefold.interpreters.notebook.displays import BUNDLES, load_ipython_extension, unload_ipython_extension
from lifefold.interpreters.notebook.draw import draw
from lifefold.interpreters.notebook.history import History, Stop
from lifefold.interpreters.notebook.play import Play
from lifefold.interpreters.notebook.space import Space, TooManyError, state_space
from lifefold.interpreters.notebook.way import Move, crossed, moves, way
from lifefold.interpreters.notebook.written_play import as_test

__all__ = [
    "BUNDLES",
    "History",
    "Move",
    "Play",
    "Space",
    "Stop",
    "TooManyError",
    "as_test",
    "crossed",
    "draw",
    "load_ipython_extension",
    "moves",
    "state_space",
    "unload_ipython_extension",
    "way",
]
