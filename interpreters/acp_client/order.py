"""What a client is to do: its command line, which the adapter ``acp`` makes."""

from argparse import ArgumentParser
from collections.abc import Sequence

import msgspec

_COUNTS = 2


class Order(msgspec.Struct, frozen=True):
    """A session: the agent program with its arguments, and what to do in it.

    ``resume`` is the conversation to resume, empty for a new one. ``charged`` are the tokens, input and output, that
    it was charged before. With ``mcp`` the agent gets the tools of ``lifefold mcp``. With ``describe`` the agent only
    tells what it is.
    """

    command: tuple[str, ...]
    prompt: str
    resume: str = ""
    charged: tuple[int, int] = (0, 0)
    model: str = ""
    permissions: str = ""
    mcp: bool = False
    describe: bool = False


def order_of(words: Sequence[str]) -> Order:
    """Return the order of a command line; exit with status 2 for another one."""
    parser = ArgumentParser("acp_client", description=__doc__, allow_abbrev=False)
    parser.add_argument("program")
    parser.add_argument("--resume", default="", metavar="ID")
    parser.add_argument("--charged", default="0,0", metavar="INPUT,OUTPUT")
    parser.add_argument("--model", default="")
    parser.add_argument("--permissions", default="")
    parser.add_argument("--mcp", action="store_true")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prompt", default="")
    what.add_argument("--describe", action="store_true")
    own, arguments = _parts(words)
    found = parser.parse_args(own)
    counts = found.charged.split(",")
    if len(counts) != _COUNTS or not all(each.isdecimal() for each in counts):
        parser.error("--charged: accepted: two numbers of tokens, as in 120,30")
    charged = (int(counts[0]), int(counts[1]))
    command = (found.program, *arguments)
    return Order(
        command, found.prompt, found.resume, charged, found.model, found.permissions, found.mcp, found.describe
    )


def _parts(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of the client, and those of the agent program after ``--``."""
    place = words.index("--") if "--" in words else len(words)
    return [*words[:place]], [*words[place + 1 :]]
