"""The drawings within HTML: each is an image whose address holds the SVG."""

import re
from base64 import b64decode
from typing import Final

_DRAWN: Final = re.compile(r'<img alt="[^"]+" title="[^"]+" src="data:image/svg\+xml;base64,([^"]+)">')


def drawings(html: str) -> list[str]:
    """Return the drawings of a piece of HTML as SVG, in order."""
    return [b64decode(found).decode() for found in _DRAWN.findall(html)]
