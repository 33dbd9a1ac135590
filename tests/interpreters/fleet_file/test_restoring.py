"""The former text of a changed part is printed in full, and means the same as before when it is put back."""

import json
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from lifefold.core.fleet import Caps, TaskPlan
from lifefold.interpreters.fleet_file import describe_difference, former_text, in_force, load
from lifefold.interpreters.fleet_file.values import LONGEST_SHOWN

LONG: Final = 'a text of more than one line\nwith "quotes", a \\, a tab\t, an é, and a \x7f; ' + "x" * LONGEST_SHOWN
BEFORE: Final[dict[str, Any]] = {
    "fleet": {"name": "f", "budget": {"sessions": 3}, "approve_plan": True},
    "agents": {"ann": {"roles": ["a", "b"], "grace": "5s"}},
    "services": {"web": {"command": ["serve"]}},
    "tasks": {"T1": {"prompt": LONG, "verify": [["test", "-s", "x"]], "depends_on": [], "role": None, "priority": 2}},
    "order": {"agents": ["ann"], "tasks": ["T1"]},
}


def meaning(**changed: Any) -> str:
    """Return the meaning of the file before, with some parts changed; None removes one."""
    parts = {kind: dict(table) for kind, table in BEFORE.items()}
    for place, value in changed.items():
        kind, *names = place.split("__")
        table = parts[kind]
        for name in names[:-1]:
            table[name] = dict(table[name])
            table = table[name]
        if value is None:
            del table[names[-1]]
        else:
            table[names[-1]] = value
    return json.dumps(parts)


def test_a_removed_task_is_printed_as_a_whole_and_without_what_it_does_not_say() -> None:
    """The lines are TOML, and mean what the task meant."""
    header, *lines = former_text(meaning(), meaning(tasks__T1=None), "tasks.T1")
    assert header == "[[tasks]]"
    assert tomllib.loads("\n".join(lines)) == {
        "id": "T1", "prompt": LONG, "verify": [["test", "-s", "x"]], "priority": 2,
    }  # fmt: skip


PARTS: Final[dict[str, tuple[dict[str, Any], str, dict[str, Any]]]] = {
    "tasks.T1": ({"tasks__T1__prompt": "short"}, '[[tasks]] id = "T1"', {"prompt": LONG}),
    "tasks.T1.priority": ({"tasks__T1__priority": 1, "tasks__T1__prompt": ""}, '[[tasks]] id = "T1"', {"priority": 2}),
    "agents.ann.roles": ({"agents__ann__roles": []}, '[[agents]] name = "ann"', {"roles": ["a", "b"]}),
    "agents.web": ({"services__web__command": ["other"]}, '[[agents]] name = "web"', {"command": ["serve"]}),
    "fleet.budget": ({"fleet__budget": {"sessions": 9}}, "[fleet]", {"budget": {"sessions": 3}}),
    "fleet.approve_plan": ({"fleet__approve_plan": None}, "[fleet]", {"approve_plan": True}),
}


@pytest.mark.parametrize("what", PARTS)
def test_a_changed_key_is_printed_with_its_table(what: str) -> None:
    """Only the keys of the part that differ."""
    changed, table, expected = PARTS[what]
    (line,) = former_text(meaning(), meaning(**changed), what)
    place, _, text = line.partition(":  ")
    assert (place, tomllib.loads(text)) == (table, expected)


ALLOW: Final = {"tool": "Bash", "matches": "make*", "answer": "allow"}
DENY: Final = {"tool": "WebFetch", "answer": "deny"}
TERMS: Final = '[fleet.questions]:  timeout = "30m"'
TABLES: Final = (
    "[[answers]]", 'tool = "Bash"', 'matches = "make*"', 'answer = "allow"',
    "[[answers]]", 'tool = "WebFetch"', 'answer = "deny"',
)  # fmt: skip


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ({"answers": [ALLOW, DENY]}, {"answers": [ALLOW]}, TABLES),
        ({"answers": [ALLOW, DENY]}, None, TABLES),
        ({"timeout": "30m", "answers": [ALLOW, DENY]}, None, (TERMS, *TABLES)),
        ({"timeout": "30m"}, {"timeout": "1m"}, (TERMS,)),
        ({}, {"timeout": "1m"}, ("[fleet.questions]:  without timeout",)),
        ({}, {"answers": [DENY]}, ("without [[answers]]",)),
        ({}, None, ("[fleet.questions]",)),
        (None, {"answers": [DENY]}, ("without [fleet.questions] and [[answers]]",)),
    ],
)
def test_standing_answers_are_printed_as_the_tables_of_a_file(was: object, now: object, said: tuple[str, ...]) -> None:
    """All of them, since their order counts; the terms have a table of their own."""
    old, new = (json.dumps(BEFORE | {"fleet": {} if of is None else {"questions": of}}) for of in (was, now))
    assert former_text(old, new, "fleet.questions") == said


def test_a_key_that_was_not_there_is_to_be_removed() -> None:
    """There is no text to put back."""
    said = former_text(meaning(), meaning(tasks__T1__files=["a"]), "tasks.T1.files")
    assert said == ('[[tasks]] id = "T1":  without files',)


@pytest.mark.parametrize("what", ["tasks.T2", "agents.bob.budget", "the plan"])
def test_a_part_that_was_not_there_has_no_former_text(what: str) -> None:
    """It was added, or is no part of the file."""
    assert former_text(meaning(), meaning(tasks__T2={}, agents__bob={}), what) == ()


DOTTED: Final = {"v1": {"prompt": "a"}, "v1.2": {"prompt": "b"}, "v1.2.3": {"prompt": "c"}}


def test_the_id_of_a_task_may_have_dots_and_begin_with_the_id_of_another_one() -> None:
    changed = DOTTED | {"v1.2": {"prompt": "z"}, "w.1": {"prompt": "w"}}
    old, new = (json.dumps(BEFORE | {"tasks": tasks}) for tasks in (DOTTED, changed))
    assert describe_difference(old, new) == ('tasks."v1.2".prompt: was b, is z', 'tasks."w.1": was added')
    said = ('[[tasks]] id = "v1.2":  prompt = "b"',)
    assert former_text(old, new, 'tasks."v1.2"') == former_text(old, new, 'tasks."v1.2".prompt') == said
    assert former_text(old, new, 'tasks."w.1"') == ()


FILE: Final = """
[fleet]
name = "f"
repository = "."
budget = { sessions = 3, usd = 5, session_usd = 1 }

[[agents]]
name = "ann"
command = ["sh", "-c", "true"]
budget = { sessions = 2 }

[[tasks]]
id = "T1"
prompt = "do it"
"""


def test_the_meaning_in_force_has_what_commands_have_changed(tmp_path: Path) -> None:
    """Raised caps and added tasks; the place of an added task in the file is no difference of order."""
    source = tmp_path / "fleet.toml"
    source.write_text(FILE)
    begun = load(source).meaning
    here = in_force(begun, [TaskPlan("T0", "added")], {"fleet": Caps(sessions=4), "agents.ann": Caps(sessions=3)})
    source.write_text(FILE.replace("sessions = 3", "sessions = 9").replace("sessions = 2", "sessions = 3"))
    now = source.read_text().replace("[[tasks]]", '[[tasks]]\nid = "T0"\nprompt = "added"\n\n[[tasks]]')
    source.write_text(now)
    assert describe_difference(here, load(source).meaning) == ("fleet.budget.sessions: was 4, is 9",)
    assert in_force(begun, (), {}) == begun
