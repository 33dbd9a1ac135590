"""The real agent programs still do what their recordings say, in a campaign, where they are installed."""

import shutil
from pathlib import Path

import pytest

from agent_outcomes import OUTCOMES
from agent_recordings import recordings
from lifefold.interpreters.adapters import adapter_of
from lifefold.interpreters.testing import Recording
from lifefold.interpreters.testing.adapters import read
from record import CASES, conversation_of, record

CAMPAIGN = [
    pytest.param(program, name, id=f"{program}-{name}")
    for program, cases in CASES.items()
    for name, case in cases.items()
    if case.kill_s is None and name not in {"taken-conversation", "compacted", "read-only"}
]
"""The cases that end by themselves."""


@pytest.mark.parametrize("program", CASES)
def test_every_case_has_a_recording(program: str) -> None:
    """Those of other versions and servers have no case."""
    others = {"asked-and-allowed", "denied-2.1.197", "resumed-2.1.197"}
    assert {*CASES[program]} == {*recordings(program)} - others


@pytest.mark.campaign
@pytest.mark.parametrize(("program", "name"), CAMPAIGN)
def test_a_real_program_ends_as_it_was_recorded(program: str, name: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    case, begun = CASES[program][name], ""
    if case.conversation == "begun":
        output, _ = record(program, CASES[program]["success"], "", tmp_path)
        begun = conversation_of(program, output)
    session = Recording(name, *record(program, case, begun, tmp_path))
    state, _ = read(adapter_of(program), session.lines)
    assert adapter_of(program).finish(state, session.status).outcome is OUTCOMES[program][name][0]
