"""A soak goes on until it is stopped, keeps what it finds, and the next one goes on where it ended."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lifefold.interpreters.campaign import Tally
from lifefold.interpreters.campaign.soak import SMALL_OF_EACH, Folder, Soak
from lifefold.interpreters.campaign.stopping import SIGNALS, until_stopped
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.simulate import Faults, Limits

DOORS = '''
from lifefold.core.kernel import Event, Machine, Record, State, after, leads_to, row


class Door(State):
    OPEN = "Open"
    SHUT = "Shut"


class Opened(Event, frozen=True):
    """The door is opened."""


class AgentFailed(Event, frozen=True):
    """It falls shut."""


class Hall(Record, frozen=True):
    state: Door = Door.SHUT


rows = (row(Door.SHUT, Opened, Door.OPEN), row(Door.OPEN, AgentFailed, Door.SHUT))
PROPERTY = leads_to("it falls shut", lambda e: e.state is Door.OPEN, lambda e: e.state is Door.SHUT)
machine = Machine("door", Hall(), rows=rows, properties=(PROPERTY,))
'''


class After:
    """Stops once so many seeds were tried."""

    def __init__(self, seeds: int) -> None:
        self.seeds = seeds
        self.tried: list[int] = []

    def tell(self, tally: Tally) -> None:
        self.tried.append(tally.seeds)

    def __call__(self) -> bool:
        return bool(self.tried) and self.tried[-1] >= self.seeds


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a machine of one's own, which nothing shuts."""
    (tmp_path / "open_doors.py").write_text(DOORS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "open_doors", raising=False)
    return "open_doors:machine"


def soaked(target: str, folder: Path, seeds: int, jobs: int = 1) -> Soak:
    soak = Soak(target, Folder(folder, target), faults=Faults(), limits=Limits())
    stop = After(seeds)
    soak.go_on(stop, jobs=jobs, tell=stop.tell)
    return soak


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_next_soak_goes_on_where_the_last_one_ended(tmp_path: Path, jobs: int) -> None:
    """No seed is left out and none is tried twice, however many work at them."""
    first = soaked("fleet-1x1", tmp_path, 3, jobs).tally
    assert first.seeds >= 3
    assert Folder(tmp_path, "fleet-1x1").next_seed == first.seeds
    second = soaked("fleet-1x1", tmp_path, 3, jobs).tally
    assert Folder(tmp_path, "fleet-1x1").next_seed == first.seeds + second.seeds
    assert [each.name for each in tmp_path.iterdir()] == ["fleet_1x1.json"]


def test_every_seed_that_finds_something_is_kept_and_the_first_ones_as_tests(tmp_path: Path, door: str) -> None:
    """A seed with all that makes its run again; a test that fails as long as the property is broken."""
    soak = soaked(door, tmp_path / "kept", 40)
    found = [seed for seed, _ in soak.tally.found]
    assert len(found) > SMALL_OF_EACH
    kept = {each.name for each in (tmp_path / "kept").iterdir()}
    tests = {f"test_open_doors_machine_seed_{seed}.py" for seed in found[:SMALL_OF_EACH]}
    assert kept == {"open_doors_machine.json", *(f"open_doors_machine_seed_{seed}.json" for seed in found), *tests}
    one = json.loads((tmp_path / "kept" / f"open_doors_machine_seed_{found[0]}.json").read_text())
    assert (one["seed"], one["target"], one["found"]["property"]) == (found[0], door, "it falls shut")
    assert len(soak.findings) == 1
    there: dict[str, object] = {}
    exec((tmp_path / "kept" / min(tests)).read_text(), there)  # noqa: S102 - it is a test file
    (test,) = (each for name, each in there.items() if name.startswith("test_"))
    assert callable(test)
    with pytest.raises(AssertionError, match="it falls shut"):
        test()


@pytest.mark.parametrize(("number", "jobs"), list(zip(SIGNALS, ("1", "2"), strict=True)))
def test_a_signal_ends_it_with_a_summary(tmp_path: Path, number: signal.Signals, jobs: str) -> None:
    """What was found decides the exit code; how far it went is on the disk, and no worker holds the output open."""
    command = (
        sys.executable,
        "-m",
        "lifefold.interpreters.cli",
        "simulate",
        "fleet-1x1",
        "--soak",
        "s",
        "--jobs",
        jobs,
    )
    soak = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert soak.stderr is not None
    assert "from seed 0 on, until stopped" in soak.stderr.readline()
    while not (tmp_path / "s" / "fleet_1x1.json").exists():
        assert soak.poll() is None
    os.killpg(soak.pid, number)
    said, complained = soak.communicate(timeout=60)
    assert (soak.returncode, complained) == (0, "")
    assert "fleet-1x1: no property is broken in" in said
    assert Folder(tmp_path / "s", "fleet-1x1").next_seed > 0


def test_a_second_signal_is_as_ever() -> None:
    """The operator need not wait for the summary."""
    with until_stopped() as is_stopped:
        assert not is_stopped()
        os.kill(os.getpid(), signal.SIGINT)
        assert is_stopped()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seeds", "3"], "leave out --seeds, --emit-test"),
        (["--emit-test", "t.py"], "leave out --seeds, --emit-test"),
        ([], "does not have the progress of a soak"),
    ],
)
def test_what_it_cannot_go_on_with_is_said(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and nothing is tried."""
    (tmp_path / "session.json").write_text("[]")
    assert main(["simulate", "session", "--soak", str(tmp_path), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is there stays."""
    (tmp_path / "notes").write_text("mine")
    assert main(["simulate", "session", "--soak", str(tmp_path / "notes")]) == 2
    assert "that is no folder" in capsys.readouterr().err
    assert (tmp_path / "notes").read_text() == "mine"
