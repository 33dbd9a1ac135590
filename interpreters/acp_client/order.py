"""What a client is to do: its command line, which the adapter ``acp`` makes.

``argparse`` drops a value that is ``--``, and a prompt can be that. So the words are read here.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

USAGE: Final = (
    "usage: acp_client PROGRAM (--prompt=TEXT [--resume=ID] [--charged=INPUT,OUTPUT] [--model=NAME]"
    " [--permissions=WORD] [--mcp] [--inbox=FOLDER] | --describe) -- [ARGUMENT...]"
)
"""The command line, for a person who tries the client."""


class Order(msgspec.Struct, frozen=True):
    """A session: the agent program with its arguments, and what to do in it.

    ``resume`` is the conversation to resume, empty for a new one. ``charged`` are the tokens, input and output, that
    it was charged before. With ``mcp`` the agent gets the tools of ``lifefold mcp``. The folder ``inbox`` has messages
    for the running session. With ``describe`` the agent only tells what it is.
    """

    command: tuple[str, ...]
    prompt: str = ""
    resume: str = ""
    charged: tuple[int, int] = (0, 0)
    model: str = ""
    permissions: str = ""
    mcp: bool = False
    inbox: str = ""
    describe: bool = False


def order_of(words: Sequence[str]) -> Order:
    """Return the order of a command line; exit with a usage line for another one."""
    place = words.index("--") if "--" in words else len(words)
    own, arguments = words[:place], words[place + 1 :]
    options: dict[str, object] = {}
    for word in own[1:]:
        name, is_text, value = word.removeprefix("--").partition("=")
        options[name] = value if is_text else True
    if isinstance(counts := options.get("charged"), str):
        options["charged"] = [int(each) if each.isdecimal() else each for each in counts.split(",")]
    try:
        order = msgspec.convert({"command": [*own[:1], *arguments], **options}, Order)
    except msgspec.ValidationError as error:
        raise SystemExit(f"{error}\n{USAGE}") from error
    if set(options) - set(Order.__struct_fields__) or ("prompt" in options) == order.describe or not own:
        raise SystemExit(USAGE)
    return order
