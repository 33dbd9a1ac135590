"""What a fleet file may say of notifiers: whom they tell what, and how."""

import json
from pathlib import Path

import pytest

from lifefold.effects import NotificationKind
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_file.meaning import describe_difference
from lifefold.interpreters.fleet_file.notify import KINDS

FILE = """
[fleet]
name = "demo"
{fleet}

[[agents]]
name = "coder"
command = ["sh"]

[[tasks]]
id = "T1"
prompt = "do it"

{notify}
"""
RUN = '[[notify]]\non = "closed"\nrun = ["sh", "-c", "echo {text}"]\n'
URL = '[[notify]]\non = "closed"\nurl = "http://127.0.0.1:1/hook"\n'


def loaded(folder: Path, notify: str = "", fleet: str = "") -> Fleet:
    """Return a fleet with these notifiers."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(notify=notify, fleet=fleet))
    return load(file)


def test_a_notifier_has_a_name_its_kinds_and_a_command_or_an_address(tmp_path: Path) -> None:
    """Without a name it has its place; the hooks of the fleet come last."""
    first, second, hook = loaded(tmp_path, RUN + URL, 'on_failed = ["sh"]').notify
    assert (first.name, first.kinds, first.run) == ("notify-1", (NotificationKind.CLOSED,), ("sh", "-c", "echo {text}"))
    assert (second.name, second.url, second.timeout_ms, second.retries) == (
        "notify-2",
        "http://127.0.0.1:1/hook",
        10_000,
        5,
    )
    assert (hook.name, hook.kinds, hook.run) == ("on_failed", (NotificationKind.FAILED,), ("sh",))


def test_the_core_gets_the_names_the_kinds_and_the_retries(tmp_path: Path) -> None:
    """No command and no address is in a log."""
    fleet = loaded(tmp_path, URL + "retries = 2\nheaders = { Authorization = 'Bearer secret' }")
    assert [(each.name, each.kinds, each.retries) for each in fleet.plan.notify] == [
        ("notify-1", (NotificationKind.CLOSED,), 2)
    ]
    assert json.loads(fleet.meaning)["notify"] == {"notify-1": {"on": ["closed"], "place": 1, "retries": 2}}


def test_a_changed_command_changes_no_meaning_and_a_changed_kind_does(tmp_path: Path) -> None:
    """A log keeps what is told; how it is told may change at any time."""
    first = loaded(tmp_path, RUN).meaning
    assert loaded(tmp_path, URL + 'timeout = "1s"').meaning == first
    other = loaded(tmp_path, RUN.replace('"closed"', '["closed", "over"]')).meaning
    assert describe_difference(first, other) == ('notify.notify-1.on: was ["closed"], is ["closed", "over"]',)
    assert describe_difference(loaded(tmp_path).meaning, first) == ("notify: was added",)


def test_a_program_beside_the_fleet_file_is_found(tmp_path: Path) -> None:
    """A path is relative to the folder of the file."""
    program = tmp_path / "tell"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    (found,) = loaded(tmp_path, RUN.replace('"sh", "-c"', '"./tell", "{fleet_dir}/x"')).notify
    assert found.run == (f"{tmp_path}/./tell", f"{tmp_path}/x", "echo {text}")


def test_every_kind_has_its_words() -> None:
    """The list of the documentation is complete."""
    assert set(KINDS) == set(NotificationKind)


@pytest.mark.parametrize(
    ("notify", "what"),
    [
        (RUN.replace("closed", "aproval"), r'notify\[1\]\.on: found "aproval".*did you mean "approval"\?'),
        (RUN.replace('on = "closed"\n', ""), r"notify\[1\]: on is missing"),
        ('[[notify]]\non = "closed"\n', r"notify\[1\]: run or url is missing"),
        (RUN + 'url = "http://a/"\n', r"notify\[1\]\.url: there is a command, too"),
        (RUN + 'headers = { A = "b" }\n', r"notify\[1\]\.headers: there is a command, too"),
        (RUN.replace("{text}", "{tex}"), r'notify\[1\]\.run\[3\]: found "\{tex\}"; accepted: \{kind\}'),
        (RUN.replace("{text}", "{"), r'notify\[1\]\.run\[3\]: found "\{"'),
        (RUN.replace('"sh"', '"no-such-program"'), r'run\[1\]: the program "no-such-program" is not there'),
        (URL.replace("http://127.0.0.1:1/hook", "ftp://a/"), r'url: found "ftp://a/"; accepted: an address'),
        (URL.replace("http://127.0.0.1:1/hook", "http://a:x/"), r"url: found"),
        (URL.replace("http://127.0.0.1:1/hook", "http://a/ b"), r"url: found"),
        (URL.replace('"http://127.0.0.1:1/hook"', "1"), r"url: found 1"),
        (URL + 'timeout = "0s"\n', r'timeout: found "0s"; accepted: '),
        (URL + "headers = 1\n", r"headers: found 1, an integer; accepted: a table of texts"),
        (URL + 'headers = { "a b" = "c" }\n', r'headers.a b: found "a b"; accepted: the name of a header'),
        (URL + 'headers = { A = "\\n" }\n', r"headers.A.*ASCII characters on one line"),
        (URL + "retries = 21\n", r"retries: found 21, an integer; accepted: an integer from 0 to 20"),
        (URL + 'name = "on_closed"\n', r"name: found \"on_closed\", a key of \[fleet\]"),
        (URL + 'name = "a"\n' + RUN + 'name = "A"\n', r'"A" is given twice'),
        (URL + "colour = 1\n", r"unknown key"),
    ],
)
def test_what_a_notifier_cannot_be_is_an_error_with_its_place(tmp_path: Path, notify: str, what: str) -> None:
    """Each error names the key and what is accepted."""
    with pytest.raises(FleetFileError, match=what):
        loaded(tmp_path, notify)


def test_a_hook_without_its_program_is_an_error(tmp_path: Path) -> None:
    """As in a table."""
    with pytest.raises(FleetFileError, match=r"fleet\.on_closed\[1\]: the program \"no-such-program\" is not there"):
        loaded(tmp_path, "", 'on_closed = ["no-such-program"]')
