"""The page of a log: its story or its transitions, the latest first, chosen by task, agent and text; and a download."""

from collections.abc import Iterator
from typing import Final

import msgspec

from lifefold.interpreters.web.journal import Choice
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.structs import LogPage

MOST_LINES: Final = 200
"""The lines on one page."""


def log_page(view: View, choice: Choice, before: int = 0, most: int = MOST_LINES, *, is_all: bool = False) -> LogPage:
    """Return the last lines that fit, of the entries before a position; 0 stands for the moment of the view.

    They are the story, or with ``is_all`` the transitions. An entry is on one page as a whole.
    """
    journal, until = view.log.journal, view.moment.seq + 1
    before = min(before or until, until)
    is_all = is_all or bool(choice.machine)
    if is_all:
        lines = journal.chosen(choice, before=before, most=most)
        oldest = lines[0].seq if len(lines) == most else 0
        rest = [each for each in journal.between(oldest - 1, oldest) if choice.accepts(each)] if oldest else []
        lines = [*rest, *(each for each in lines if each.seq != oldest)]
        return LogPage(view.at(), is_all, (), tuple(lines)[::-1], oldest)
    story = journal.told(choice, before=before, most=most)
    oldest = story[0].seq if len(story) == most else 0
    if oldest:
        first = [each for each in journal.told(choice, before=oldest + 1, most=most) if each.seq == oldest]
        story = [*first, *(each for each in story if each.seq != oldest)]
    return LogPage(view.at(), is_all, tuple(story)[::-1], (), oldest)


def download(view: View, choice: Choice) -> Iterator[bytes]:
    """Yield every transition that fits as a line of JSON, the oldest first."""
    for line in view.log.journal.between(0, view.moment.seq):
        if choice.accepts(line):
            yield msgspec.json.encode(line) + b"\n"
