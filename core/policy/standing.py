"""Standing answers: permissions that the fleet file grants or denies, so that no operator is asked.

The first entry that matches decides. A pattern has ``*`` for any text and ``?`` for one character, and nothing else is
special. A wildcard of an allowing entry matches no shell operator and no ``..``: ``pytest*`` allows ``pytest -q`` and
not ``pytest; rm -rf build``. A denying entry has no such exception. A cut subject is never allowed, because its end is
unknown.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

LOADED: Final = frozenset(";&|`$<>()\n\r\\")
"""The characters that a wildcard of an allowing entry does not match."""

SUBJECTS: Final = ("command", "file_path", "path", "notebook_path", "url", "query", "pattern")
"""The keys of a tool's input that say what the tool acts on, the most telling first."""

_UP: Final = ".."


class StandingAnswer(msgspec.Struct, frozen=True):
    """One entry: the pattern of the tool, the pattern of the subject (empty for any), and whether it allows."""

    tool: str
    matches: str = ""
    allows: bool = False


def subject_of(given: dict[str, object]) -> str:
    """Return what a tool acts on, by its input: its command, path or address; empty if no key says so."""
    found = (given.get(key) for key in SUBJECTS)
    return next((each for each in found if isinstance(each, str) and each), "")


def first_match(answers: Sequence[StandingAnswer], tool: str, subject: str, *, is_cut: bool = False) -> int:
    """Return the number of the first entry that decides about a call of a tool, from 1; 0 if none does."""
    for number, each in enumerate(answers, 1):
        if matches(each.tool, tool) and _decides(each, subject, is_cut=is_cut):
            return number
    return 0


def _decides(answer: StandingAnswer, subject: str, *, is_cut: bool) -> bool:
    if not answer.matches:
        return True
    if answer.allows and (is_cut or not _is_harmless(answer.matches, subject)):
        return False
    return matches(answer.matches, subject)


def _is_harmless(pattern: str, subject: str) -> bool:
    """Tell whether every loaded character of a subject is in the pattern itself, so that no wildcard matches one."""
    loaded = [[each for each in text if each in LOADED] for text in (pattern, subject)]
    return loaded[0] == loaded[1] and pattern.count(_UP) == subject.count(_UP)


def matches(pattern: str, text: str) -> bool:
    """Tell whether a pattern matches a whole text, in time proportional to the product of their lengths at most."""
    at = star = 0
    after_star = -1
    for_text = 0
    while for_text < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, after_star = for_text, at + 1
            at += 1
        elif at < len(pattern) and pattern[at] in {"?", text[for_text]}:
            at, for_text = at + 1, for_text + 1
        elif after_star >= 0:
            star += 1
            at, for_text = after_star, star
        else:
            return False
    return not pattern[at:].strip("*")
