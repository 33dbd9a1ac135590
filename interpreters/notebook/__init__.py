"""Lifecycles in a notebook: after ``%load_ext lifefold.interpreters.notebook`` machines and reports show themselves.

The core knows nothing of pictures, so a machine has no method that draws it: the extension tells IPython how to show
the core's types. Everything has a text, too; pictures need the extra ``lifefold[notebook]`` and no network.
"""

from lifefold.interpreters.notebook.displays import BUNDLES, load_ipython_extension, unload_ipython_extension
from lifefold.interpreters.notebook.history import History, Stop
from lifefold.interpreters.notebook.space import Space, TooManyError, state_space
from lifefold.interpreters.notebook.way import Move, crossed, moves, way

__all__ = [
    "BUNDLES",
    "History",
    "Move",
    "Space",
    "Stop",
    "TooManyError",
    "crossed",
    "load_ipython_extension",
    "moves",
    "state_space",
    "unload_ipython_extension",
    "way",
]
