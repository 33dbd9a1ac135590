"""What a fleet file may say of questions to operators, and of standing answers."""

from pathlib import Path

import pytest

from lifefold.core.fleet.worker.question import Terms
from lifefold.core.policy.standing import StandingAnswer
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, describe_difference, load

FILE = """
[fleet]
name = "f"
{table}

[[agents]]
name = "a"
command = ["sh", "-c", "true", "{{prompt}}"]
session_timeout = "1m"

[[tasks]]
id = "T1"
prompt = "do it"
"""

EMPTY = "[fleet.questions]"
ANSWERS = """
[[answers]]
tool = "Bash"
matches = "pytest*"
answer = "allow"

[[answers]]
tool = "*"
answer = "deny"
"""
BOTH = (StandingAnswer("Bash", "pytest*", allows=True), StandingAnswer("*"))


def loaded(folder: Path, table: str) -> Fleet:
    """Return a fleet with this table."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(table=table))
    return load(file)


@pytest.mark.parametrize(
    ("table", "means"),
    [
        ("", None),
        (EMPTY, Terms()),
        (f'{EMPTY}\ntimeout = "30m"', Terms(1_800_000)),
        (ANSWERS, Terms(0, BOTH)),
        (f'{EMPTY}\ntimeout = "1s"\n{ANSWERS}', Terms(1_000, BOTH)),
    ],
    ids=["nothing", "a table", "a time", "answers", "both"],
)
def test_agents_may_ask_only_if_the_file_says_so(tmp_path: Path, table: str, means: Terms | None) -> None:
    """Either table turns questions on, for every agent."""
    fleet = loaded(tmp_path, table)
    assert fleet.questions == fleet.plan.questions == means


@pytest.mark.parametrize(
    ("table", "place"),
    [
        (f"{EMPTY}\ntimeout = 5", r"fleet\.questions\.timeout"),
        (f'{EMPTY}\nafter = "5s"', r"fleet\.questions\.after"),
        ('[[answers]]\ntool = "Bash"', r"answers\[1\].*answer is missing"),
        ('[[answers]]\nanswer = "deny"', r"answers\[1\].*tool is missing"),
        ('[[answers]]\ntool = "x"\nanswer = "ask"', r"answers\[1\]\.answer"),
    ],
)
def test_a_mistake_is_named_by_its_place(tmp_path: Path, table: str, place: str) -> None:
    """With the key, and what is accepted."""
    with pytest.raises(FleetFileError, match=place):
        loaded(tmp_path, table)


def test_the_order_of_answers_is_a_part_of_the_meaning(tmp_path: Path) -> None:
    """The first that matches decides."""
    one, two = (f'[[answers]]\ntool = "{name}"\nanswer = "deny"\n' for name in "ab")
    first, second = loaded(tmp_path, one + two), loaded(tmp_path, two + one)
    assert first.meaning != second.meaning
    (line,) = describe_difference(first.meaning, second.meaning)
    assert line.startswith("fleet.questions.answers: was ")
    with_time = loaded(tmp_path, f'{EMPTY}\ntimeout = "1s"')
    assert describe_difference(loaded(tmp_path, EMPTY).meaning, with_time.meaning)
    assert loaded(tmp_path, "").meaning != loaded(tmp_path, EMPTY).meaning
