"""Words that belong together on a command line: an option, and a value that begins with a hyphen."""

import re
from collections.abc import Sequence
from typing import Final

_BEFORE_NOW: Final = frozenset({"--at", "--since"})


def as_options(typed: Sequence[str]) -> list[str]:
    """Return what was typed with ``--at -5m`` as one word, because a word with a hyphen looks like an option."""
    joined: list[str] = []
    for word in typed:
        if joined and joined[-1] in _BEFORE_NOW and re.match(r"-\d", word):
            joined[-1] = f"{joined[-1]}={word}"
        else:
            joined.append(word)
    return joined
