"""A chart as it is shown: a picture that stands alone, and the same in words."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import msgspec


class Figure(msgspec.Struct, frozen=True):
    """A chart: its Vega-Lite specification, which other tools can read, and its contents in words."""

    spec: Mapping[str, Any]
    words: str

    def svg(self) -> str:
        """Return the picture, without scripts and network. Raises ``ImportError``.

        That is if vl-convert is not installed. A page that draws the specification itself loads Vega from a network.
        """
        convert: Any = import_module("vl_convert")
        picture: str = convert.vegalite_to_svg(dict(self.spec), allowed_base_urls=[])
        return picture
