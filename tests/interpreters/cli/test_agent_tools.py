"""The tools of ``lifefold mcp`` without a client: who may use them, and what they write and refuse."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import anyio
import pytest

from asking_log import LEAVE, WORDS, at_work
from fleet_log import folded, said
from lifefold.core.fleet.worker.question import REF, QuestionAsked, Terms
from lifefold.core.policy.standing import StandingAnswer
from lifefold.interpreters.cli.agent_tools.asking import MOST_INPUT, ask
from lifefold.interpreters.cli.agent_tools.claim import Claim, claim_of
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.errors import BadInput

pytest.importorskip("mcp")

from mcp.server.mcpserver.exceptions import ToolError

from lifefold.interpreters.cli.agent_tools.server import Tools, server_of

AROUND = {"LIFEFOLD_AGENT": "ann", "LIFEFOLD_TASK": "T1", "LIFEFOLD_TOKEN": "1-", "LIFEFOLD_DB": "fleet.db"}
ALLOW_ALL = Terms(0, (StandingAnswer("*", "", allows=True),))


def claim(log: Path, epoch: int = 1, agent: str = "ann") -> Claim:
    """Return a claim of T1."""
    return Claim(agent, "T1", epoch, "", log)


def asked(log: Path) -> list[QuestionAsked]:
    """Return what sessions have asked."""
    return [each.event for each in said(log) if isinstance(each.event, QuestionAsked)]


def test_the_claim_is_that_of_the_environment() -> None:
    """Each missing variable is named."""
    assert claim_of(AROUND) == Claim("ann", "T1", 1, "", Path("fleet.db"))
    assert claim_of(AROUND).actor == "session:ann"
    with pytest.raises(BadInput, match=r"here it lacks LIFEFOLD_TASK and LIFEFOLD_DB$"):
        claim_of({**AROUND, "LIFEFOLD_TASK": "", "LIFEFOLD_DB": ""})
    with pytest.raises(BadInput, match="accepted: the token of a claim"):
        claim_of({**AROUND, "LIFEFOLD_TOKEN": "x"})


def test_the_server_names_itself_with_its_version() -> None:
    """A client shows both."""
    server = server_of(claim_of(AROUND))
    assert (server.name, server.version) == ("lifefold", version("lifefold"))


def test_outside_a_session_the_command_says_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2."""
    assert main(["mcp"]) == 2
    assert "lifefold mcp is for the session of an agent" in capsys.readouterr().err


def test_without_its_package_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No trace of an import."""
    for name, value in AROUND.items():
        monkeypatch.setenv(name, value)
    for name in [each for each in sys.modules if each == "mcp" or each.startswith("mcp.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "lifefold.interpreters.cli.agent_tools.server")
    assert main(["mcp"]) == 2
    assert capsys.readouterr().err == "lifefold: lifefold mcp needs the package mcp: pip install 'lifefold[mcp]'\n"


def test_a_question_is_written_without_secrets_and_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent gets its whole input back; a subject that is cut is matched by no pattern."""
    for name, value in {**AROUND, "AN_API_KEY": "sk-0123456789"}.items():
        monkeypatch.setenv(name, value)
    log = at_work(tmp_path / "fleet.db", terms=ALLOW_ALL).path
    given = {"command": "curl sk-0123456789 " + "x" * 20_000}
    answer = json.loads(anyio.run(Tools(claim(log)).permission, "Bash", given, "i" * 500))
    assert answer == {"behavior": "allow", "updatedInput": given}
    (event,) = asked(log)
    assert event.subject.startswith("curl [redacted AN_API_KEY] xxx")
    assert (len(event.subject), len(event.input), len(event.id), event.is_cut) == (10_000, MOST_INPUT, 200, True)
    assert "sk-0123456789" not in event.input


def test_a_question_without_an_identifier_is_another_one_each_time(tmp_path: Path) -> None:
    """Its asker cannot ask again."""
    log = at_work(tmp_path / "fleet.db", terms=ALLOW_ALL).path
    for _ in range(2):
        anyio.run(Tools(claim(log)).permission, "Read", {"path": "a"})
    assert len({each.id for each in asked(log)}) == 2


@pytest.mark.parametrize(
    ("epoch", "agent", "why"),
    [(2, "ann", "claim 2 of T1 is over"), (1, "ben", "the fleet file has no table [fleet.questions]")],
)
def test_a_session_of_another_claim_is_denied(tmp_path: Path, epoch: int, agent: str, why: str) -> None:
    """Nothing is written."""
    log = at_work(tmp_path / "fleet.db").path
    answer = json.loads(anyio.run(Tools(claim(log, epoch, agent)).permission, "Bash", {"command": "make"}))
    assert answer["behavior"] == "deny"
    assert why in answer["message"]
    assert asked(log) == []


def test_a_log_that_cannot_be_read_denies(tmp_path: Path) -> None:
    """The reason says what is wrong with it."""
    tools = Tools(claim(tmp_path / "none.db"))
    answer = json.loads(anyio.run(tools.permission, "Bash", {"command": "make"}))
    assert answer["behavior"] == "deny"
    assert "the question cannot be asked: " in answer["message"]
    with pytest.raises(ToolError, match=r"none\.db"):
        anyio.run(tools.task)


@pytest.mark.parametrize(("question", "choices"), [(" ", None), ("x" * 10_001, None), ("x", ["a"] * 21)])
def test_a_question_beyond_its_bounds_is_refused(tmp_path: Path, question: str, choices: list[str] | None) -> None:
    """With what is accepted."""
    with pytest.raises(ToolError, match="accepted: a text of 1 to 10000 characters, and at most 20 choices"):
        anyio.run(Tools(claim(tmp_path / "fleet.db")).ask_operator, question, choices)


def test_the_same_question_gets_the_answer_that_is_there(tmp_path: Path) -> None:
    """The second asker waits for nothing."""
    log = at_work(tmp_path / "fleet.db", LEAVE, WORDS).path
    assert main(["reject", "ann/Q1", "--reason", "no", "--db", str(log)]) == 0
    answer = anyio.run(ask, claim(log), LEAVE)
    assert answer.text == "no"
    assert folded(log).record("worker/ann", REF).asked == 2
