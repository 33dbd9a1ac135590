"""A request of an agent for leave to use a tool: what the fleet decides, and the answer in the protocol's form.

The permissions of the agent decide first, by the table of the core. What they leave open is a question in the log, like
that of ``lifefold mcp``: a standing answer or an operator decides. A session outside a fleet refuses.
"""

from pathlib import Path
from typing import Any, Final, cast
from uuid import uuid4

import msgspec
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from lifefold.core.fleet.worker.question_model import QuestionAsked, Verdict
from lifefold.core.policy.standing import subject_of
from lifefold.core.policy.tool_leave import Leave, leave_of
from lifefold.interpreters.adapters import hostile
from lifefold.interpreters.adapters.acp import ANY_TOOL
from lifefold.interpreters.cli.agent_tools.asking import UNREASONED, answer_to, permission_asked
from lifefold.interpreters.cli.agent_tools.claim import Claim

NOT_PERMITTED: Final = "the permissions of the agent do not allow it"
NO_CLAIM: Final = "there is no operator to ask: this session has no claim of a fleet"
NO_OPTION: Final = "the agent offers no leave for one use"

PATIENCE_S: Final = 10.0
"""How long a request waits for the runner to read that its session has taken an urgent message."""


class Decision(msgspec.Struct, frozen=True):
    """Whether a tool may be used; ``reason`` says why not."""

    allows: bool
    reason: str = ""


async def decided(call: ToolCallUpdate, kind: str, permissions: str, claim: Claim | None) -> Decision:
    """Decide about a request; ask an operator if it is open, and wait for the answer."""
    match leave_of(permissions, kind, is_inside=_is_inside(call, Path.cwd())):
        case Leave.ALLOWED:
            return Decision(allows=True)
        case Leave.REFUSED:
            return Decision(allows=False, reason=NOT_PERMITTED)
        case Leave.ASKED:
            return await _asked(call, kind, claim)


async def _asked(call: ToolCallUpdate, kind: str, claim: Claim | None) -> Decision:
    if claim is None:
        return Decision(allows=False, reason=NO_CLAIM)
    answer = await answer_to(claim, question_of(call, kind), PATIENCE_S)
    allows = answer.verdict is Verdict.ALLOWED
    return Decision(allows, "" if allows else answer.text or UNREASONED)


def question_of(call: ToolCallUpdate, kind: str) -> QuestionAsked:
    """Return the question of a request.

    Its identifier is new, because agents number their calls anew in each session. Some inputs name neither a command
    nor a path, and a title is for people only. So a standing answer with a pattern does not allow a title.
    """
    subject = subject_in(call)
    shown = subject or call.title or ""
    return permission_asked(uuid4().hex, kind or ANY_TOOL, shown, cast("object", call.raw_input), is_cut=not subject)


def subject_in(call: Any) -> str:
    """Return what a call acts on: the command, the path or the address of its input, or its only place."""
    given = hostile.table(cast("object", call.raw_input))
    places = [each.path for each in call.locations or ()]
    return subject_of(given) or (places[0] if len(places) == 1 else "")


def _is_inside(call: ToolCallUpdate, folder: Path) -> bool:
    """Tell whether all places that a call names are in a folder; a call without any is nowhere."""
    home = folder.resolve()
    places = [(home / each.path).resolve() for each in call.locations or ()]
    return bool(places) and all(each.is_relative_to(home) for each in places)


def answer(decision: Decision, options: list[PermissionOption]) -> RequestPermissionResponse | None:
    """Return the answer to the options of a request; None if an allowed tool has no option for one use."""
    wanted = "allow_once" if decision.allows else "reject_once"
    option = next((each.option_id for each in options if each.kind == wanted), None)
    if option is not None:
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option))
    return None if decision.allows else cancelled()


def cancelled() -> RequestPermissionResponse:
    """Return the answer to a request whose turn is over."""
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


def kind_of(call: Any, known: str = "") -> str:
    """Return the kind of a tool's call; ``known`` is that of an earlier message."""
    return call.kind or known or ANY_TOOL
