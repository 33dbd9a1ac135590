"""What ``brain`` and ``host`` refuse before they change anything."""

import sys
from pathlib import Path

import pytest

from lifefold.interpreters.cli.app import main

pytest.importorskip("temporalio", reason="needs the extra temporal")

FLEET = """
[fleet]
name = "clustered"
{more}
[[agents]]
name = "ann"
command = ["true"]
[[tasks]]
id = "t"
prompt = "x"
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A fleet file."""
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET.format(more=""))
    return file


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Give a command that must be refused as bad input, and return what is said."""
    assert main(words) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("command", ["brain", "host"])
def test_a_server_that_does_not_answer_is_named(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Nothing is written then."""
    said = refusal(capsys, command, str(fleet), "--server", "127.0.0.1:1")
    assert "--server 127.0.0.1:1: no Temporal server answers there" in said
    assert list(tmp_path.iterdir()) == [fleet]


@pytest.mark.parametrize("placed", ["bob=gpu", "ann", "ann="])
def test_a_pool_is_for_a_known_agent(fleet: Path, capsys: pytest.CaptureFixture[str], placed: str) -> None:
    """A mistyped name would leave an agent in the default pool."""
    said = refusal(capsys, "brain", str(fleet), "--server", "127.0.0.1:1", "--place", placed)
    assert f"--place {placed}: accepted: AGENT=POOL" in said


@pytest.mark.parametrize("command", ["brain", "host"])
def test_a_fleet_with_a_repository_is_refused(fleet: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Worktrees belong to one runner."""
    (fleet.parent / ".git").mkdir()
    fleet.write_text(FLEET.format(more='repository = "."'))
    said = refusal(capsys, command, str(fleet), "--server", "127.0.0.1:1")
    assert "a fleet with a repository runs on one machine only" in said


def test_a_detection_time_below_a_second_is_no_number(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The help says what is accepted."""
    with pytest.raises(SystemExit):
        main(["host", str(fleet), "--server", "127.0.0.1:1", "--detection", "0"])
    assert "is not a whole number from 1 on" in capsys.readouterr().err


def test_a_certificate_that_is_not_there_is_named(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before a connection without it is tried."""
    said = refusal(capsys, "host", str(fleet), "--server", "127.0.0.1:1", "--tls-ca", "/nowhere/ca.pem")
    assert "/nowhere/ca.pem: No such file or directory" in said


def test_without_the_library_the_extra_is_named(
    fleet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library is no part of a plain installation."""
    for name in [
        each
        for each in sys.modules
        if each.startswith(("lifefold.interpreters.fleet_cluster", "lifefold.interpreters.temporal"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "temporalio.client", None)
    said = refusal(capsys, "brain", str(fleet), "--server", "127.0.0.1:1")
    assert "pip install 'lifefold[temporal]'" in said
