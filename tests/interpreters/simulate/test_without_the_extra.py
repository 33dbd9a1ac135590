"""Who installs lifefold alone can simulate: nothing of it needs NumPy or SciPy."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
sys.modules["numpy"] = sys.modules["scipy"] = None
from lifefold.interpreters.cli.app import main
sys.exit(main(["simulate", sys.argv[1], "--seeds", "2"]))
"""


@pytest.mark.parametrize("target", ["fleet", "session"])
def test_simulating_needs_no_extra(target: str) -> None:
    """Where they cannot be imported it says what it says elsewhere."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, target], capture_output=True, text=True, check=True)
    assert f"{target}: no property is broken in 2 seeds" in done.stdout
