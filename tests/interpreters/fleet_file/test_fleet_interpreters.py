"""The interpreters of a fleet file: their order, their effects, and their part of the meaning."""

from pathlib import Path

import pytest

from lifefold.interpreters.fleet_file import Fleet, FleetFileError, describe_difference, load

FLEET = """
[fleet]
name = "demo"

[[agents]]
name = "coder"
command = ["true", "{prompt}"]
session_timeout = "30m"

[[tasks]]
id = "T1"
prompt = "Write"

"""
PAGER = '[[interpreters]]\nuse = "pager"\nfor = "LogFatal"\nurl = "http://duty"\n'
TMUX = '[[interpreters]]\nuse = "tmux:Tmux"\nserver = "mine"\n'


def fleet(folder: Path, *interpreters: str) -> Fleet:
    file = folder / "fleet.toml"
    file.write_text(FLEET + "\n".join(interpreters))
    return load(file)


def test_interpreters_are_read_in_their_order_with_their_options(tmp_path: Path) -> None:
    """``use`` and ``for`` are lifefold's, every other key is the interpreter's own; each knows its place."""
    pager, tmux = fleet(tmp_path, PAGER, TMUX).interpreters
    assert (pager.use, pager.kinds, pager.options) == ("pager", ("LogFatal",), {"url": "http://duty"})
    assert (tmux.use, tmux.kinds, tmux.options) == ("tmux:Tmux", (), {"server": "mine"})
    assert pager.places["url"] == f"{tmp_path}/fleet.toml:17: interpreters.pager.url: "
    assert fleet(tmp_path).interpreters == ()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("use = 7", 'use: found 7, an integer; accepted: "module:attribute", in a module beside the fleet file'),
        ('use = "pager:"', 'use: found "pager:"; accepted: "module:attribute"'),
        ('for = "LogFatal"', "use is missing"),
        ('use = "p"\nfor = "LogFatl"', '.for: found "LogFatl"; accepted: AwaitTrigger, CancelSession, '),
        ('use = "p"\nfor = "LogFatl"', '; did you mean "LogFatal"?'),
        ('use = "p"\nfor = ["LogFatal", "Tell"]', '.for[2]: found "Tell"; accepted: '),
        ('use = "p"\nfor = []', ".for: found an empty array; accepted: a text, or an array of texts"),
        ('use = "p"\n[[interpreters]]\nuse = "p"', "interpreters.p.use: p is there twice; first in line 14"),
    ],
)
def test_what_is_wrong_is_told_with_what_is_accepted(tmp_path: Path, written: str, told: str) -> None:
    """Before any module is looked for."""
    with pytest.raises(FleetFileError) as refused:
        fleet(tmp_path, f"[[interpreters]]\n{written}\n")
    assert told in str(refused.value)


def test_a_table_in_place_of_several_is_refused(tmp_path: Path) -> None:
    """The order matters, so that it is an array."""
    with pytest.raises(FleetFileError, match=r"interpreters: found a table; accepted: an array of tables"):
        fleet(tmp_path, '[interpreters]\nuse = "pager"\n')


def test_what_performs_effects_alone_may_come_and_go(tmp_path: Path) -> None:
    """No effect leaves anything to find again."""
    assert fleet(tmp_path, PAGER).meaning == fleet(tmp_path).meaning


def test_what_performs_activities_belongs_to_the_log(tmp_path: Path) -> None:
    """Another interpreter would not find what the last one has left. Options may be secrets, and are not shown."""
    none, one = fleet(tmp_path), fleet(tmp_path, TMUX)
    other = fleet(tmp_path, TMUX.replace("mine", "yours"))
    assert describe_difference(none.meaning, one.meaning) == ("interpreters: was added",)
    assert describe_difference(one.meaning, other.meaning) == ("interpreters.tmux:Tmux.options.server: has changed",)
    assert "yours" not in other.meaning
