"""Edits of one task in the text of a fleet file: the text stays as a person has written it, but for the edit."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.fleet_file.editing import EditError, edited
from lifefold.interpreters.fleet_file.files import write_text

TEXT = '''# my fleet
[fleet]
name = "x"

[[tasks]]
id = "a"  # the first
prompt = """
Hello
you"""  # friendly
verify = [["test", "-s", "a"]]

# about b
[[tasks]]
id = "b"
prompt_file = "b.md"

[tasks.budget]
usd = 5  # a cap
'''


def test_a_new_value_takes_the_place_of_the_old_one() -> None:
    """Its comment stays; a limit is found in its table."""
    assert edited(TEXT, "a", {"prompt": "short"}) == TEXT.replace('"""\nHello\nyou"""', '"short"')
    assert edited(TEXT, "b", {"budget.usd": 7}) == TEXT.replace("usd = 5", "usd = 7")


def test_a_new_key_follows_the_id_and_no_comment_moves() -> None:
    """The comment about the next task stays above that."""
    assert edited(TEXT, "a", {"priority": 1}) == TEXT.replace("# the first\n", "# the first\npriority = 1\n")


def test_a_prompt_replaces_the_file_of_a_prompt() -> None:
    """A text of several lines is written over several lines."""
    expected = TEXT.replace('prompt_file = "b.md"\n', "").replace('id = "b"\n', 'id = "b"\nprompt = """\none\ntwo"""\n')
    assert edited(TEXT, "b", {"prompt": "one\ntwo"}, ["prompt_file"]) == expected


def test_line_ends_stay_as_they_are() -> None:
    """An editor of another system has written them."""
    text = '[[tasks]]\r\nid = "a"\r\nprompt = "x"\r\n'
    assert edited(text, "a", {"priority": 1}) == '[[tasks]]\r\nid = "a"\r\npriority = 1\r\nprompt = "x"\r\n'


INTERRUPTED = '[[tasks]]\nid = "a"\nprompt = "x"\n[fleet]\nname = "f"\n[[tasks]]\nid = "b"\nprompt = "y"\n'


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [(INTERRUPTED, "a", "by hand"), ('tasks = [{ id = "a", prompt = "x" }]', "a", "by hand"), (TEXT, "c", "no task c")],
)
def test_what_cannot_be_edited_in_its_layout_is_left_alone(text: str, name: str, why: str) -> None:
    """The operator edits such a file by hand."""
    with pytest.raises(EditError, match=why):
        edited(text, name, {"priority": 1})


@given(prompt=st.text(min_size=1).filter(lambda text: "\r" not in text), priority=st.integers(1, 9))
def test_every_prompt_is_read_back_as_it_was_given_and_nothing_else_changes(prompt: str, priority: int) -> None:
    """Quotes, backslashes, empty lines and control characters among them."""
    after = tomllib.loads(edited(TEXT, "a", {"prompt": prompt, "priority": priority}))
    before = tomllib.loads(TEXT)
    before["tasks"][0] |= {"prompt": prompt, "priority": priority}
    assert after == before


def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    """Nothing is left beside it."""
    file, link = tmp_path / "real.toml", tmp_path / "fleet.toml"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_text(link, "new\r\n")
    assert (file.read_bytes(), file.stat().st_mode & 0o777, link.is_symlink()) == (b"new\r\n", 0o640, True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fleet.toml", "real.toml"]
