"""What the recorded sessions of real programs are: outcomes, costs, limits and works, as the tests expect them."""

from typing import Any

from agent_recordings import recordings
from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import (
    Adapter,
    ConversationBegan,
    Cost,
    Counted,
    Ended,
    Fact,
    Limited,
    Now,
    Spent,
    Tokens,
    WorkEnded,
    WorkStarted,
    adapter_of,
)

RESETS_AT_MS = 1_795_600_800_000
NOW = Now(1_795_512_000_000)

OUTCOMES = {
    "claude": {
        "asked-and-allowed": (Outcome.SUCCESS, "done"),
        "asked-and-refused": (Outcome.DENIED, "Write was refused"),
        "budget": (Outcome.BUDGET_SPENT, "Reached maximum budget ($0.0001)"),
        "compacted": (Outcome.SUCCESS, ""),
        "continued": (Outcome.SUCCESS, "done"),
        "credit": (Outcome.OUT_OF_CREDIT, "Credit balance is too low"),
        "denied": (Outcome.DENIED, "Write: Claude requested permissions to write to /repo/made.txt, but you haven't "),
        "denied-2.1.197": (Outcome.DENIED, "Write was refused"),
        "failing-command": (Outcome.SUCCESS, "done"),
        "killed": (Outcome.CRASHED, "ended with status 143, without a result"),
        "limit": (Outcome.LIMITED, "You've hit your limit · resets Nov 25, 10am (UTC)"),
        "login": (Outcome.LOGIN_REFUSED, "Invalid API key · Fix external API key"),
        "lost-conversation": (Outcome.CONVERSATION_LOST, "No conversation found with session ID: 5b0f8f4e"),
        "overloaded": (Outcome.OVERLOADED, "API Error: 529 Overloaded. This is a server-side issue"),
        "rate": (Outcome.LIMITED, "API Error: Request rejected (429) · This request would exceed your account's rate "),
        "resumed": (Outcome.SUCCESS, "done"),
        "resumed-2.1.197": (Outcome.SUCCESS, "done"),
        "success": (Outcome.SUCCESS, "done"),
        "taken-conversation": (Outcome.CONVERSATION_LOST, "Session ID 5b0f8f4e-3c1d-4c58-9a51-000000000001 is already"),
        "too-long": (Outcome.PROMPT_TOO_LONG, "Prompt is too long · the request is ~210000 tokens"),
        "turns": (Outcome.TURN_LIMIT, "Reached maximum number of turns (1)"),
        "written": (Outcome.SUCCESS, "done"),
    },
    "codex": {
        "continued": (Outcome.SUCCESS, "done"),
        "credit": (Outcome.OUT_OF_CREDIT, "Quota exceeded. Check your plan and billing details."),
        "failing-command": (Outcome.SUCCESS, "done"),
        "killed": (Outcome.CRASHED, "ended by signal 15, without a result"),
        "limit": (Outcome.LIMITED, "You’ve hit your usage limit."),  # noqa: RUF001  # as Codex writes it
        "login": (Outcome.LOGIN_REFUSED, "unexpected status 401 Unauthorized: Incorrect API key provided"),
        "lost-conversation": (
            Outcome.CONVERSATION_LOST,
            "Error: thread/resume: thread/resume failed: no rollout found",
        ),
        "overloaded": (Outcome.OVERLOADED, "Selected model is at capacity. Please try a different model."),
        "rate": (Outcome.LIMITED, "exceeded retry limit, last status: 429 Too Many Requests"),
        "read-only": (Outcome.SUCCESS, "done"),
        "resumed": (Outcome.SUCCESS, "done"),
        "success": (Outcome.SUCCESS, "done"),
        "too-long": (Outcome.PROMPT_TOO_LONG, "Codex ran out of room in the model's context window."),
        "written": (Outcome.SUCCESS, "done"),
    },
    "opencode": {
        "continued": (Outcome.SUCCESS, "done"),
        "credit": (
            Outcome.OUT_OF_CREDIT,
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        "denied": (Outcome.DENIED, "write: The user rejected permission to use this specific tool call."),
        "failing-command": (Outcome.SUCCESS, "done"),
        "killed": (Outcome.CRASHED, "ended by signal 15, without a result"),
        "limit": (Outcome.LIMITED, "The usage limit has been reached"),
        "login": (Outcome.LOGIN_REFUSED, "Incorrect API key provided: none."),
        "lost-conversation": (Outcome.CONVERSATION_LOST, "Error: Session not found"),
        "overloaded": (Outcome.OVERLOADED, "The server is overloaded. Try again later."),
        "rate": (Outcome.LIMITED, "Rate limit reached for mock in organization org-1."),
        "resumed": (Outcome.SUCCESS, "done"),
        "success": (Outcome.SUCCESS, "done"),
        "too-long": (Outcome.PROMPT_TOO_LONG, "This model's maximum context length is 128000 tokens."),
        "written": (Outcome.SUCCESS, "done"),
    },
    "gemini": {
        "continued": (Outcome.SUCCESS, "done"),
        "credit": (Outcome.OUT_OF_CREDIT, "Billing is not enabled for this project."),
        "failing-command": (Outcome.SUCCESS, "done"),
        "killed": (Outcome.CRASHED, "ended with status 0, without a result"),
        "limit": (Outcome.LIMITED, "You exceeded your current quota: requests per day. Limit: 100."),
        "login": (Outcome.LOGIN_REFUSED, "API key not valid. Please pass a valid API key."),
        "lost-conversation": (Outcome.CONVERSATION_LOST, "Error resuming session: Invalid session identifier"),
        "not-offered": (Outcome.SUCCESS, "done"),
        "overloaded": (Outcome.OVERLOADED, "The model is overloaded. Please try again later."),
        "rate": (Outcome.LIMITED, "Resource has been exhausted (e.g. check quota)."),
        "resumed": (Outcome.SUCCESS, "done"),
        "success": (Outcome.SUCCESS, "done"),
        "too-long": (Outcome.PROMPT_TOO_LONG, "The input token count (2100000) exceeds the maximum number of tokens"),
        "turns": (Outcome.TURN_LIMIT, "Reached max session turns for this session."),
        "written": (Outcome.SUCCESS, "done"),
    },
    "aider": {
        "continued": (Outcome.SUCCESS, "done"),
        "credit": (
            Outcome.OUT_OF_CREDIT,
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        "killed": (Outcome.CRASHED, "ended by signal 15, without a result"),
        "limit": (Outcome.LIMITED, "The usage limit has been reached"),
        "login": (Outcome.LOGIN_REFUSED, "Incorrect API key provided: none. The API provider is not able to"),
        "overloaded": (Outcome.OVERLOADED, "The server is overloaded. Try again later. The API provider's servers are"),
        "resumed": (Outcome.SUCCESS, "done"),
        "success": (Outcome.SUCCESS, "done"),
        "too-long": (Outcome.PROMPT_TOO_LONG, "Model openai/gpt-4o has hit a token limit!"),
        "written": (Outcome.SUCCESS, "made.txt"),
    },
}
"""The outcome of each recording, and how its reason begins."""


TOTALS = {
    ("claude", "success", Counted.CONVERSATION): Cost(Tokens(100, 40, 0, 7), 417),
    ("claude", "resumed", Counted.CONVERSATION): Cost(Tokens(200, 80, 0, 14), 834),
    ("claude", "resumed-2.1.197", Counted.SESSION): Cost(Tokens(100, 40, 0, 7), 417),
    ("claude", "resumed-2.1.197", Counted.CONVERSATION): None,
    ("claude", "killed", Counted.SESSION): Cost(Tokens(100, 40, 0, 1)),
    ("claude", "continued", Counted.CONVERSATION): Cost(Tokens(200, 80, 0, 14), 834),
    ("claude", "written", Counted.CONVERSATION): Cost(Tokens(200, 80, 0, 14), 834),
    ("codex", "success", Counted.CONVERSATION): Cost(Tokens(200, 1000, 0, 7)),
    ("codex", "resumed", Counted.CONVERSATION): Cost(Tokens(400, 2000, 0, 14)),
    ("codex", "killed", Counted.CONVERSATION): None,
    ("codex", "continued", Counted.CONVERSATION): Cost(Tokens(400, 2000, 0, 14)),
    ("opencode", "success", Counted.SESSION): Cost(Tokens(1100, 0, 0, 30), 1160),
    ("opencode", "resumed", Counted.SESSION): Cost(Tokens(1100, 0, 0, 30), 1160),
    ("opencode", "written", Counted.SESSION): Cost(Tokens(2200, 0, 0, 60), 2320),
    ("opencode", "killed", Counted.SESSION): Cost(Tokens(1100, 0, 0, 30), 1160),
    ("gemini", "success", Counted.SESSION): Cost(Tokens(60, 30, 0, 5)),
    ("gemini", "resumed", Counted.SESSION): Cost(Tokens(60, 30, 0, 5)),
    ("gemini", "written", Counted.SESSION): Cost(Tokens(120, 60, 0, 10)),
    ("aider", "success", Counted.SESSION): Cost(Tokens(1100, 0, 0, 30), 3100),
}
"""The last total of recordings. The service's figures are in tools/recordings/model_service.py."""


LIMITS: dict[tuple[str, str], list[tuple[int | None, str]]] = {
    ("claude", "limit"): [(RESETS_AT_MS, "five_hour")],
    ("codex", "limit"): [(RESETS_AT_MS, "")],
    ("opencode", "limit"): [(None, "")],
    ("gemini", "limit"): [(None, "")],
    ("aider", "limit"): [(None, "")],
    ("claude", "rate"): [(None, "")],
    ("codex", "rate"): [(None, "")],
    ("opencode", "rate"): [(None, "")],
    ("gemini", "rate"): [(None, "")],
}
"""The limits of recordings: the end and the scope of each."""

WORKS = {
    ("claude", "written"): [("Write", True)],
    ("claude", "denied"): [("Write", False)],
    ("claude", "failing-command"): [("Bash", False)],
    ("claude", "compacted"): [("compaction", True)],
    ("codex", "written"): [("command_execution", True)],
    ("codex", "read-only"): [],
    ("codex", "failing-command"): [("command_execution", False)],
    ("opencode", "written"): [("write", True)],
    ("opencode", "denied"): [("write", False)],
    ("gemini", "written"): [("write_file", True)],
    ("gemini", "not-offered"): [("write_file", False)],
    ("aider", "written"): [("edit", True)],
}
"""The works of recordings, and whether they succeeded."""

WITHOUT_CONVERSATION = {
    ("claude", "taken-conversation"),
    ("codex", "lost-conversation"),
    ("opencode", "lost-conversation"),
    ("gemini", "lost-conversation"),
    *(("opencode", name) for name in ("limit", "rate", "overloaded", "credit")),
}
"""The recordings that name no conversation, because none began."""


def facts_of(program: str, name: str, adapter: Adapter[Any] | None = None) -> tuple[Fact, ...]:
    """Return the facts of a recording, its end among them, as this adapter or the program's own reads it."""
    adapter, recording = adapter or adapter_of(program), recordings(program)[name]
    state, found = adapter.initial, list[Fact]()
    for line in recording.lines:
        state, facts = adapter.read(state, line, NOW)
        found.extend(facts)
    return (*found, adapter.finish(state, recording.status))


def end_of(facts: tuple[Fact, ...]) -> Ended:
    """Return the end of a session."""
    end = facts[-1]
    assert isinstance(end, Ended)
    return end


def last_total(facts: tuple[Fact, ...], counted: Counted) -> Cost | None:
    """Return the last total of one coverage."""
    totals = [each for each in facts if isinstance(each, Spent) and each.counted is counted]
    return totals[-1].total if totals else None


def limits(facts: tuple[Fact, ...]) -> list[tuple[int | None, str]]:
    """Return the ends and the scopes of all limits."""
    return [(each.until_ms, each.scope) for each in facts if isinstance(each, Limited)]


def works(facts: tuple[Fact, ...]) -> list[tuple[str, bool]]:
    """Return the works that have ended, by their names, and whether they succeeded."""
    names = {each.id: each.name or each.work for each in facts if isinstance(each, WorkStarted)}
    return [(names[each.id], each.ok) for each in facts if isinstance(each, WorkEnded)]


def conversation(facts: tuple[Fact, ...]) -> str:
    """Return the name of the conversation; empty without one."""
    return next((each.id for each in facts if isinstance(each, ConversationBegan)), "")


def differences(program: str, adapter: Adapter[Any]) -> list[str]:
    """Return the recordings that an adapter reads otherwise than expected."""
    found: list[str] = []
    for name, (outcome, reason) in OUTCOMES[program].items():
        facts = facts_of(program, name, adapter)
        end = end_of(facts)
        totals = {counted: total for (*place, counted), total in TOTALS.items() if place == [program, name]}
        right = (
            (end.outcome, end.reason[: len(reason)]) == (outcome, reason)
            and all(last_total(facts, counted) == total for counted, total in totals.items())
            and limits(facts) == LIMITS.get((program, name), limits(facts))
            and works(facts) == WORKS.get((program, name), works(facts))
            and bool(conversation(facts)) == ((program, name) not in WITHOUT_CONVERSATION and program != "aider")
        )
        if not right:
            found.append(name)
    return found
