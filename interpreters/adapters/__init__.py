"""Adapters of agent programs: a brief becomes a command line, lines of output become facts. Pure.

Each program has one module. ``facts`` is the vocabulary that all of them share, ``adapter`` the protocol, ``registry``
the adapters by name. docs/adapters.md shows how to write one.
"""

from lifefold.interpreters.adapters.adapter import (
    MAX_LINE_BYTES,
    Adapter,
    Brief,
    Conversation,
    Now,
    Permissions,
    Reports,
    steers,
)
from lifefold.interpreters.adapters.facts import (
    PHASES,
    ConversationBegan,
    Cost,
    Counted,
    Ended,
    Fact,
    Limited,
    MessageTaken,
    ModelCost,
    PermissionDenied,
    PermissionWanted,
    Said,
    Spent,
    Tokens,
    Work,
    WorkEnded,
    WorkStarted,
)
from lifefold.interpreters.adapters.lines import Cutter, cut, remaining
from lifefold.interpreters.adapters.login import Login, LoginFile, login_of
from lifefold.interpreters.adapters.registry import (
    AdapterError,
    adapter_names,
    adapter_of,
    adapter_or_command,
    is_adapter,
)

__all__ = [
    "MAX_LINE_BYTES",
    "PHASES",
    "Adapter",
    "AdapterError",
    "Brief",
    "Conversation",
    "ConversationBegan",
    "Cost",
    "Counted",
    "Cutter",
    "Ended",
    "Fact",
    "Limited",
    "Login",
    "LoginFile",
    "MessageTaken",
    "ModelCost",
    "Now",
    "PermissionDenied",
    "PermissionWanted",
    "Permissions",
    "Reports",
    "Said",
    "Spent",
    "Tokens",
    "Work",
    "WorkEnded",
    "WorkStarted",
    "adapter_names",
    "adapter_of",
    "adapter_or_command",
    "cut",
    "is_adapter",
    "login_of",
    "remaining",
    "steers",
]
