"""One session: start the agent program, open its conversation, prompt it, and see the end of its turn.

SIGTERM cancels the turn, so that the agent can end its tools and save the conversation. SIGINT is a nudge for a silent
session: it cancels the turn, unless the agent waits for an operator, and a new turn of the same conversation goes on.

A message in the inbox is another prompt of the same conversation. It waits for the end of the turn; an urgent one
cancels the turn, unless the agent waits for an operator. The session is over when its last turn has left no message.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE
from importlib.metadata import version
from typing import Any, Final, cast

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.interfaces import Client
from acp.schema import (
    ClientCapabilities,
    EnvVariable,
    Implementation,
    InitializeResponse,
    McpServerStdio,
    PromptResponse,
    SessionConfigOptionSelect,
)

from lifefold.core.fleet.worker.prompt import steered
from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.acp_client.client import AgentListener
from lifefold.interpreters.acp_client.inbox import Inbox, Message
from lifefold.interpreters.acp_client.order import Order
from lifefold.interpreters.acp_client.printer import Printer
from lifefold.interpreters.adapters import hostile
from lifefold.interpreters.adapters.lines import Cutter, cut, remaining
from lifefold.interpreters.adapters.mcp_config import SERVER, VARIABLES
from lifefold.interpreters.cli.agent_tools.claim import Claim

MESSAGE_BYTES: Final = 50 << 20
"""The longest message of an agent."""

PIECE_BYTES: Final = 1 << 16
INITIALIZE_S: Final = 300
"""The longest time until a program answers the first request; one that speaks another protocol never does."""

CLOSE_S: Final = 10
"""The longest time that an agent program may take to exit by itself."""

PIPES_S: Final = 1
"""The longest time for which the pipes of a program that has exited may stay open."""

LIFEFOLD: Final = ("-P", "-m", "lifefold.interpreters.cli", "mcp")
"""The arguments of Python that start ``lifefold mcp``."""

LOGIN_NEEDED: Final = -32000
"""The code of the protocol for a request that needs a login."""

LOOK_S: Final = 0.5
"""The time between two looks into the inbox."""

NUDGE: Final = "Your turn was interrupted, because nothing was heard of you for a long time. Go on with your task."
"""The prompt after a nudge."""

LOOKING: Final = ("plan", "read-only")
"""The modes in which known agents change nothing: opencode, Gemini and Claude Code, Codex."""


class SessionFailed(Exception):
    """The session cannot go on; ``outcome`` is None if the words of the message decide."""

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        """Take the sentence for people."""
        super().__init__(message)
        self.outcome: Final = outcome


async def run(order: Order, printer: Printer, claim: Claim | None) -> int:
    """Run a session to its end, and return the exit status: 0 if a turn has ended."""
    listener = AgentListener(printer, order.permissions, claim)
    options = {"stderr": PIPE, "limit": MESSAGE_BYTES, "shutdown_timeout": CLOSE_S}
    program, *arguments = order.command
    try:
        async with spawn_agent_process(
            cast("Client", listener), program, *arguments, env=os.environ, transport_kwargs=options
        ) as (connection, process):
            errors, _end = map(asyncio.ensure_future, (_relay(process.stderr, printer), _let_go(process)))
            try:
                await Session(order, printer, listener, connection).run()
            except SessionFailed as failed:
                printer.line("failed", text=str(failed), outcome=failed.outcome)
                return 1
            except ConnectionError:
                return await _status_of(process, errors)
            return 0
    except ConnectionError:  # a program that has ended before the first request breaks the pipe at any point
        return 1
    except OSError as error:
        printer.line("failed", text=f"{program}: {error.strerror or error}", outcome=Outcome.REFUSED_COMMAND)
        return 1


async def _let_go(process: asyncio.subprocess.Process) -> None:
    """Close the pipes of a program some time after its end: waiting for it includes the end of its pipes.

    A program can be the parent of the agent, as Gemini CLI is. A killed parent leaves the agent behind, with the pipes.
    The shim of the session ends that one.
    """
    while process.returncode is None:  # noqa: ASYNC110 - asyncio has no event for it
        await asyncio.sleep(LOOK_S)
    await asyncio.sleep(PIPES_S)
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio has no other way


async def _relay(stream: asyncio.StreamReader | None, printer: Printer) -> None:
    """Print the standard error of the agent program, line by line."""
    cutter = Cutter()
    while stream is not None and (piece := await stream.read(PIECE_BYTES)):
        cutter, lines = cut(cutter, piece)
        for line in lines:
            printer.line("error", text=line.decode(errors="replace"))
    for line in remaining(cutter):
        printer.line("error", text=line.decode(errors="replace"))


async def _status_of(process: asyncio.subprocess.Process, errors: "asyncio.Future[None]") -> int:
    """Return the exit status of a program that has closed the connection; 1 if it closed it without an error."""
    try:
        async with asyncio.timeout(CLOSE_S):
            status = await process.wait()
            await errors
    except TimeoutError:
        return 1
    return status if status > 0 else 1


class Session:
    """The requests of one session."""

    def __init__(
        self, order: Order, printer: Printer, listener: AgentListener, connection: ClientSideConnection
    ) -> None:
        """Take what is to be done, and an open connection."""
        self._order: Final = order
        self._printer: Final = printer
        self._listener: Final = listener
        self._agent: Final = connection
        self._inbox: Final = Inbox(order.inbox)
        self._id = ""
        self._is_ending = False
        self._is_nudged = False

    async def run(self) -> None:
        """Open the conversation, and take turns until the agent is done. Raises ``SessionFailed``."""
        agent = await self._initialize()
        if self._order.describe:
            return
        opened = await self._open(agent)
        await self._choose(opened)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._end)
        loop.add_signal_handler(signal.SIGINT, self._nudge)
        prompt, messages = self._order.prompt, tuple[Message, ...]()
        while True:
            done = await self._turn(prompt, messages)
            is_cancelled = done.stop_reason == "cancelled"
            messages = () if self._is_ending else self._inbox.take()
            if messages:
                prompt = steered(tuple(each.text for each in messages), interrupted=is_cancelled)
            elif is_cancelled and self._is_nudged and not self._is_ending:
                prompt = NUDGE
            else:
                break
            self._is_nudged = False

    async def _initialize(self) -> InitializeResponse:
        ours = Implementation(name="lifefold", version=version("lifefold"))
        try:
            async with asyncio.timeout(INITIALIZE_S):
                found = await self._agent.initialize(
                    protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities(), client_info=ours
                )
        except TimeoutError:
            said = f"it does not answer within {INITIALIZE_S} s: does it speak the Agent Client Protocol?"
            raise SessionFailed(f"{self._order.command[0]}: {said}", Outcome.REFUSED_COMMAND) from None
        except RequestError as error:
            raise SessionFailed(words_of(error), Outcome.REFUSED_COMMAND) from error
        if found.protocol_version != PROTOCOL_VERSION:
            said = f"it speaks version {found.protocol_version} of the protocol, and lifefold {PROTOCOL_VERSION}"
            raise SessionFailed(f"{self._order.command[0]}: {said}", Outcome.REFUSED_COMMAND)
        if found.agent_info is not None:
            self._printer.line("agent", name=found.agent_info.name, version=found.agent_info.version)
        return found

    async def _open(self, agent: InitializeResponse) -> Any:
        """Resume the conversation of the order, if the agent can, or begin one; print its name."""
        can = agent.agent_capabilities
        resume = (
            can is not None and can.session_capabilities is not None and can.session_capabilities.resume is not None
        )
        load = can is not None and bool(can.load_session)
        wanted, where = self._order.resume, {"cwd": os.getcwd(), "mcp_servers": self._servers()}  # noqa: PTH109 - a text
        try:
            if wanted and (resume or load):
                opening = self._agent.resume_session if resume else self._agent.load_session
                opened = await cast("Any", opening)(session_id=wanted, **where)
                self._id, (read, written) = wanted, self._order.charged
            else:
                opened = await self._agent.new_session(**cast("Any", where))
                self._id, (read, written) = opened.session_id, (0, 0)
        except RequestError as error:
            if error.code == LOGIN_NEEDED:
                raise SessionFailed(_login(agent, error), Outcome.LOGIN_REFUSED) from error
            lost = Outcome.CONVERSATION_LOST if wanted and (resume or load) else None
            raise SessionFailed(words_of(error), lost) from error
        self._printer.line("conversation", id=self._id, input=read, output=written)
        return opened

    def _servers(self) -> list[McpServerStdio]:
        """Return the server that gives the agent the tools of ``lifefold mcp``; none without the option."""
        if not self._order.mcp:
            return []
        variables = [EnvVariable(name=name, value=os.environ.get(name, "")) for name in VARIABLES]
        return [McpServerStdio(name=SERVER, command=sys.executable, args=[*LIFEFOLD], env=variables)]

    async def _choose(self, opened: Any) -> None:
        """Choose the model of the order; and for an agent that only reads, a mode that changes nothing."""
        offered = {
            each.category: each
            for each in getattr(opened, "config_options", None) or ()
            if isinstance(each, SessionConfigOptionSelect) and isinstance(each.category, str)
        }
        try:
            if self._order.model:
                await self._choose_model(offered.get("model"))
            if self._order.permissions == "read":
                await self._choose_looking(offered.get("mode"), getattr(opened, "modes", None))
        except RequestError as error:
            raise SessionFailed(words_of(error), Outcome.REFUSED_COMMAND) from error

    async def _choose_model(self, option: SessionConfigOptionSelect | None) -> None:
        wanted = self._order.model
        if option is None:
            said = f"the agent offers no choice of a model; name {wanted} in args of the agent, in its own words"
            raise SessionFailed(said, Outcome.REFUSED_COMMAND)
        names = values_of(option)
        if wanted not in names:
            raise SessionFailed(f"model not found: {wanted}; offered: {', '.join(names)}", Outcome.MODEL_UNKNOWN)
        await self._agent.set_config_option(config_id=option.id, session_id=self._id, value=wanted)

    async def _choose_looking(self, option: SessionConfigOptionSelect | None, modes: Any) -> None:
        if option is not None and (found := next((each for each in LOOKING if each in values_of(option)), None)):
            await self._agent.set_config_option(config_id=option.id, session_id=self._id, value=found)
        elif modes is not None:
            known = {each.id for each in modes.available_modes}
            if found := next((each for each in LOOKING if each in known), None):
                await self._agent.set_session_mode(session_id=self._id, mode_id=found)

    async def _turn(self, prompt: str, messages: tuple[Message, ...]) -> PromptResponse:
        """Take one turn, and print how it ended."""
        self._listener.turn_begins(tuple(each.number for each in messages))
        watching = asyncio.ensure_future(self._watch())
        try:
            done = await self._agent.prompt(session_id=self._id, prompt=[text_block(prompt)])
        except RequestError as error:
            raise SessionFailed(words_of(error), _outcome(error)) from error
        finally:
            watching.cancel()
        self._listener.turn_is_over(done)
        return done

    async def _watch(self) -> None:
        """Cancel the turn when an urgent message comes. One whose agent waits for an operator goes on."""
        while self._order.inbox:
            self._inbox.look()
            if self._inbox.is_urgent and not self._listener.is_asking:
                self._cancel()
                return
            await asyncio.sleep(LOOK_S)

    def _end(self) -> None:
        self._is_ending = True
        self._cancel()

    def _nudge(self) -> None:
        """Cancel the turn, unless the agent waits for an operator: it is not silent then."""
        if self._listener.is_asking:
            return
        self._is_nudged = True
        self._cancel()

    def _cancel(self) -> None:
        self._listener.cancelling.set()
        self._cancelling = asyncio.ensure_future(self._cancelled())

    async def _cancelled(self) -> None:
        """Send that the turn is cancelled; a connection that is closed has no turn any more."""
        with contextlib.suppress(ConnectionError):
            await self._agent.cancel(session_id=self._id)


def values_of(option: SessionConfigOptionSelect) -> list[str]:
    """Return the values of an option, also of one with groups."""
    return [each.value for found in option.options for each in (getattr(found, "options", None) or (found,))]


def words_of(error: RequestError) -> str:
    """Return the sentence of an error for people; the protocol's own words are left out where there are better ones."""
    said = str(error)
    found = hostile.table(cast("object", error.data))
    details = hostile.first(hostile.sentence(found.get(key)) for key in ("details", "message", "error"))
    return f"{said}: {details}" if details and details not in said else said.removeprefix("Internal error: ")


def _outcome(error: RequestError) -> Outcome | None:
    return Outcome.LOGIN_REFUSED if error.code == LOGIN_NEEDED else None


def _login(agent: InitializeResponse, error: RequestError) -> str:
    """Return that a login is needed, with the agent's own words about the ways to log in."""
    ways = [each.description or each.name for each in agent.auth_methods or ()]
    return f"{words_of(error)}; {' or '.join(ways)}" if ways else words_of(error)
