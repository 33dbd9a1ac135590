"""The forms of a drawing: what a front end may show although it does not trust the notebook."""

import sys
from base64 import b64decode
from io import BytesIO

import pytest
from PIL import Image

from embedded_drawings import drawings
from lifefold.interpreters.notebook.image import COLOURS, PNG, SVG, embedded, image

DRAWN = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="20" height="20" fill="#f00"/></svg>'
)


def test_a_drawing_is_shown_as_svg_and_as_the_same_pixels() -> None:
    bundle = image(DRAWN)
    assert bundle[SVG] == DRAWN
    with Image.open(BytesIO(b64decode(bundle[PNG]))) as drawn:
        assert drawn.size == (40, 20)
        assert len(drawn.getcolors(COLOURS) or ()) <= COLOURS
        left = drawn.convert("RGB").getpixel((5, 10))
    assert left == (255, 0, 0)


@pytest.mark.parametrize("library", ["vl_convert", "PIL.Image"])
def test_without_a_library_for_pixels_there_is_the_svg(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    assert image(DRAWN) == {SVG: DRAWN}


def test_a_drawing_within_html_is_an_image_with_a_description() -> None:
    shown = embedded(DRAWN, 'a "red" square')
    assert drawings(shown) == [DRAWN]
    assert 'alt="a &quot;red&quot; square"' in shown
    assert "<svg" not in shown
