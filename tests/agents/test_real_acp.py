"""Real agent programs speak the Agent Client Protocol, against a model service on loopback, as recorded."""

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import anyio
import pytest

from acp_sessions import ARGUMENTS, CASES, AcpSandbox, place_of, program_of
from agent_outcomes import limits, works
from agent_recordings import recordings
from homes import environment
from lifefold.interpreters.adapters import Counted, Fact, Spent, adapter_of
from lifefold.interpreters.doctor.programs import AgentProgram, examined
from lifefold.interpreters.testing.adapters import read
from record import without_places

pytest.importorskip("acp", reason="the package agent-client-protocol is not there: pip install 'lifefold[acp]'")

EVERYDAY: Final = (
    "opencode-resumed",
    "opencode-continued",
    "opencode-denied",
    "opencode-permitted",
    "gemini-permitted",
)
"""The cases of each day, with the cases before them. All others take some minutes more."""

CHAINS: Final = [
    pytest.param(name, id=name, marks=pytest.mark.agents if name in EVERYDAY else pytest.mark.all_agents)
    for name in CASES
    if name not in {case.after for case in CASES.values()}
]
"""The last case of each chain of sessions in one home."""


def must_be_there(program: str) -> None:
    """Skip a test whose program is not installed."""
    if not place_of(program).exists():
        pytest.skip(f"{place_of(program).name} is not there: make agents-all installs it")


def totals(facts: Iterable[Fact]) -> list[Spent]:
    """Return the last total of each coverage, without the name of its conversation."""
    last = {each.counted: each.total for each in facts if isinstance(each, Spent)}
    return [Spent("", last[counted], counted) for counted in Counted if counted in last]


def words(reason: str) -> str:
    """Return the first sentence of a reason, without its numbers and times, which differ from session to session."""
    return re.sub(r"\d+", "0", reason.split(". ", maxsplit=1)[0])


@pytest.mark.parametrize("name", CHAINS)
def test_a_real_program_speaks_the_protocol_as_its_recording_says(name: str, tmp_path: Path) -> None:
    """Outcome, reason, totals, works and limits of each session."""
    must_be_there(program_of(name))
    resets_at_s = (int(time.time()) // 60 + 150) * 60
    for case, session in AcpSandbox(program_of(name), tmp_path).chain(name, resets_at_s=resets_at_s).items():
        recording = recordings("acp")[case]
        state, facts = read(adapter_of("acp"), recording.lines)
        end = adapter_of("acp").finish(state, recording.status)
        said = without_places(session.end.reason.encode(), tmp_path).decode()
        assert (session.end.outcome, words(said)) == (end.outcome, words(end.reason)), case
        assert (totals(session.facts), works(session.facts)) == (totals(facts), works(facts)), case
        told = [(None if until is None else resets_at_s * 1000, scope) for until, scope in limits(facts)]
        assert limits(session.facts) == told, case


@pytest.mark.agents
@pytest.mark.parametrize("program", ARGUMENTS)
def test_the_doctor_is_told_the_version_that_was_recorded(program: str, tmp_path: Path) -> None:
    must_be_there(program)
    env = environment(program, tmp_path, "http://127.0.0.1:1")
    wanted = AgentProgram(adapter_of("acp"), str(place_of(program)), env, ("coder",), ARGUMENTS[program])
    found = anyio.run(examined, wanted)
    assert found.is_tested, found
