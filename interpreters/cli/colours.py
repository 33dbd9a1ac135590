"""Colours of lines: red is a failure, yellow waits for an operator, green is done. Elsewhere than on a terminal: none.

The colours are readable on light and on dark backgrounds. A terminal of sixteen colours has its own shades.
"""

import os
from typing import Final

from lifefold.interpreters.explain.chronicle_words import Mood

OF_MOODS: Final = {Mood.FAILED: 160, Mood.WAITS: 130, Mood.DONE: 28}
"""The colours of the 256 that terminals share. Each has a contrast of at least 3.5 to black and to white."""

_OF_SIXTEEN: Final = {Mood.FAILED: 31, Mood.WAITS: 33, Mood.DONE: 32}


def painted(text: str, mood: Mood, *, colours: bool) -> str:
    """Return a text in the colour of its mood, if there are ``colours``."""
    if not colours or mood not in OF_MOODS:
        return text
    code = f"38;5;{OF_MOODS[mood]}" if _has_many() else str(_OF_SIXTEEN[mood])
    return f"\x1b[{code}m{text}\x1b[0m"


def _has_many() -> bool:
    return "256" in os.environ.get("TERM", "") or bool(os.environ.get("COLORTERM"))


def style_of(mood: Mood) -> str:
    """Return the style of a mood in a picture that ``rich`` draws, which leaves colours out where there are none."""
    return f"color({OF_MOODS[mood]})" if mood in OF_MOODS else ""
