"""The cases of the real agent programs and their recordings are the same; tests/agents runs the programs."""

from pathlib import Path

import pytest

from agent_recordings import recordings
from cases import CASES
from lifefold.interpreters.adapters import adapter_of

OTHERS = {"denied-2.1.197", "resumed-2.1.197"}
"""The recordings of other versions, which have no case."""

PAGE = Path(__file__).parents[3] / "docs" / "adapters.md"


@pytest.mark.parametrize("program", CASES)
def test_every_case_has_a_recording(program: str) -> None:
    """A case is what the tests of the real programs repeat."""
    assert {*CASES[program]} == {*recordings(program)} - OTHERS


@pytest.mark.parametrize("program", CASES)
def test_the_page_names_every_tested_version(program: str) -> None:
    (line,) = (line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{program}` |"))
    assert [version for version in adapter_of(program).tested_versions if version not in line] == []
