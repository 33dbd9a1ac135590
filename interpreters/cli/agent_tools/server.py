"""The MCP server of a session, over its standard input and output.

Every tool acts on the task of the session's claim and on no other. ``permission`` answers in the form of Claude Code's
``--permission-prompt-tool``: JSON in a text, without structured output. An error of the log becomes a refusal, so that
an agent is told what is wrong and nothing is allowed by mistake.
"""

import json
from collections.abc import Awaitable
from functools import partial
from importlib.metadata import version
from typing import Any, Final
from uuid import uuid4

from anyio import to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from lifefold.core.fleet.worker.question_model import (
    MOST_CHARACTERS,
    MOST_CHOICES,
    Answer,
    QuestionAsked,
    Verdict,
)
from lifefold.core.policy.standing import subject_of
from lifefold.interpreters.cli import inside
from lifefold.interpreters.cli.agent_tools import own_task
from lifefold.interpreters.cli.agent_tools.asking import FAILURES, MOST_NAME, UNREASONED, answer_to, permission_asked
from lifefold.interpreters.cli.agent_tools.claim import Claim
from lifefold.interpreters.cli.agent_tools.program_questions import ProgramQuestion, asked_in_words, questions_of

INSTRUCTIONS: Final = (
    "Tools for the task that you work at. Use ask_operator when only a person can decide. "
    "It may take long until an answer comes; wait for it."
)


class Tools:
    """The tools of one claim. Those that return a text raise ``ToolError`` for a refusal."""

    def __init__(self, claim: Claim) -> None:
        """Make the tools of a claim."""
        self._claim = claim

    async def permission(self, tool_name: str, input: dict[str, Any], tool_use_id: str = "") -> str:  # noqa: A002 - the protocol's name
        """Ask whether a tool may be used. Answers with JSON: behavior "allow" with the input, or "deny"."""
        if questions := questions_of(tool_name, input):
            return await self._answers(questions, input, tool_use_id)
        event = permission_asked(_identifier(tool_use_id), tool_name, subject_of(input), input)
        answer = await answer_to(self._claim, event)
        if answer.verdict is Verdict.ALLOWED:
            return _allowed(input)
        return _denied(answer)

    async def _answers(self, questions: tuple[ProgramQuestion, ...], given: dict[str, Any], tool_use_id: str) -> str:
        """Ask the questions of the program's own tool, one after the other; one without an answer denies the tool."""
        answers: dict[str, str] = {}
        for number, each in enumerate(questions):
            # An asker that asks again finds its answers: the identifiers are those of the call.
            identifier = f"{tool_use_id[: MOST_NAME - 3]}/{number}" if tool_use_id else ""
            answer = await answer_to(self._claim, asked_in_words(each, _identifier(identifier)))
            if answer.verdict is not Verdict.ANSWERED:
                return _denied(answer)
            answers[each.question] = answer.text
        return _allowed({**given, "answers": answers})

    async def ask_operator(self, question: str, choices: list[str] | None = None, question_id: str = "") -> str:
        """Ask the operator a question in words, perhaps with choices, and wait for the answer."""
        given = [question, *(choices or ())]
        if not question.strip() or any(len(each) > MOST_CHARACTERS for each in given) or len(given) > MOST_CHOICES + 1:
            accepted = f"a text of 1 to {MOST_CHARACTERS} characters, and at most {MOST_CHOICES} choices"
            raise ToolError(f"accepted: {accepted}")
        text, *offered = map(inside.hidden, given)
        answer = await answer_to(
            self._claim, QuestionAsked(id=_identifier(question_id), text=text, choices=tuple(offered))
        )
        if answer.verdict is Verdict.ANSWERED:
            return answer.text
        raise ToolError(f"there is no answer: {answer.text or UNREASONED}")

    async def split(self, parts: list[dict[str, Any]]) -> str:
        """Split your task into parts, each with "prompt", and perhaps "verify" and "files"; your session then ends."""
        return await _said(to_thread.run_sync(partial(own_task.split, self._claim, parts)))

    async def report(self, tool: str, reason: str = "") -> str:
        """Report that a call of a tool was aborted; your session goes on."""
        return await _said(to_thread.run_sync(partial(own_task.report, self._claim, tool, reason)))

    async def task(self) -> str:
        """Return your task as JSON: its prompt, how it is verified, its parts, and why it failed before."""
        return await _said(to_thread.run_sync(partial(own_task.task, self._claim)))


async def _said(work: Awaitable[str]) -> str:
    """Return the answer of a tool. Raises ``ToolError`` with the reason of a refusal."""
    try:
        return await work
    except FAILURES as error:
        raise ToolError(str(error)) from error


def _allowed(given: dict[str, Any]) -> str:
    return json.dumps({"behavior": "allow", "updatedInput": given}, ensure_ascii=False)


def _denied(answer: Answer) -> str:
    return json.dumps({"behavior": "deny", "message": answer.text or UNREASONED})


def _identifier(given: str) -> str:
    """Return the identifier of a question; a new one if its asker has given none."""
    return given[:MOST_NAME] or uuid4().hex


def server_of(claim: Claim) -> MCPServer[Any]:
    """Return the server with the tools of a claim."""
    server: MCPServer[Any] = MCPServer(
        "lifefold", version=version("lifefold"), instructions=INSTRUCTIONS, log_level="WARNING"
    )
    tools = Tools(claim)
    for each in (tools.permission, tools.ask_operator, tools.split, tools.report, tools.task):
        server.tool(structured_output=False)(each)
    return server
