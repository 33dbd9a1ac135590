"""The guarantee: two fleet files are told apart by what they mean, and the difference is told in their own words."""

import tomllib
from pathlib import Path

import pytest

from lifefold.interpreters.fleet_file import Fleet, describe_difference, load

FILE = """
[fleet]
name = "demo"
repository = "."
[[agents]]
name = "coder"
count = 2
command = ["sh", "{fleet_dir}/a.sh", "{prompt}"]
env = { TOKEN = "hunter2" }
session_timeout = "30m"
grace = "5s"
[[tasks]]
id = "T1"
prompt = "Write hello.txt"
[[tasks]]
id = "T2"
prompt = "Write more"
depends_on = ["T1"]
"""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    return tmp_path


def fleet(folder: Path, *changes: tuple[str, str], content: str = FILE) -> Fleet:
    for old, new in changes:
        assert old in content
        content = content.replace(old, new)
    (folder / "fleet.toml").write_text(content, encoding="utf-8")
    return load(folder / "fleet.toml")


def test_comments_order_of_keys_and_spelling_do_not_matter(folder: Path) -> None:
    other = """
        # the same
        tasks = [{ prompt = 'Write hello.txt', id = "T1", priority = 2 },
                 { depends_on = ["T1"], id = "T2", prompt = "Write more" }]
        [[agents]]
        command = ["sh", "{fleet_dir}/a.sh", "{prompt}"]
        grace = "5000ms"
        count = 2
        name = "coder"
        session_timeout = "1800s"
        env.TOKEN = "hunter2"
        [fleet]
        lease = "1m"
        repository = "./"
        name = "demo"
    """
    one, two = fleet(folder), fleet(folder, content=other)
    assert one.meaning == two.meaning
    assert describe_difference(one.meaning, two.meaning) == ()


def test_a_file_means_the_same_in_another_folder(folder: Path) -> None:
    (folder / "other").mkdir()
    assert fleet(folder).meaning == fleet(folder / "other").meaning


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        (
            'grace = "5s"',
            'grace = "10s"',
            ["agents.coder-1.grace: was 5s, is 10s", "agents.coder-2.grace: was 5s, is 10s"],
        ),
        ("count = 2", "count = 3", ["agents.coder-3: was added"]),
        ('repository = "."', "", ['fleet.repository: was ".", is absent']),
        ('name = "demo"', 'name = "other"', ["fleet.name: was demo, is other"]),
        ("hello.txt", "hello.md", ['tasks.T1.prompt: was "Write hello.txt", is "Write hello.md"']),
        (
            'depends_on = ["T1"]',
            "priority = 1",
            ['tasks.T2.depends_on: was ["T1"], is []', "tasks.T2.priority: was 2, is 1"],
        ),
        ('["sh", ', '["sh", "-e", ', [f"agents.coder-{n}.command: was {{}}, is {{}}" for n in (1, 2)]),
    ],
)
def test_a_difference_is_told_key_by_key(folder: Path, old: str, new: str, difference: list[str]) -> None:
    commands = '["sh", "{fleet_dir}/a.sh", "{prompt}"]', '["sh", "-e", "{fleet_dir}/a.sh", "{prompt}"]'
    one, two = fleet(folder), fleet(folder, (old, new))
    assert one.meaning != two.meaning
    expected = [line.format(*commands) if "{}" in line else line for line in difference]
    assert describe_difference(one.meaning, two.meaning) == tuple(expected)


def test_a_session_timeout_that_comes_or_goes_is_told(folder: Path) -> None:
    lines = describe_difference(fleet(folder).meaning, fleet(folder, ('session_timeout = "30m"', "")).meaning)
    assert lines[0] == "agents.coder-1.session_timeout: was 30m, is absent"


def test_environment_variables_are_no_part_of_the_meaning(folder: Path) -> None:
    """A new key needs no new log, and a digest of a value would let it be guessed."""
    head, more = "[fleet]\n", '[fleet]\nenv_pass = ["AWS_*"]\nredact = ["X"]\nenv = { X = "hunter4" }\n'
    one, two = fleet(folder), fleet(folder, ("hunter2", "hunter3"), (head, more))
    assert one.meaning == two.meaning
    assert "hunter" not in one.meaning
    assert "TOKEN" not in one.meaning


def test_the_order_of_tasks_is_part_of_the_meaning(folder: Path) -> None:
    third = '[[tasks]]\nid = "T3"\nprompt = "p"\n'
    last, first = (
        fleet(folder, content=FILE + third),
        fleet(folder, ('[[tasks]]\nid = "T1"', third + '[[tasks]]\nid = "T1"')),
    )
    assert describe_difference(last.meaning, first.meaning) == (
        'tasks: the order was ["T1", "T2", "T3"], is ["T3", "T1", "T2"]',
    )
    assert describe_difference(fleet(folder).meaning, first.meaning) == ("tasks.T3: was added",)


def test_of_long_texts_the_place_is_told_where_they_part(folder: Path) -> None:
    one, two = (fleet(folder, ("Write more", "word " * 50 + end)).meaning for end in ("first", "second"))
    (line,) = describe_difference(one, two)
    assert 'first", is "…' in line
    assert line.endswith('second"')


def test_of_long_values_of_any_kind_the_place_is_told_where_they_part(folder: Path) -> None:
    """Commands that are longer than a line differ in what is shown of them."""
    before, head = '["sh", ', '["sh", ' + '"-o", "a-long-option", ' * 6
    one, two = (fleet(folder, (before, f'{head}"{end}", ')).meaning for end in ("first", "second"))
    for line in describe_difference(one, two):
        was, _, now = line.partition(", is ")
        assert "first" in was
        assert "second" in now


def test_this_files_text_is_toml() -> None:
    assert tomllib.loads(FILE)["fleet"]["name"] == "demo"
