"""The cases of the real agent programs and their recordings are the same; tests/agents runs the programs."""

import pytest

from agent_recordings import recordings
from cases import CASES

OTHERS = {"denied-2.1.197", "resumed-2.1.197"}
"""The recordings of other versions, which have no case."""


@pytest.mark.parametrize("program", CASES)
def test_every_case_has_a_recording(program: str) -> None:
    """A case is what the tests of the real programs repeat."""
    assert {*CASES[program]} == {*recordings(program)} - OTHERS
