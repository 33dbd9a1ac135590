"""The example of a recorder: a fleet is rehearsed, nothing is performed, and each request is recorded once."""

import json
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from example_commands import EXAMPLES, lifefold
from examples.recorder import Recorder
from fleet_bench import FleetBench
from lifefold.effects import Effect
from lifefold.interpreters.testing import Bench, InterpreterConformance
from lifefold.interpreters.testing.interpreters import an_effect_comes_to_the_same_when_it_is_performed_again

EFFECTS: Final = {each.__name__ for each in Effect.__subclasses__()}


class RecorderBench(FleetBench):
    """The bench, with a look at the recorded effects; requests of activities stay recorded too."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, Recorder)
        self.examples = [each for each in self.examples if each.under_way is None]  # here nothing is ever under way

    async def look(self) -> object:
        lines = recorded(self.handlers.folder.root / "requested.jsonl")
        return await super().look(), [line for line in lines if line["type"] in EFFECTS]


def recorded(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return RecorderBench(tmp_path)


class TestTheRecorder(InterpreterConformance):
    """Every check of the kit."""


class TestTheRecorderOnTrio(InterpreterConformance):
    """On the other event loop, too."""

    backend = "trio"


def test_what_an_earlier_runner_was_asked_for_is_not_taken_down_again(tmp_path: Path) -> None:
    """Another recorder of the same log knows it by its identity."""
    anyio.run(an_effect_comes_to_the_same_when_it_is_performed_again, RecorderBench(tmp_path))
    again = RecorderBench(tmp_path)
    anyio.run(an_effect_comes_to_the_same_when_it_is_performed_again, again)
    asked = [line["id"] for line in recorded(again.handlers.folder.root / "requested.jsonl")]
    assert len(asked) == len(set(asked)) == len([each for each in again.examples if isinstance(each.what, Effect)])


@pytest.mark.usefixtures("recorded_place")
def test_a_fleet_is_rehearsed(tmp_path: Path) -> None:
    """``lifefold run`` of the example: all tasks closed in their order, nothing started, and every prompt on record."""
    log = tmp_path / "log.db"
    said = lifefold("run", str(EXAMPLES / "recorder.toml"), "--db", str(log), "--transitions").stdout
    assert "2 of 2 tasks closed" in said
    files = tmp_path / "log.db.files"
    assert [path.name for path in files.iterdir() if path.name != "worktrees"] == ["requested.jsonl"]
    lines = recorded(files / "requested.jsonl")
    prompts = [line["prompt"] for line in lines if line["type"] == "RunSession"]
    assert prompts == ["Write the parser.", "Write the printer."]
    assert [line["commands"] for line in lines if line["type"] == "VerifyWork"] == [[["test", "-s", "parser.py"]], []]
    assert {line["agent"] for line in lines} == {"coder-1", "coder-2"}


@pytest.mark.usefixtures("recorded_place")
def test_a_log_of_a_rehearsal_is_not_gone_on_with_in_earnest(tmp_path: Path) -> None:
    """Another interpreter of activities makes another fleet of it: the log says that all was done."""
    text = (EXAMPLES / "recorder.toml").read_text()
    file = tmp_path / "fleet.toml"
    (tmp_path / "recorder.py").write_text((EXAMPLES / "recorder.py").read_text())
    file.write_text(text)
    lifefold("run", str(file), "--transitions")
    file.write_text(text.replace('[[interpreters]]\nuse = "recorder:Recorder"\n', ""))
    refused = lifefold("run", str(file), "--transitions", code=2)
    assert "interpreters: was removed" in refused.stdout


def test_a_last_line_that_a_power_cut_has_torn_is_left_out(tmp_path: Path) -> None:
    """The effect of a torn line is recorded again when it is requested again; every line is whole."""
    bench = RecorderBench(tmp_path)
    anyio.run(an_effect_comes_to_the_same_when_it_is_performed_again, bench)
    file = bench.handlers.folder.root / "requested.jsonl"
    whole = recorded(file)
    file.write_bytes(file.read_bytes()[:-9])
    again = RecorderBench(tmp_path)
    anyio.run(an_effect_comes_to_the_same_when_it_is_performed_again, again)
    assert recorded(file) == whole
