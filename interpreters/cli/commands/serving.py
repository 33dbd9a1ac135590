"""The command ``mcp``: a server of the Model Context Protocol for the agent that runs it, at its own task."""

import os
from argparse import Namespace

from lifefold.interpreters.cli.agent_tools.claim import claim_of
from lifefold.interpreters.cli.errors import BadInput


def mcp(_arguments: Namespace) -> None:
    """Serve the tools of this session over standard input and output until the input ends."""
    claim = claim_of(os.environ)
    try:
        from lifefold.interpreters.cli.agent_tools.server import server_of  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise BadInput("lifefold mcp needs the package mcp: pip install 'lifefold[mcp]'") from error
    server_of(claim).run("stdio")
