"""The questions that Claude Code asks by its own tool ``AskUserQuestion``, through the permission tool.

The form of the input, and of the answers that the program expects, was seen with Claude Code 2.1.330.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest

from asking_log import at_work
from fleet_log import said
from lifefold.core.fleet.worker.question import Kind, QuestionAsked
from lifefold.interpreters.cli.agent_tools.claim import Claim
from lifefold.interpreters.cli.app import main

pytest.importorskip("mcp")

from lifefold.interpreters.cli.agent_tools import asking
from lifefold.interpreters.cli.agent_tools.server import Tools

COLOUR: dict[str, Any] = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
SIZES: dict[str, Any] = {"question": "Which sizes?", "multiSelect": True, "options": [{"label": "S"}, {"label": "L"}]}


def called(log: Path, given: dict[str, Any], *commands: tuple[str, ...]) -> dict[str, Any]:
    """Return what the permission tool answers, while an operator gives these commands, one for each question."""
    with ThreadPoolExecutor(1) as threads:
        operator = threads.submit(operate, log, commands)
        answer = anyio.run(permission, log, given)
        operator.result()
    found: dict[str, Any] = json.loads(answer)
    return found


async def permission(log: Path, given: dict[str, Any]) -> str:
    """Call the permission tool as the program does. Without an answer the test fails after a minute."""
    with anyio.fail_after(60):
        return await Tools(Claim("ann", "T1", 1, "", log)).permission("AskUserQuestion", given, "toolu_1")


def operate(log: Path, commands: tuple[tuple[str, ...], ...]) -> None:
    """Give each command when its question is in the log."""
    for number, (command, *text) in enumerate(commands, 1):
        while len(asked(log)) < number:
            time.sleep(0.01)
        assert main([command, f"ann/Q{number}", *text, "--db", str(log)]) == 0


def asked(log: Path) -> list[QuestionAsked]:
    """Return what the session has asked."""
    return [each.event for each in said(log) if isinstance(each.event, QuestionAsked)]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "LOOK_S", 0.05)


def test_an_operator_answers_each_question_in_words(tmp_path: Path) -> None:
    """The program gets its input back with the answers, and each question is one of words, with its choices."""
    log = at_work(tmp_path / "fleet.db").path
    given = {"questions": [COLOUR, SIZES]}
    answer = called(log, given, ("answer", "Blue"), ("answer", "S, L"))
    answers = {"Which colour?": "Blue", "Which sizes?": "S, L"}
    assert answer == {"behavior": "allow", "updatedInput": {**given, "answers": answers}}
    first, second = asked(log)
    assert (first.kind, first.text, first.choices) == (
        Kind.QUESTION,
        "Which colour? Red: warm. Blue: cold.",
        ("Red", "Blue"),
    )
    assert (second.kind, second.text, second.choices) == (
        Kind.QUESTION,
        "Which sizes? Several may be chosen.",
        ("S", "L"),
    )
    assert first.id != second.id


def test_a_refused_question_denies_the_tool(tmp_path: Path) -> None:
    """No further question is asked, and the agent is told the reason."""
    log = at_work(tmp_path / "fleet.db").path
    answer = called(log, {"questions": [COLOUR, SIZES]}, ("reject", "--reason", "decide yourself"))
    assert answer == {"behavior": "deny", "message": "decide yourself"}
    assert len(asked(log)) == 1


OTHER_FORMS: list[Any] = [
    {},
    {"questions": "Which?"},
    {"questions": []},
    {"questions": [COLOUR, 7]},
    {"questions": [{"question": " ", "options": []}]},
    {"questions": [{"question": "Which?", "options": [{"label": 1}]}]},
    {"questions": [{"question": "x" * 10_001, "options": []}]},
    {"questions": [{"question": "Which?", "options": [{"label": str(n)} for n in range(21)]}]},
]


@pytest.mark.parametrize(
    "given",
    OTHER_FORMS,
    ids=["nothing", "text", "none", "mixed", "empty", "no-label", "long", "many"],
)
def test_an_input_of_another_form_is_a_permission(tmp_path: Path, given: dict[str, Any]) -> None:
    """A later version of the program can have another form. Then the operator sees the input and decides."""
    log = at_work(tmp_path / "fleet.db").path
    assert called(log, given, ("approve",)) == {"behavior": "allow", "updatedInput": given}
    (event,) = asked(log)
    assert (event.kind, event.tool) == (Kind.PERMISSION, "AskUserQuestion")
