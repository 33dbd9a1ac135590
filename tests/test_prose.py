"""Pages and code use the words of the glossary, in short sentences."""

from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from prose import LONGEST_WORDS, banned, figures, in_code, sentences

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted(chain.from_iterable((ROOT / part).rglob("*.py") for part in ("core", "effects", "interpreters")))
MEAN_WORDS = 18
RELATIVES_PER_1000 = 25


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def prose_of(source: Path) -> tuple[str, ...]:
    """Return the prose of a source file, which two tests read."""
    return tuple(in_code(source.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_has_no_word_that_the_glossary_replaces(page: Path) -> None:
    assert sorted(set(banned(page.read_text()))) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_sentence_of_a_page_is_long(page: Path) -> None:
    assert [each for each in sentences(page.read_text()) if len(each.split()) > LONGEST_WORDS] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_has_the_marks_of_an_unfinished_merge(page: Path) -> None:
    marks = ("<" * 7, ">" * 7)
    assert [line for line in page.read_text().splitlines() if line.startswith(marks)] == []


def test_the_pages_read_easily_as_a_whole() -> None:
    """The mean sentence is short, and relative clauses are rare."""
    found = figures(PAGES)
    assert found.mean_sentence <= MEAN_WORDS
    assert found.relatives_per_1000 <= RELATIVES_PER_1000


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_docstring_and_no_message_has_a_word_that_the_glossary_replaces(path: Path) -> None:
    found = {word for text in prose_of(path) for word in banned(text)}
    assert sorted(found) == []


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_sentence_in_code_is_long(path: Path) -> None:
    assert [each for text in prose_of(path) for each in sentences(text) if len(each.split()) > LONGEST_WORDS] == []
