"""The command line of an agent program: its adapter translates the brief of a session and its conversation.

In a fleet with questions the brief has ``lifefold mcp``, if its package is installed here.
"""

import sys
from importlib.util import find_spec
from typing import Final

from lifefold.core.fleet.worker import conversation, question, steering, usage
from lifefold.core.kernel import Aggregate, replace
from lifefold.interpreters.adapters import Brief, Conversation, Tokens, adapter_of
from lifefold.interpreters.adapters.adapter import Spoken
from lifefold.interpreters.adapters.mcp_config import PERMISSION_TOOL, SERVER, mcp_config
from lifefold.interpreters.fleet_file import expand
from lifefold.interpreters.fleet_file.model import Agent, AgentProgram

LIFEFOLD: Final = (sys.executable, "-m", "lifefold.interpreters.cli")
"""The command that starts this installation of lifefold."""

CLIENT: Final = (sys.executable, "-P", "-m")
"""The command before the module of a client: without ``-P`` a module of the worktree could take its place."""


def program_argv(
    agent: Agent, program: AgentProgram, prompt: str, worker: Aggregate, inbox: str = ""
) -> tuple[str, ...]:
    """Return the command line of a session; the command of the agent is the program, in place of the adapter's.

    ``inbox`` is the folder with the messages for the running session, for a program that can be steered.
    """
    brief = Brief(
        prompt,
        model=program.model,
        permissions=program.permissions,
        arguments=program.arguments,
        budget_microusd=usage.left(worker).microusd,
        inbox=inbox if steering.REF in worker.entities else "",
    )
    if question.REF in worker.entities and find_spec("mcp") is not None:
        brief = replace(brief, permission_tool=PERMISSION_TOOL, mcp_config=mcp_config(LIFEFOLD), mcp_server=SERVER)
    adapter = adapter_of(program.adapter)
    _, *words = adapter.argv(brief, conversation_of(worker))
    client = (*CLIENT, adapter.client) if isinstance(adapter, Spoken) else ()
    return (*client, *expand(agent.command, prompt="", prompt_file="", task="", worktree=""), *words)


def conversation_of(worker: Aggregate) -> Conversation | None:
    """Return the conversation of a worker's session; None in a fleet without conversations, and before the first."""
    found = worker.entities.get(conversation.REF)
    if found is None or not found.record.id:
        return None
    of: conversation.Conversation = found.record
    return Conversation(of.id, of.is_begun, Tokens(input=of.charged.input_tokens, output=of.charged.output_tokens))
