"""Claude Code: ``claude -p --output-format stream-json --verbose``.

Recorded: 2.1.330 and 2.1.197 (tests/data/adapters). A session prints ``system`` (``init``), ``assistant`` and ``user``
messages with tools in their content, ``rate_limit_event``, and at its end ``result``.

*Costs.* ``modelUsage`` and ``total_cost_usd`` are totals of the conversation in versions that also print
``model_usage_since_last_result``, and of the session in older ones. Their difference is the total before the session:
the program saves its total at its end, and a killed session is in no later total. It prints no result; until then the
usage of its messages counts. That has few output tokens, because a message is printed before it is complete.

*Denials.* A session whose tool was refused ends with ``is_error: false`` and exit status 0.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Any, ClassVar, Final

import msgspec

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import hostile, reading
from lifefold.interpreters.adapters.adapter import Brief, Conversation, Now, Permissions, Reports
from lifefold.interpreters.adapters.facts import Cost, Counted, Ended, ModelCost, Tokens, Work
from lifefold.interpreters.adapters.login import Login, LoginFile
from lifefold.interpreters.adapters.reading import Reading, Step
from lifefold.interpreters.adapters.until import believed

_MODES: Final = {Permissions.READ: "plan", Permissions.EDIT: "acceptEdits", Permissions.ALL: "bypassPermissions"}

_ERRORS: Final = {
    "authentication_failed": Outcome.LOGIN_REFUSED,
    "oauth_org_not_allowed": Outcome.LOGIN_REFUSED,
    "account_on_hold": Outcome.LOGIN_REFUSED,
    "verification_required": Outcome.LOGIN_REFUSED,
    "cloud_credential_error": Outcome.LOGIN_REFUSED,
    "billing_error": Outcome.OUT_OF_CREDIT,
    "rate_limit": Outcome.LIMITED,
    "overloaded": Outcome.OVERLOADED,
    "model_not_found": Outcome.MODEL_UNKNOWN,
    "error_max_turns": Outcome.TURN_LIMIT,
    "error_max_budget_usd": Outcome.BUDGET_SPENT,
    "prompt_too_long": Outcome.PROMPT_TOO_LONG,
}
"""The outcomes of the program's own error names: of a message's ``error``, and a result's reason and ``subtype``."""

_STATUSES: Final = {
    401: Outcome.LOGIN_REFUSED,
    413: Outcome.PROMPT_TOO_LONG,
    429: Outcome.LIMITED,
    529: Outcome.OVERLOADED,
}


class _Line(msgspec.Struct, frozen=True):
    """The relevant fields of a line, of any type, because agents write them."""

    type: Any = None
    subtype: Any = None
    session_id: Any = None
    message: Any = None
    error: Any = None
    status: Any = None
    uuid: Any = None
    compact_result: Any = None
    tool_name: Any = None
    tool_use_id: Any = None
    rate_limit_info: Any = None
    is_error: Any = None
    api_error_status: Any = None
    terminal_reason: Any = None
    result: Any = None
    errors: Any = None
    permission_denials: Any = None
    total_cost_usd: Any = None
    usage: Any = None
    model_usage: Any = msgspec.field(name="modelUsage", default=None)
    since_last: Any = msgspec.field(name="model_usage_since_last_result", default=None)


_COMPACTION: Final = "compaction "
_DECODER: Final = hostile.decoder(_Line)


