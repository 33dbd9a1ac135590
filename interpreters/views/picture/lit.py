"""The present state in a picture that is drawn already: the desk and the player mark it without another layout."""

import re
from html import escape

from lifefold.interpreters.views.picture.drawing import Tint
from lifefold.interpreters.views.picture.svg import COLOURS


def lit(svg: str, key: str) -> str:
    """Return a picture in which the box of this key has the look of the present state, and the class ``lit``.

    A picture without such a box stays as it is.
    """
    head = f'<g class="box" data-key="{escape(key)}">'
    before, found, after = svg.partition(head)
    if not found:
        return svg
    look = COLOURS[Tint.HERE]
    ink = f'fill="{look.fill}" stroke="{look.line}" stroke-width="{look.width}"'
    shape = re.sub(r'fill="[^"]*" stroke="[^"]*" stroke-width="[^"]*"', ink, after, count=1)
    return f"{before}{head.replace('box', 'box lit', 1)}{shape}"
