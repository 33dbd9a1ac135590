"""Run one session of an agent that speaks the Agent Client Protocol: ``python -m lifefold.interpreters.acp_client``."""

import asyncio
import os
import sys

from lifefold.interpreters.acp_client.order import order_of
from lifefold.interpreters.acp_client.printer import Printer
from lifefold.interpreters.acp_client.session import run
from lifefold.interpreters.cli.agent_tools.claim import Claim, claim_of
from lifefold.interpreters.cli.errors import BadInput


def _claim() -> Claim | None:
    """Return the claim of this session; None outside a fleet."""
    try:
        return claim_of(os.environ)
    except BadInput:
        return None


def _write(line: bytes) -> None:
    """Write a line to the output of the session, without a buffer that a kill would lose."""
    left = memoryview(line)
    while left:
        left = left[os.write(1, left) :]


if __name__ == "__main__":
    sys.exit(asyncio.run(run(order_of(sys.argv[1:]), Printer(_write), _claim())))