class Claude:
    """Claude Code in its printing mode."""

    name = "claude"
    initial = Reading()
    resumable = True
    chooses_conversation = True
    reports = Reports.USD
    tested_versions = ("2.1.197", "2.1.330")
    version_argv = ("claude", "--version")
    refused_to_root: ClassVar[Mapping[Permissions, str]] = {Permissions.ALL: "IS_SANDBOX"}
    login = Login(
        variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        settings=("ANTHROPIC_BASE_URL",),
        files=(LoginFile(".claude", ".credentials.json", "CLAUDE_CONFIG_DIR"),),
        elsewhere="the keychain of macOS, a cloud provider, or apiKeyHelper in its settings",
    )

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        """Return the command line. As root the program refuses ``bypassPermissions`` outside a sandbox."""
        words = ["claude", "-p", "--output-format", "stream-json", "--verbose"]
        if conversation is not None:
            words.append(f"--{'resume' if conversation.begun else 'session-id'}={conversation.id}")
        if brief.model:
            words.append(f"--model={brief.model}")
        if mode := _MODES.get(brief.permissions):
            words.append(f"--permission-mode={mode}")
        if brief.mcp_config:
            words += [f"--mcp-config={brief.mcp_config}", f"--allowedTools=mcp__{brief.mcp_server}"]
        if brief.permission_tool:
            words.append(f"--permission-prompt-tool={brief.permission_tool}")
        if brief.budget_microusd is not None:
            words.append(f"--max-budget-usd={brief.budget_microusd / 1e6:.6f}")
        if brief.turns is not None:
            words.append(f"--max-turns={brief.turns}")
        return (*words, *brief.arguments, "--", brief.prompt)

    def resume_argv(self, conversation: Conversation) -> tuple[str, ...]:
        """Return the command that resumes a conversation at a terminal."""
        return ("claude", f"--resume={conversation.id}")

    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        """Return the facts of one line."""
        found = hostile.decoded(_DECODER, line)
        if found is None:
            return _outside(state, line)
        state, facts = reading.began(state, hostile.name(found.session_id))
        state, more = _facts(state, found, now)
        return state, facts + more

    def finish(self, state: Reading, status: int | None) -> Ended:
        """Return the end of the session."""
        return reading.closed(state, status)


def _outside(state: Reading, line: bytes) -> Step:
    """Keep a line of text: the program reports there that it cannot begin."""
    text = hostile.plain(line)
    if text.startswith("Error: Session ID"):
        return reading.judged(state, Outcome.CONVERSATION_LOST, text.removeprefix("Error: ")), ()
    return reading.noted(state, text), ()


def _facts(state: Reading, line: _Line, now: Now) -> Step:
    match line.type:
        case "assistant":
            return _message(state, line)
        case "user":
            return _results(state, hostile.table(line.message))
        case "rate_limit_event":
            return _limit(state, hostile.table(line.rate_limit_info), now)
        case "system":
            return _system(state, line)
        case "result":
            return _result(state, line, now)
        case _:
            return state, ()


def _system(state: Reading, line: _Line) -> Step:
    if line.subtype == "permission_denied":
        tool, reason = hostile.name(line.tool_name), hostile.sentence(line.message)
        return reading.denied(state, hostile.name(line.tool_use_id), tool, reason)
    return _status(state, line) if line.subtype in ("status", "compact_boundary") else (state, ())


def _status(state: Reading, line: _Line) -> Step:
    """Read what the program is busy with; a compaction is over when it is busy with something else."""
    if line.status == "compacting":
        return reading.started(state, Work.COMPACTION, f"{_COMPACTION}{hostile.name(line.uuid)}")
    under_way = next((each for each, _ in state.open if each.startswith(_COMPACTION)), "")
    return reading.ended(state, Work.COMPACTION, under_way, ok=line.compact_result != "failed")


def _message(state: Reading, line: _Line) -> Step:
    """Read a message of the model: texts, tools that begin, and its usage. An error is one of the program itself."""
    message = hostile.table(line.message)
    content = [*map(hostile.table, hostile.items(message.get("content")))]
    if isinstance(line.error, str):
        reason = hostile.first(hostile.sentence(each.get("text")) for each in content)
        return reading.judged(state, _ERRORS.get(line.error, Outcome.FAILED), reason), ()
    facts: reading.Facts = ()
    for each in content:
        if each.get("type") == "tool_use":
            identifier, tool = hostile.name(each.get("id")), hostile.name(each.get("name"))
            state, more = reading.started(state, Work.TOOL, identifier, tool, hostile.subject(each.get("input")))
        else:
            state, more = reading.said(state, hostile.sentence(each.get("text")))
        facts += more
    usage = hostile.table(message.get("usage"))
    state, more = reading.step_spent(state, hostile.name(message.get("id")), Cost(_tokens(usage, _MESSAGE_KEYS)))
    return state, facts + more


