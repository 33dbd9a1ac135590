"""The page of a log: its transitions, the latest first, chosen by task, agent, machine and text; and a download."""

from collections.abc import Iterator
from typing import Final

import msgspec

from lifefold.interpreters.web.journal import Choice
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.structs import LogPage

MOST_LINES: Final = 200
"""The transitions on one page."""


def log_page(view: View, choice: Choice, before: int = 0, most: int = MOST_LINES) -> LogPage:
    """Return the last transitions that fit, of the entries before a position; 0 stands for the moment of the view."""
    until = view.moment.seq + 1
    lines = view.log.journal.chosen(choice, before=min(before or until, until), most=most)
    return LogPage(view.at(), tuple(lines)[::-1], lines[0].seq if len(lines) == most else 0)


def download(view: View, choice: Choice) -> Iterator[bytes]:
    """Yield every transition that fits as a line of JSON, the oldest first."""
    for line in view.log.journal.between(0, view.moment.seq):
        if choice.accepts(line):
            yield msgspec.json.encode(line) + b"\n"
