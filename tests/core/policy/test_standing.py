"""Standing answers: which permission the fleet file decides, and that no wildcard allows more than it shows."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.policy.standing import LOADED, StandingAnswer, first_match, matches, subject_of

ALLOW = StandingAnswer("Bash", "pytest*", allows=True)
DENY = StandingAnswer("Bash", "*rm *")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("*", "anything", True),
        ("pytest*", "pytest -q", True),
        ("pytest*", "python -m pytest", False),
        ("*pytest*", "python -m pytest -q", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("a*b*c", "aXbYbZc", True),
        ("a*b*c", "aXbYbZ", False),
        ("[ab]", "a", False),
        ("a.c", "abc", False),
    ],
)
def test_a_pattern_matches_a_whole_text(pattern: str, text: str, expected: bool) -> None:  # noqa: FBT001 - an expectation
    """Only ``*`` and ``?`` are special."""
    assert matches(pattern, text) is expected


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=12))
def test_a_pattern_means_what_the_same_regular_expression_means(pattern: str, text: str) -> None:
    """The matcher has no recursion, and agrees with one that has."""
    same = "".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in pattern)
    assert matches(pattern, text) == bool(re.fullmatch(same, text, re.DOTALL))


def test_the_first_entry_that_matches_decides() -> None:
    """Entries count from 1; 0 is none."""
    answers = (DENY, ALLOW, StandingAnswer("*"))
    assert first_match(answers, "Bash", "pytest -q") == 2
    assert first_match(answers, "Bash", "pytest && rm x") == 1
    assert first_match(answers, "Write", "x") == 3
    assert first_match((ALLOW,), "Write", "pytest") == 0
    assert first_match((), "Bash", "pytest") == 0


@pytest.mark.parametrize("loaded", sorted(LOADED))
def test_a_wildcard_allows_no_shell_operator(loaded: str) -> None:
    """The pattern itself may have one, and then means exactly that one."""
    assert first_match((ALLOW,), "Bash", f"pytest {loaded} rm") == 0
    assert first_match((StandingAnswer("Bash", f"a {loaded} b*", allows=True),), "Bash", f"a {loaded} bc") == 1
    assert first_match((StandingAnswer("Bash", "pytest*"),), "Bash", f"pytest {loaded} rm") == 1


def test_a_wildcard_allows_no_way_up() -> None:
    """A path beside the folder is asked for."""
    folder = (StandingAnswer("Write", "src/*", allows=True),)
    assert first_match(folder, "Write", "src/a.py") == 1
    assert first_match(folder, "Write", "src/../a.py") == 0


def test_a_cut_subject_is_allowed_by_no_pattern() -> None:
    """Its end is unknown. Without a pattern anything is allowed."""
    assert first_match((ALLOW,), "Bash", "pytest", is_cut=True) == 0
    assert first_match((StandingAnswer("Bash", "", allows=True),), "Bash", "pytest", is_cut=True) == 1
    assert first_match((StandingAnswer("Bash", "py*"),), "Bash", "pytest", is_cut=True) == 1


@given(st.text("ab;&.", max_size=10), st.text("ab;&.*", max_size=6))
def test_an_allowing_entry_allows_no_more_than_its_pattern(subject: str, pattern: str) -> None:
    """Whatever it allows, a denying entry with the same pattern would deny."""
    if pattern and first_match((StandingAnswer("t", pattern, allows=True),), "t", subject):
        assert first_match((StandingAnswer("t", pattern),), "t", subject)
        assert [each for each in subject if each in LOADED] == [each for each in pattern if each in LOADED]


def test_the_subject_of_a_tool_is_what_it_acts_on() -> None:
    """The most telling key of its input; empty if no key says so."""
    assert subject_of({"description": "tests", "command": "pytest"}) == "pytest"
    assert subject_of({"file_path": "a.py", "content": "x"}) == "a.py"
    assert subject_of({"command": "", "path": "b"}) == "b"
    assert subject_of({"command": 5}) == ""
