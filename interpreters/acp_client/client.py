"""The client's side of the connection: what the agent reports, and what it asks.

The client offers no file system and no terminal, so an agent uses its own. Reports before the first prompt repeat an
earlier session, and only their cost counts.
"""

import asyncio
from typing import Any, Final

import msgspec
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
)

from lifefold.interpreters.acp_client import permission
from lifefold.interpreters.acp_client.printer import Printer
from lifefold.interpreters.adapters import Tokens, hostile
from lifefold.interpreters.cli.agent_tools.claim import Claim

OVER: Final = frozenset({"completed", "failed"})
"""The states of a tool's call that are its end."""


class AgentListener:
    """Prints the reports of an agent, and answers its requests for leave.

    ``is_prompted`` is set with the first prompt. ``cancelling`` is set when the turn is to end, and answers the open
    requests.
    """

    def __init__(self, printer: Printer, permissions: str, claim: Claim | None) -> None:
        """Take the permissions of the agent, and the claim of the session, if there is one."""
        self.is_prompted = False
        self.cancelling: Final = asyncio.Event()
        self._printer: Final = printer
        self._permissions: Final = permissions
        self._claim: Final = claim
        self._kinds: dict[str, str] = {}
        self._held: set[str] = set()
        self._over: set[str] = set()
        self._turns = 0
        self._messages: tuple[int, ...] = ()
        self._asking = 0

    @property
    def is_asking(self) -> bool:
        """Whether a request for leave waits for its answer."""
        return self._asking > 0

    def on_connect(self, conn: Any) -> None:
        """Do nothing: the session sends the requests."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:  # noqa: ARG002 - the protocol's names
        """Print a report of the agent. One without meaning here, such as a plan, is not printed."""
        if isinstance(update, UsageUpdate):
            if update.cost is not None:
                self._printer.line("cost", amount=update.cost.amount, currency=update.cost.currency)
        elif self.is_prompted:
            self._report(update)

    def _report(self, update: Any) -> None:
        self._has_begun()
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                self._printer.say("text", text)
            case AgentThoughtChunk(content=TextContentBlock(text=text)):
                self._printer.say("thought", text)
            case ToolCallStart() | ToolCallProgress():
                self._tool(update)
            case _:
                self._printer.flush()  # between the texts of an earlier conversation and the answer of this turn

    def _tool(self, call: ToolCallStart | ToolCallProgress) -> None:
        """Print the beginning and the end of a tool's call, each once: agents repeat a call with more output.

        A model writes the input of a tool piece by piece. A call without any input yet is printed with its next report.
        """
        name = call.tool_call_id
        if name in self._over:
            return
        if name not in self._kinds and _has_no_input_yet(call):
            self._kinds[name] = permission.kind_of(call)
            self._held.add(name)
            return
        if name not in self._kinds or name in self._held:
            self._begins(call)
        if call.status in OVER:
            self._over.add(name)
            self._printer.line("tool_over", id=name, ok=call.status == "completed")

    def _begins(self, call: ToolCallStart | ToolCallProgress | ToolCallUpdate) -> None:
        """Print the beginning of a tool's call."""
        name = call.tool_call_id
        self._held.discard(name)
        self._kinds[name] = permission.kind_of(call, self._kinds.get(name, ""))
        self._printer.line("tool", id=name, kind=self._kinds[name], subject=permission.subject_in(call))

    async def request_permission(
        self,
        session_id: str,  # noqa: ARG002 - the protocol's names
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **_: Any,
    ) -> RequestPermissionResponse:
        """Answer a request for leave; a turn that is to end cancels it."""
        self._has_begun()
        if self.cancelling.is_set():
            return permission.cancelled()
        if tool_call.tool_call_id in self._held:
            self._begins(tool_call)
        self._asking += 1
        try:
            return await self._answer(tool_call, options)
        finally:
            self._asking -= 1

    async def _answer(self, tool_call: ToolCallUpdate, options: list[PermissionOption]) -> RequestPermissionResponse:
        kind = permission.kind_of(tool_call, self._kinds.get(tool_call.tool_call_id, ""))
        deciding = asyncio.ensure_future(permission.decided(tool_call, kind, self._permissions, self._claim))
        ending = asyncio.ensure_future(self.cancelling.wait())
        try:
            await asyncio.wait({deciding, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not deciding.done():
                return permission.cancelled()
            decision = deciding.result()
        finally:
            for each in (deciding, ending):
                each.cancel()
        answer = permission.answer(decision, options)
        if not decision.allows or answer is None:
            reason = decision.reason or permission.NO_OPTION
            self._printer.line("denied", id=tool_call.tool_call_id, kind=kind, reason=reason)
        return answer or permission.cancelled()

    def turn_begins(self, messages: tuple[int, ...] = ()) -> None:
        """Print the beginning of a turn, with the numbers of its messages; reports count from now on."""
        self._messages = messages
        self._turns += 1
        self.is_prompted = True
        self.cancelling.clear()
        self._printer.line("turn", turn=self._turns)

    def turn_is_over(self, done: PromptResponse) -> None:
        """Print the tokens of a turn, and how it ended."""
        self._has_begun()
        if (used := tokens_of(done)) is not None:
            self._printer.line("used", turn=self._turns, **msgspec.structs.asdict(used))
        self._printer.line("turn_over", turn=self._turns, reason=done.stop_reason)

    def _has_begun(self) -> None:
        """Print the messages that the agent has taken: it has begun with the prompt that has them."""
        taken, self._messages = self._messages, ()
        for number in taken:
            self._printer.line("taken", number=number)


def _has_no_input_yet(call: ToolCallStart | ToolCallProgress) -> bool:
    """Tell whether a call is announced before the model has written its input."""
    return call.raw_input == {} and call.status in {None, "pending"} and not permission.subject_in(call)


def tokens_of(done: PromptResponse) -> Tokens | None:
    """Return the tokens of a turn; None if the agent does not tell them. Gemini tells them in a place of its own.

    Some agents count thoughts in the output, and others beside it. The sum of all kinds tells them apart.
    """
    if done.usage is not None:
        read, written = done.usage.cached_read_tokens or 0, done.usage.cached_write_tokens or 0
        told = Tokens(done.usage.input_tokens, read, written, done.usage.output_tokens)
        is_beside = done.usage.total_tokens > done.usage.input_tokens + read + written + done.usage.output_tokens
        return told.plus(Tokens(output=done.usage.thought_tokens or 0)) if is_beside else told
    counts = hostile.table(hostile.table(hostile.table(done.field_meta).get("quota")).get("token_count"))
    if not counts:
        return None
    return Tokens(input=hostile.count(counts.get("input_tokens")), output=hostile.count(counts.get("output_tokens")))
