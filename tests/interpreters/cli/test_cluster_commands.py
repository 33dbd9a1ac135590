"""What ``brain`` and ``host`` refuse before they change anything."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest

from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.cluster_options import pools_of
from lifefold.interpreters.cli.commands import showing
from lifefold.interpreters.cli.logs import next_log
from lifefold.interpreters.cli.server_logs import announce_next
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.store.address import read_address
from lifefold.interpreters.store.pointer import address_of, write_pointer

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
    assert "no Temporal server answers at 127.0.0.1:1, which --server names" in said
    assert list(tmp_path.iterdir()) == [fleet]


@pytest.mark.parametrize("placed", ["bob=gpu", "ann", "ann="])
def test_a_pool_is_for_a_known_agent(fleet: Path, capsys: pytest.CaptureFixture[str], placed: str) -> None:
    """A mistyped name would leave an agent in the default pool."""
    said = refusal(capsys, "brain", str(fleet), "--server", "127.0.0.1:1", "--place", placed)
    assert f"--place {placed}: accepted: AGENT=POOL" in said


@pytest.mark.parametrize("command", ["brain", "host"])
def test_a_fleet_with_a_repository_and_no_remote_is_refused(
    fleet: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Hosts would have no place from which they get it."""
    (fleet.parent / ".git").mkdir()
    fleet.write_text(FLEET.format(more='repository = "."'))
    said = refusal(capsys, command, str(fleet), "--server", "127.0.0.1:1")
    assert "hosts get the repository of a fleet from a git remote; name it by remote in [cluster]" in said
    assert "lifefold run --engine local" in said


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


@pytest.mark.parametrize("command", ["brain", "host"])
def test_the_server_of_the_fleet_file_is_used_and_named(
    fleet: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """The option comes before it."""
    fleet.write_text(FLEET.format(more="") + '[cluster]\nengine = "temporal://127.0.0.1:2/agents"\n')
    said = refusal(capsys, command, str(fleet))
    assert f"no Temporal server answers at 127.0.0.1:2/agents, which [cluster] of {fleet} names" in said
    assert "at 127.0.0.1:1, which --server" in refusal(capsys, command, str(fleet), "--server", "127.0.0.1:1")


def test_a_fleet_without_a_server_needs_the_option(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no default: a wrong server would begin the fleet elsewhere."""
    said = refusal(capsys, "brain", str(fleet))
    assert f"name the Temporal server: --server HOST:PORT, or engine in [cluster] of {fleet}" in said


def test_a_missing_key_of_the_fleet_file_is_named(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The path is relative to the fleet file."""
    fleet.write_text(FLEET.format(more="") + '[cluster]\napi_key_file = "key"\n')
    said = refusal(capsys, "host", str(fleet), "--server", "127.0.0.1:1")
    assert f"{fleet.parent / 'key'}: No such file or directory" in said


def test_pools_are_those_of_the_fleet_file_and_an_option_comes_first(fleet: Path) -> None:
    """Agents that neither names are in the default pool."""
    text = FLEET.format(more="") + '[[agents]]\nname = "bob"\ncommand = ["true"]\n'
    fleet.write_text(text + '[[cluster.pools]]\nname = "large"\nagents = ["ann"]\n')
    assert pools_of([], load(fleet)) == {"ann": "large", "bob": "default"}
    assert pools_of(["ann=small"], load(fleet)) == {"ann": "small", "bob": "default"}


def test_a_program_that_has_used_temporal_ends_without_finalizing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of the library would enter the interpreter meanwhile, and it would end by a signal."""
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setattr(sys, "argv", ["lifefold", "machines"])
    monkeypatch.setitem(sys.modules, "temporalio.bridge.runtime", sys)
    assert main(["machines"]) == 0
    assert ended == []
    main()
    assert ended == [0]
    assert "session" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (SystemExit(130), 130, ""),
        (SystemExit(), 0, ""),
        (SystemExit("no more"), 1, "no more\n"),
        (ZeroDivisionError("an error"), 1, "ZeroDivisionError: an error\n"),
    ],
)
def test_it_ends_so_after_an_error_too(
    error: BaseException, code: int, printed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code and the last line are those of Python. Without the library, Python does that itself."""
    ended: list[int] = []

    def fails(_arguments: Namespace) -> int:
        raise error

    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setattr(sys, "argv", ["lifefold", "machines"])
    monkeypatch.setattr(showing, "machines", fails)
    monkeypatch.delitem(sys.modules, "temporalio.bridge.runtime", raising=False)
    with pytest.raises(type(error)):
        main()
    monkeypatch.setitem(sys.modules, "temporalio.bridge.runtime", sys)
    with pytest.raises(type(error)):
        main(["machines"])
    assert ended == []
    main()
    assert ended == [code]
    said = capsys.readouterr().err
    assert said.endswith(printed)
    assert bool(said) == bool(printed)


def test_the_log_of_the_next_run_on_a_server_is_named_after_the_first(tmp_path: Path) -> None:
    """Each run has one number more, and the name of the first log stays in front of it."""
    log = tmp_path / "docs.db"
    write_pointer(log, read_address("postgresql://me@db/agents?log=notes"))
    for number in (2, 3):
        then = next_log(log)
        announce_next(log, then)
        assert str(address_of(then)) == f"postgresql://me@db/agents?log=notes.run-{number}"
        log = then