def _results(state: Reading, message: dict[str, Any]) -> Step:
    """Read the results of tools. The text of a result is the tool's, and no word of the agent."""
    facts: reading.Facts = ()
    for each in map(hostile.table, hostile.items(message.get("content"))):
        if each.get("type") == "tool_result":
            identifier = hostile.name(each.get("tool_use_id"))
            state, more = reading.ended(state, Work.TOOL, identifier, ok=each.get("is_error") is not True)
            facts += more
    return state, facts


def _limit(state: Reading, info: dict[str, Any], now: Now) -> Step:
    """Read the state of the account's limit; it rests if requests are rejected, unless it pays for more."""
    if info.get("status") != "rejected" or info.get("isUsingOverage") is True:
        return state, ()
    scope, until_ms = hostile.name(info.get("rateLimitType")), believed(info.get("resetsAt"), now)
    return reading.limited(state, "", now, until_ms=until_ms, scope=scope)


def _result(state: Reading, line: _Line, now: Now) -> Step:
    """Read the end of a turn: refused tools, the cost, and the outcome with its sentence."""
    facts: reading.Facts = ()
    for each in map(hostile.table, hostile.items(line.permission_denials)):
        identifier = hostile.name(each.get("tool_use_id"))
        state, more = reading.denied(state, identifier, hostile.name(each.get("tool_name")), "")
        facts += more
    state, more = _spent(state, line)
    facts += more
    reason = hostile.first(map(hostile.sentence, (line.result, *hostile.items(line.errors))))
    if line.is_error is not True:
        return reading.judged(state, Outcome.SUCCESS, reason), facts
    names = (line.terminal_reason, line.subtype, line.error)
    outcome = next((_ERRORS[each] for each in names if isinstance(each, str) and each in _ERRORS), None)
    outcome = outcome or (state.outcome if state.outcome not in {Outcome.SUCCESS, Outcome.FAILED} else None)
    outcome = outcome or (_STATUSES.get(line.api_error_status) if isinstance(line.api_error_status, int) else None)
    state, more = reading.failed(state, reason, now, outcome)
    return state, facts + more


def _spent(state: Reading, line: _Line) -> Step:
    """Read the totals of a result, by model."""
    models = _by_model(line.model_usage)
    tokens = reduce(Tokens.plus, (each.cost.tokens for each in models), Tokens())
    if tokens == Tokens():  # versions that do not report by model
        tokens = _tokens(hostile.table(line.usage), _MESSAGE_KEYS)
    total = Cost(tokens, hostile.microusd(line.total_cost_usd))
    if line.since_last is None:
        return reading.spent(state, total, Counted.SESSION, models)
    return reading.spent(state, total, Counted.CONVERSATION, models, before=_before(line, tokens))


def _before(line: _Line, tokens: Tokens) -> Cost:
    """Return the total before the session: what the last result had, without what is new since then."""
    since = [*map(hostile.table, hostile.table(line.since_last).values())]
    own = reduce(Tokens.plus, (_tokens(each, _MODEL_KEYS) for each in since), Tokens())
    money = hostile.microusd(line.total_cost_usd, less=(each.get("costUSD") for each in since))
    return Cost(tokens.minus(own), money)


def _by_model(usages: Any) -> list[ModelCost]:
    """Return what the models have cost."""
    return [
        ModelCost(hostile.name(model), Cost(_tokens(usage, _MODEL_KEYS), hostile.microusd(usage.get("costUSD"))))
        for model, usage in ((key, hostile.table(each)) for key, each in hostile.table(usages).items())
    ]


_MESSAGE_KEYS: Final = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_MODEL_KEYS: Final = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")


def _tokens(usage: dict[str, Any], keys: tuple[str, str, str, str]) -> Tokens:
    return Tokens(*(hostile.count(usage.get(key)) for key in keys))
