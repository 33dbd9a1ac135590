"""A drawing in the forms that a front end shows: as SVG, as PNG, and within HTML.

JupyterLab shows neither SVG nor inline drawings of a notebook that is not trusted, such as one that was just cloned. It
shows PNG and the images of HTML, which cannot run scripts.
"""

from base64 import b64encode
from html import escape
from importlib import import_module
from io import BytesIO
from typing import Any, Final

SVG: Final = "image/svg+xml"
PNG: Final = "image/png"
COLOURS: Final = 64
"""The colours of a PNG. With all shades of its text it takes six times the space."""


def image(svg: str) -> dict[str, str]:
    """Return a drawing as SVG, and as PNG in Base64 where vl-convert and Pillow are installed."""
    png = _png(svg)
    return {SVG: svg, PNG: b64encode(png).decode()} if png else {SVG: svg}


def embedded(svg: str, words: str) -> str:
    """Return a drawing as an image of HTML, with its description, which is also the text under the pointer."""
    source = f"data:{SVG};base64,{b64encode(svg.encode()).decode()}"
    return f'<img alt="{escape(words)}" title="{escape(words)}" src="{source}">'


def _png(svg: str) -> bytes:
    """Return the pixels of a drawing; empty where a library is missing."""
    try:
        convert: Any = import_module("vl_convert")
        pillow: Any = import_module("PIL.Image")
    except ImportError:
        return b""
    with pillow.open(BytesIO(convert.svg_to_png(svg))) as drawn, BytesIO() as file:
        drawn.convert("RGB").quantize(COLOURS).save(file, "PNG", optimize=True)
        return file.getvalue()
