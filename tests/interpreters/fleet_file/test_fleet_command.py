"""The guarantee: a session gets the arguments that its fleet file says, and a prompt is never taken for more."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.fleet_file import expand
from lifefold.interpreters.fleet_file.command import literal, parse_command, settled_command

SESSION = {"prompt": "do it", "prompt_file": "/p", "task": "T1", "worktree": "/w"}


@pytest.mark.parametrize(
    ("argument", "expanded"),
    [
        ("{prompt}", "do it"),
        ("--file={prompt_file}", "--file=/p"),
        ("{worktree}/{task}", "/w/T1"),
        ("{{prompt}}", "{prompt}"),
        ('{{"task": "{task}"}}', '{"task": "T1"}'),
        ("{{{task}}}", "{T1}"),
        ("$HOME `x` 'y'", "$HOME `x` 'y'"),
    ],
)
def test_a_placeholder_stands_for_its_value_and_double_braces_for_braces(argument: str, expanded: str) -> None:
    assert expand(["agent", argument], **SESSION) == ["agent", expanded]


@given(st.text())
def test_a_prompt_arrives_as_it_is(prompt: str) -> None:
    assert expand(["a", "{prompt}", "x{prompt}"], **SESSION | {"prompt": prompt}) == ["a", prompt, f"x{prompt}"]


@given(st.text())
def test_a_literal_stands_for_itself(text: str) -> None:
    assert expand([literal(text)], **SESSION) == [text]


def test_an_unknown_placeholder_is_an_error_even_here() -> None:
    with pytest.raises(KeyError):
        expand(["{promt}"], **SESSION)


def test_the_folder_of_the_fleet_file_is_put_in_whatever_it_is_called() -> None:
    folder = Path("/a {task} {{b")
    command = settled_command(parse_command(["./run", "{fleet_dir}/agent.py", "{task}", "{{}}"]), folder)
    assert expand(command, **SESSION) == [f"{folder}/./run", f"{folder}/agent.py", "T1", "{}"]
