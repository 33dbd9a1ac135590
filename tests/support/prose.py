"""Prose of pages: sentences without code, tables and pictures, and the words of a style that is not used here."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

BANNED: Final[dict[str, str]] = {
    r"promis\w+": "property",
    r"letters?": "operator message, message",
    r"purses?": "budget",
    r"who(so)?ever": "name the subject",
    r"nobody|somebody": "name the subject: no agent, an operator, another process",
    r"mended?|mends": "fix, correct",
    r"planted": "mutant",
    r"brought home|begun anew|made small": "merged, restarted, shrunk",
    r"doors": "intake",
    r"walked again|goes? (its|the) way again": "replay",
}
"""Words that the glossary replaces, as patterns, each with what is written instead."""

RELATIVE: Final = re.compile(r"\b(who|what|which|that)\b", re.IGNORECASE)
LONGEST_WORDS: Final = 30

_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"`[^`\n]+(?:\n[^`\n]+)?`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?:])[\"')*_]*\s+(?=[A-Z\"'(*_`\d])")


class Figures(NamedTuple):
    """How the prose of a page reads: its words, its mean sentence in words, relative words per 1,000 words."""

    words: int
    mean_sentence: float
    relatives_per_1000: float


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and the items of lists of a page in Markdown; code in them is one word."""
    text = _COMMENT.sub("", _FENCE.sub("\n\n", text))
    text = _LINK.sub(r"\1", _CODE.sub("CODE", text))
    for block in re.split(r"\n\s*\n", text):
        for item in re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", block):
            line = " ".join(item.split())
            if line and not line.startswith(("#", "|", ">", "<", "![")):
                yield re.sub(r"^(?:[-*]|\d+\.) ", "", line)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page, those of one word left out."""
    for paragraph in paragraphs(text):
        yield from (each for each in _END.split(paragraph) if len(each.split()) > 1)


def figures(pages: list[Path]) -> Figures:
    """Measure the prose of several pages together."""
    found = [each for page in pages for each in sentences(page.read_text())]
    words = sum(len(each.split()) for each in found)
    relatives = sum(len(RELATIVE.findall(each)) for each in found)
    return Figures(words, words / max(len(found), 1), 1000 * relatives / max(words, 1))


def banned(text: str) -> Iterator[tuple[str, str]]:
    """Yield the banned words in the prose of a page, each with what is written instead."""
    for paragraph in paragraphs(text):
        for pattern, instead in BANNED.items():
            yield from ((each[0], instead) for each in re.finditer(rf"\b({pattern})\b", paragraph, re.IGNORECASE))


def in_code(source: str) -> Iterator[str]:
    """Yield the prose of a Python file: docstrings, comments, and texts of more than two words."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string):
            yield token.string.lstrip("# ")
        elif token.type == tokenize.STRING:
            text = _FIELD.sub("CODE", token.string.strip("rbRBfF\"'"))
            if len(text.split()) > 2 and "from lifefold" not in text:
                yield re.sub(r"``[^`]*``", "CODE", text)


_DIRECTIVE = re.compile(r"#\s*(noqa|type:|pyright:|pragma|fmt:|!)")
_FIELD = re.compile(r"\{[^{}]*\}")
