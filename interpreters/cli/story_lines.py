"""The story of a fleet as lines for a terminal of any width: time, what it is about, the sentence, its operator."""

from textwrap import wrap
from typing import Final

from lifefold.interpreters.cli.wording import as_typed, cut_in_the_middle, moment
from lifefold.interpreters.explain.chronicle import News
from lifefold.interpreters.processes.command import plain

NAME_CHARACTERS: Final = 14
"""The width of the column of names; a longer name moves its sentence to the right."""

NARROWEST: Final = 40
"""The fewest characters of a line: on a narrower terminal the terminal itself breaks it."""


def story_lines(news: News, width: int | None) -> list[str]:
    """Return what has happened as lines of at most ``width`` characters, cut between words."""
    by = f" (by {news.by})" if news.by else ""
    head = f"{moment(news.at_ms)}  "
    name = news.about if width is None else cut_in_the_middle(news.about, max(NAME_CHARACTERS, width // 4))
    line = plain(f"{head}{name:<{NAME_CHARACTERS}}  {as_typed(news.said)}{by}".encode("utf-8", "surrogateescape"))
    if width is None or len(line) <= width:
        return [line]
    indent = " " * (len(head) + (NAME_CHARACTERS + 2 if width >= 2 * NARROWEST else 2))
    return wrap(line, max(width, NARROWEST), subsequent_indent=indent, break_on_hyphens=False)


def short_line(news: News) -> str:
    """Return what has happened in one line, for a place where its end may be left out."""
    by = f" (by {news.by})" if news.by else ""
    return plain(f"{moment(news.at_ms)} {news.about} {news.said}{by}".encode("utf-8", "surrogateescape"))
