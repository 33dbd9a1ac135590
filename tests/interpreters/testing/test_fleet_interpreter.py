"""The fleet's own interpreter keeps what the kit asks of one: places, sessions and verifications are real."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_bench import FleetBench
from lifefold.effects import AwaitTrigger, FollowOutput, WatchOutput
from lifefold.interpreters.testing import Bench, InterpreterConformance


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    yield FleetBench(tmp_path)
    gc.collect()  # what the children below warn of belongs to this test


# A crash that only a handler dies of leaves its shims children of a process that lives on, and they are not reaped.
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
class TestTheFleetsInterpreter(InterpreterConformance):
    """Every check of the kit."""


def test_the_bench_has_an_example_of_everything_that_the_handlers_do(bench: Bench) -> None:
    """A handler that is new has to be put on the bench; but what never ends by itself has no example of its end."""
    mine = {type(example.what) for example in bench.examples}
    assert {*mine, WatchOutput, FollowOutput, AwaitTrigger} == {
        *bench.interpreter.effects,
        *bench.interpreter.activities,
    }
