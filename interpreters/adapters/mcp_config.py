"""The configuration by which an agent program starts ``lifefold mcp`` beside a session."""

from collections.abc import Sequence
from typing import Final

import msgspec

SERVER: Final = "lifefold"
"""The name of the server in the configuration of an agent program."""

PERMISSION_TOOL: Final = f"mcp__{SERVER}__permission"
"""The name of the permission tool in Claude Code: for ``--permission-prompt-tool``."""

VARIABLES: Final = ("LIFEFOLD_AGENT", "LIFEFOLD_TASK", "LIFEFOLD_TOKEN", "LIFEFOLD_DB", "LIFEFOLD_REDACT")
"""The variables of a session that its server needs."""


def mcp_config(command: Sequence[str], variables: Sequence[str] = VARIABLES) -> str:
    """Return the JSON of ``--mcp-config``: a server that ``command`` starts, such as ``("lifefold",)``.

    The variables are named and not written out, as ``${NAME:-}``. The agent program replaces them from its own
    environment, so no argument of a process has the token. ``alwaysLoad``: Claude Code offers the tools to the model at
    once. Otherwise the model would have to search for them, and would not know that it can ask an operator.
    """
    program, *arguments = command
    environment = {name: f"${{{name}:-}}" for name in variables}
    server = {"type": "stdio", "command": program, "args": [*arguments, "mcp"], "env": environment, "alwaysLoad": True}
    return msgspec.json.encode({"mcpServers": {SERVER: server}}).decode()
