"""The pytest plugin: a seed for everything, told when something fails, and traces that are compared step by step."""

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest

SUPPORT: Final = Path(__file__).parents[2] / "support"

HEAD: Final = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
import kiln, oven
from hypothesis import given, settings, strategies as st
from lifefold.core.kernel import always
from lifefold.interpreters.testing import *
"""

DRAWS: Final = """
@settings(database=None, max_examples=3)
@given(traces(oven.machine))
def test_draws(trace):
    print(trace)

def test_draws_by_itself(lifefold_seed):
    print(lifefold_seed)
"""

BROKEN: Final = """
def test_laws():
    check_laws(oven.machine.with_properties(always("no bread", lambda entity: entity.record.loaves < 1)))
"""


def run(folder: Path, tests: str, *arguments: str) -> str:
    """Return what pytest prints of these tests, in a process of its own."""
    (folder / "test_mine.py").write_text(HEAD + tests)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
    command += ["-rA", *arguments, "test_mine.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    return re.sub(r"(?m)^=+ (.*) in [\d.]+s.*$", r"\1", done.stdout + done.stderr)


def test_what_is_drawn_by_a_seed_is_drawn_again_by_it(tmp_path: Path) -> None:
    """By hypothesis and by a test of its own; another seed draws something else."""
    first, again, other = (run(tmp_path, DRAWS, f"--lifefold-seed={seed}") for seed in (5, 5, 6))
    assert "2 passed" in first
    assert "lifefold: seed 5\n" in first
    assert first == again
    assert first != other.replace("seed 6", "seed 5")


def test_a_law_that_is_broken_tells_the_seed_that_breaks_it_again(tmp_path: Path) -> None:
    """Without the option each run has another one; with it the failure is the same."""
    message = r"check_laws\(\.\.\., seed=(\d+)\) or pytest --lifefold-seed=(\d+) finds it again"
    found = re.search(message, run(tmp_path, BROKEN))
    assert found is not None
    assert found[1] == found[2]
    again = run(tmp_path, BROKEN, f"--lifefold-seed={found[1]}")
    assert f"seed={found[1]})" in again
    assert "oven breaks a law: properties hold: 'no bread' does not hold after" in again


def test_a_test_that_has_asked_for_its_seed_and_fails_tells_how_to_repeat_it(tmp_path: Path) -> None:
    """The whole command, to be pasted."""
    said = run(tmp_path, "def test_mine(lifefold_seed):\n    assert lifefold_seed < 0\n")
    found = re.search(r"assert (\d+) < 0", said)
    assert found is not None
    assert f"again with: pytest --lifefold-seed={found[1]} 'test_mine.py::test_mine'" in said


def test_traces_that_are_not_equal_are_shown_from_the_first_difference_on(tmp_path: Path) -> None:
    """What is alike is left out."""
    tests = """
def lives(event):
    harness = Harness(kiln.kiln, exhaustive=False)
    harness.send(kiln.Lit())
    harness.send(event)
    return harness.trace

def test_alike():
    assert lives(kiln.Smashed()) == lives(kiln.Smashed())
    assert lives(kiln.Smashed()) == lives(kiln.Doused())
"""
    said = run(tmp_path, tests)
    assert "they differ from step 2 on; one has" in said
    summary = said[said.index("they differ") :].partition("\n\n")[0]
    assert re.search(r"2 +0 +operator says Smashed\(\) +state Firing → Broken", summary)
    assert re.search(r"2 +0 +operator says Doused\(\) +state Firing → Cold", summary)
    assert "Lit()" not in summary


@pytest.mark.parametrize("wrong", ["-1", "4294967296", "x"])
def test_a_seed_that_is_none_is_refused(tmp_path: Path, wrong: str) -> None:
    """Before anything runs."""
    assert "argument --lifefold-seed: invalid" in run(tmp_path, DRAWS, f"--lifefold-seed={wrong}")


def test_the_plugin_loads_nothing_that_a_run_of_pytest_has_not_asked_for() -> None:
    """It is loaded wherever lifefold is installed: without hypothesis, and before coverage begins to measure."""
    look = "import sys, lifefold.interpreters.pytest_plugin; print(*sorted(m for m in sys.modules if m in {names}))"
    names = {"hypothesis", "anyio", "msgspec", "lifefold.core", "lifefold.effects", "lifefold.interpreters.testing"}
    done = subprocess.run([sys.executable, "-c", look.format(names=names)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_pytest_finds_the_plugin() -> None:
    """By its entry point."""
    (found,) = entry_points(group="pytest11", name="lifefold")
    assert found.value == "lifefold.interpreters.pytest_plugin"
