"""The claim of the session around this process, as its environment has it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.inside import token_parts
from lifefold.interpreters.explain.why.phrases import enumerated

NEEDED: Final = ("LIFEFOLD_AGENT", "LIFEFOLD_TASK", "LIFEFOLD_TOKEN", "LIFEFOLD_DB")
"""The variables that name a claim; each session of a fleet has them."""


class Claim(msgspec.Struct, frozen=True):
    """A claim: its agent, its task, its number (``epoch``), its secret, and the log of its fleet."""

    agent: str
    task: str
    epoch: int
    secret: str
    log: Path

    @property
    def actor(self) -> str:
        """The actor of the session's commands."""
        return f"session:{self.agent}"


def claim_of(around: Mapping[str, str]) -> Claim:
    """Return the claim of an environment. Raises ``BadInput`` if a variable is missing or wrong."""
    missing = [name for name in NEEDED if not around.get(name)]
    if missing:
        raise BadInput(
            f"lifefold mcp is for the session of an agent, whose environment has {enumerated(NEEDED)};"
            f" here it lacks {enumerated(missing)}"
        )
    agent, task, token, log = (around[name] for name in NEEDED)
    return Claim(agent, task, *token_parts(token), Path(log))
