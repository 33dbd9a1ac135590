"""The real agent programs, against a model service on loopback, behave as their recordings say.

A session is a real process. Its command line, its facts and its end are those of the program's adapter. ``make agents``
installs the programs; the tests of one that is not there are skipped. A session costs nothing and leaves the machine
alone: home, repository and model service are its own.
"""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Final

import anyio
import msgspec
import pytest

from agent_charges import charged
from agent_outcomes import LIMITS, OUTCOMES, TOTALS, WORKS, last_total, limits, works
from cases import CASES
from dialects import Served
from homes import PATH, environment, is_there
from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import Conversation, Tokens, adapter_of
from lifefold.interpreters.adapters.adapter import resume_argv
from lifefold.interpreters.adapters.mcp_config import PERMISSION_TOOL, SERVER, mcp_config
from lifefold.interpreters.doctor.programs import AgentProgram, examined
from lifefold.interpreters.fleet_runner.agent_programs import LIFEFOLD
from record import without_places
from sessions import Sandbox, Session

EVERYDAY: Final = (
    "resumed", "continued", "denied", "asked-and-allowed", "asked-and-refused", "limit", "overloaded",
    "lost-conversation",
)  # fmt: skip
"""The cases of each day, with the cases before them: ``success`` and ``killed``. All others take some minutes more."""

CHAINS: Final = [
    pytest.param(
        program, name, id=f"{program}-{name}", marks=pytest.mark.agents if name in EVERYDAY else pytest.mark.all_agents
    )
    for program, cases in CASES.items()
    for name in cases
    if name not in {case.after for case in cases.values()}
]
"""The last case of each chain of sessions in one home."""

ROUNDING: Final = {"codex"}
"""The programs that tell the end of a limit without its seconds."""

SILENT: Final = {"gemini", "aider"}
"""The programs that tell the cost of a killed session neither then nor after a resume."""


@pytest.fixture(autouse=True)
def program_is_there(program: str) -> None:
    """Skip a test whose program is not installed."""
    if not is_there(program):
        pytest.skip(f"{program} is not there: make agents-all installs it")


@pytest.mark.parametrize(("program", "name"), CHAINS)
def test_a_real_program_does_what_its_recording_says(program: str, name: str, tmp_path: Path) -> None:
    """Outcome, reason, totals, works and limits of each session, and the cost of all of them together."""
    sandbox = Sandbox(program, tmp_path)
    resets_at_s = (int(time.time()) // 60 + 150) * 60 + 37
    sessions = sandbox.chain(name, resets_at_s=resets_at_s)
    for each, session in sessions.items():
        must_be_as_recorded(program, each, session, tmp_path, resets_at_s)
    if sessions[name].end.outcome is Outcome.SUCCESS:
        told = [each for key, each in sessions.items() if key != "killed" or program not in SILENT]
        assert charged(told) == Tokens(*total(told))


def total(sessions: Iterable[Session]) -> tuple[int, int, int, int]:
    """Return the tokens that the model service has served: input, read and written cache, output."""
    served = reduce(Served.plus, (each.served for each in sessions))
    return served.input, served.cached, 0, served.output


@pytest.mark.agents
@pytest.mark.parametrize("program", ["claude"])
def test_the_model_is_offered_the_tools_of_the_fleet_at_once(program: str, tmp_path: Path) -> None:
    """It need not search for them. The permission tool is the program's, and the model cannot call it."""
    config = json.loads(mcp_config(LIFEFOLD))
    config["mcpServers"][SERVER]["env"] = {
        "LIFEFOLD_AGENT": "ann", "LIFEFOLD_TASK": "T1", "LIFEFOLD_TOKEN": "1-00", "LIFEFOLD_DB": "none.db",
    }  # fmt: skip
    words = (f"--mcp-config={json.dumps(config)}", f"--permission-prompt-tool={PERMISSION_TOOL}")
    found = Sandbox(program, tmp_path).session(msgspec.structs.replace(CASES[program]["success"], arguments=words))
    assert found.end.outcome is Outcome.SUCCESS
    own = {each.removeprefix(f"mcp__{SERVER}__") for each in found.tools if each.startswith("mcp__")}
    assert own == {"ask_operator", "split", "report", "task"}


def killed_total(session: Session) -> tuple[int, int, int, int]:
    """Return the served tokens of a killed session, as far as it prints them: of a message the first output token."""
    return session.served.input, session.served.cached, 0, 1


def must_be_as_recorded(program: str, name: str, session: Session, folder: Path, resets_at_s: int) -> None:
    """Assert that a session ended as its recording did, with the same totals, works and limits."""
    outcome, reason = OUTCOMES[program][name]
    shown = without_places(session.end.reason.encode(), folder).decode()
    assert session.end.outcome is outcome, f"{name}: {session.end}\n{session.output.decode(errors='replace')}"
    if name != "limit":  # its reason has the time of its end
        assert shown.startswith(reason), f"{name}: {shown}"
    told_s = resets_at_s - resets_at_s % 60 if program in ROUNDING else resets_at_s
    expected = [(None if until is None else told_s * 1000, scope) for until, scope in LIMITS.get((program, name), [])]
    assert limits(session.facts) == expected
    for (*place, counted), total in TOTALS.items():
        if place == [program, name]:
            assert last_total(session.facts, counted) == total
    assert works(session.facts) == WORKS.get((program, name), works(session.facts))


@pytest.mark.agents
@pytest.mark.parametrize("program", ["claude"])
def test_sessions_after_a_killed_one_are_charged_what_they_were_served(program: str, tmp_path: Path) -> None:
    """The second and the third one, too. The killed session lacks the output tokens of its unfinished message."""
    sandbox, cases = Sandbox(program, tmp_path), CASES[program]
    sessions, before = list[Session](), ""
    for each, conversation in (("success", "new"), ("killed", "resumed"), *(("success", "resumed"),) * 3):
        case = msgspec.structs.replace(cases[each], conversation=conversation)
        sessions.append(sandbox.session(case, before, ended_by=signal.SIGKILL))
        before = sessions[-1].conversation
    _, killed, *later = sessions
    printed = charged([killed])
    assert printed == Tokens(*killed_total(killed))
    told = [each for each in sessions if each is not killed]
    assert charged(sessions) == Tokens(*total(told)).plus(printed)
    assert {each.conversation for each in later} == {before}


@pytest.mark.agents
@pytest.mark.parametrize("program", CASES)
def test_a_program_has_the_options_with_which_a_person_resumes_a_conversation(program: str, tmp_path: Path) -> None:
    """Its own help names each of them."""
    _, *words = resume_argv(adapter_of(program), Conversation("c1", begun=True))
    options = [each.partition("=")[0] for each in words if each.startswith("--")]
    commands = [each for each in words if not each.startswith("--") and each != "c1"]
    env, found = environment(program, tmp_path, "http://127.0.0.1:1"), shutil.which(program, path=PATH) or program
    asked = subprocess.run([found, *commands, "--help"], env=env, capture_output=True, text=True, check=True)
    assert options
    assert [each for each in options if each not in asked.stdout + asked.stderr] == []


@pytest.mark.agents
@pytest.mark.parametrize("program", CASES)
def test_the_doctor_finds_the_program_in_a_version_that_was_recorded(program: str, tmp_path: Path) -> None:
    """``make agents`` installs a version that the adapter was tested with, and the program tells it."""
    env = environment(program, tmp_path, "http://127.0.0.1:1")
    found = anyio.run(examined, AgentProgram(adapter_of(program), program, env))
    assert (found.is_tested, found.version) == (True, adapter_of(program).tested_versions[-1])
