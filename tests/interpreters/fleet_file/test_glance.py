"""The name and the servers of a fleet, read from a file of which the rest may not fit this machine."""

from pathlib import Path

import pytest

from lifefold.interpreters.fleet_file.glance import Glance, glance

LOG = "postgresql://fleets@db.example/agents?log=docs"
FILE = f"""
[fleet]
name = "docs"
repository = "not here"
[cluster]
remote = "docs.git"
log = "{LOG}"
[[agents]]
kind = "of a later version"
"""


def test_the_servers_are_read_whatever_else_the_file_has(tmp_path: Path) -> None:
    """The path of a remote counts from the folder of the file."""
    file = tmp_path / "fleet.toml"
    file.write_text(FILE)
    assert glance(file) == Glance("docs", str(tmp_path / "docs.git"), LOG)
    file.write_text(FILE.replace("[cluster]", '[cluster]\nengine = "temporal://server:7233"'))
    assert glance(file).has_engine


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("[fleet", Glance()),
        ("fleet = 1\ncluster = 2", Glance()),
        ("[fleet]\nname = 1", Glance()),
        ("[cluster]\nremote = 'https://me:secret@git.example/docs.git'\nlog = 'docs.db'", Glance()),
        ("[cluster]\nremote = 'git@git.example:docs.git'", Glance(remote="git@git.example:docs.git")),
    ],
)
def test_what_is_unusable_counts_as_absent(tmp_path: Path, text: str, seen: Glance) -> None:
    """Other files of a folder end with .toml, too. A password in an address is not used."""
    file = tmp_path / "other.toml"
    file.write_text(text)
    assert glance(file) == seen
    assert glance(tmp_path / "none.toml") == Glance()
