"""Written test files: each is known by its command, each test has a name of its own, and any text is a docstring."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.campaign.findings import SeedFinding
from lifefold.interpreters.report.emitted_file import docstring, head, is_written_by, title
from lifefold.interpreters.simulate import Limits, simulate
from lifefold.interpreters.targets.simulation_targets import named

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS)
def test_any_text_is_a_docstring_that_reads_as_the_text(text: str) -> None:
    assert ast.literal_eval(docstring(text)) == text


@pytest.mark.parametrize(
    "text", ['ends with "', '"', '""', '"""', 'a""""', 'has """ inside', "ends with \\", "\r", "\0"]
)
def test_quotes_and_control_characters_do_not_end_a_docstring(text: str) -> None:
    assert ast.literal_eval(docstring(text)) == text


def test_each_test_of_a_file_has_a_name_of_its_own() -> None:
    taken: list[str] = []
    for prop in ("it ends.", "it ends!", "it ends"):
        taken.append(title("a:door", prop, taken))
    assert taken == ["test_a_door_it_ends", "test_a_door_it_ends_2", "test_a_door_it_ends_3"]


def test_a_file_is_known_by_the_command_that_wrote_it() -> None:
    text = f'{head("check")}: traces."""'.encode()
    assert is_written_by("check", text)
    assert not is_written_by("simulate", text)
    assert not is_written_by("check", b"import pytest")


def test_a_finding_of_a_simulation_has_a_run_in_which_a_property_breaks() -> None:
    target = named("turn")
    run = simulate(target.subject)
    with pytest.raises(ValueError, match="turn: no property breaks in the run of seed 3"):
        SeedFinding(target, 3, run, Limits())
