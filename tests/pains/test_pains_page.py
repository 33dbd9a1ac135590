"""The page about bugs of other software is true: each test and each property that it names exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lifefold.core.kernel import alone
from lifefold.interpreters import views
from lifefold.interpreters.check import Fault
from lifefold.interpreters.search.configuration import Judge
from mutated import shipped

TESTS: Final = Path(__file__).parent.parent
PAGE: Final = (TESTS.parent / "docs" / "pains.md").read_text()
WITH_MUTANTS: Final = PAGE.partition("## What no rule decides")[0]
THREAD: Final = re.compile(r"([\w.-]+/[\w.-]+)?#(\d+)")


def threads(text: str) -> set[str]:
    """Return the threads that a text names; a number alone is one of the repository before it."""
    found: set[str] = set()
    repository = ""
    for named, number in THREAD.findall(text):
        repository = named or repository
        found.add(f"{repository}#{number}")
    return found


def guarantees(path: Path) -> dict[str, str]:
    """Return the docstrings of the tests in a file, by name."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    every = [each for each in ast.parse(path.read_text()).body if isinstance(each, functions)]
    return {each.name: ast.get_docstring(each) or "" for each in every if each.name.startswith("test_")}


def rows(text: str) -> Iterator[tuple[set[str], list[str], list[tuple[str, str]]]]:
    """Yield, of each line of a table, its threads, its cells, and the tests that it names."""
    for line in text.splitlines():
        if line.startswith("| ["):
            cells = [each.strip() for each in line.strip("|").split(" | ")]
            yield (
                threads(re.sub(r"\(http[^)]*\)", "", cells[0])),
                cells,
                re.findall(r"`([\w/]+\.py)::(test_\w+)`", line),
            )


def properties() -> set[str]:
    """Return the names of all properties of shipped lifecycles and systems."""
    systems = [*views.systems().values(), *(alone(shipped(name))[0] for name in views.machines())]
    return {each.property.name for system in systems for each in Judge(system).properties} | set(Fault)


def test_every_test_that_the_page_names_is_there() -> None:
    """At least one in each line."""
    named = [(path, name) for _, _, tests in rows(PAGE) for path, name in tests]
    assert [(path, name) for path, name in named if name not in guarantees(TESTS / path)] == []
    assert [cells[0] for _, cells, tests in rows(PAGE) if not tests] == []


def test_every_bug_on_the_page_has_a_mutant_in_a_test_that_names_the_thread() -> None:
    """And every such test is on the page."""
    on_the_page = {name: found for found, _, tests in rows(WITH_MUTANTS) for _, name in tests}
    in_tests = {
        name: threads(docstring.partition(": ")[0])
        for path in sorted(Path(__file__).parent.glob("*.py"))
        for name, docstring in guarantees(path).items()
        if path != Path(__file__)
    }
    assert on_the_page == in_tests


def test_every_property_that_the_page_names_is_made() -> None:
    """Of the lifecycle that stands beside it, or of the runner."""
    made = properties()
    assert [cells[2] for _, cells, _ in rows(WITH_MUTANTS) if cells[2].rpartition(" (")[0] not in made] == []


def test_every_thread_is_linked_to_where_it_is() -> None:
    """And nothing else is linked."""
    linked = re.findall(r"\[([^]]*)\]\(([^)]*)\)", PAGE)
    addresses = [
        re.sub(r"^https://github.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)$", r"\1#\2", at) for _, at in linked
    ]
    assert [thread for thread, _ in linked] == addresses
