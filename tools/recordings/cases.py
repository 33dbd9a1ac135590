"""The sessions of agent programs that are recorded, and that the tests repeat with the real programs."""

from typing import Final

import msgspec

from lifefold.interpreters.adapters import Permissions
from model_service import Mode

ASK: Final = "Write made.txt"
CHOSEN: Final = "5b0f8f4e-3c1d-4c58-9a51-000000000001"
"""The identifier of a conversation that is chosen beforehand."""

LOST: Final = "5b0f8f4e-3c1d-4c58-9a51-00000000dead"
UNKNOWN: Final = {"opencode": "ses_000000000000000000000000ab"}
"""The identifiers of conversations that are not there, of programs with another form than a UUID."""


TRIES: Final = {"aider": 4}
"""The errors after which a program has printed the first of them, of programs that need more than the others."""


class Case(msgspec.Struct, frozen=True):
    """A session to record.

    ``after`` is the case before it, in the same home. ``conversation`` is "new" for a chosen identifier, and "resumed"
    for the one of the case before. It is "lost" for a missing one, and empty for one of the program's own. ``asked`` is
    how the permission tool answers; an empty one is no such tool. ``settings`` change the program's settings.
    """

    mode: Mode
    permissions: Permissions = Permissions.DEFAULT
    prompt: str = ASK
    after: str = ""
    conversation: str = ""
    turns: int | None = None
    budget_microusd: int | None = None
    arguments: tuple[str, ...] = ()
    asked: str = ""
    settings: str = ""


_EDIT, _ALL = Permissions.EDIT, Permissions.ALL

COMMON: Final = {
    "success": Case(Mode.TEXT, conversation="new"),
    "resumed": Case(Mode.TEXT, prompt="--help", after="success", conversation="resumed"),
    "written": Case(Mode.WRITE, _ALL),
    "failing-command": Case(Mode.SHELL, _ALL),
    "killed": Case(Mode.HANG, _ALL),
    "continued": Case(Mode.TEXT, after="killed", conversation="resumed"),
    "limit": Case(Mode.LIMIT),
    "rate": Case(Mode.RATE),
    "overloaded": Case(Mode.OVERLOADED),
    "too-long": Case(Mode.TOO_LONG),
    "login": Case(Mode.LOGIN),
    "credit": Case(Mode.CREDIT),
    "lost-conversation": Case(Mode.TEXT, conversation="lost"),
}
"""The cases of all programs."""

CASES: Final[dict[str, dict[str, Case]]] = {
    "claude": {
        **COMMON,
        "written": Case(Mode.WRITE, _EDIT),
        "killed": Case(Mode.HANG, _EDIT),
        "failing-command": Case(Mode.SHELL, arguments=("--allowedTools=Bash",)),
        "denied": Case(Mode.WRITE),
        "asked-and-allowed": Case(Mode.WRITE, asked="allow"),
        "asked-and-refused": Case(Mode.WRITE, asked="deny"),
        "limit": Case(Mode.LIMIT, settings="subscription"),
        "turns": Case(Mode.WRITE, _EDIT, turns=1),
        "budget": Case(Mode.WRITE, _EDIT, budget_microusd=100),
        "taken-conversation": Case(Mode.TEXT, after="success", conversation="new"),
        "compacted": Case(Mode.TEXT, prompt="/compact", after="success", conversation="resumed"),
    },
    "codex": {**COMMON, "read-only": Case(Mode.WRITE, Permissions.READ)},
    "opencode": {
        **COMMON,
        "denied": Case(Mode.WRITE, settings="ask"),
    },
    "gemini": {
        **COMMON,
        "lost-conversation": Case(Mode.TEXT, after="success", conversation="lost"),
        "not-offered": Case(Mode.WRITE),
        "turns": Case(Mode.WRITE, _ALL, settings="one-turn"),
    },
    "aider": {
        key: msgspec.structs.replace(case, permissions=_ALL)
        for key, case in COMMON.items()
        if key not in {"failing-command", "lost-conversation", "rate"}
    },
}
"""The cases of each program."""
