"""Codex: ``codex exec --json``.

Recorded: 0.169.0 (tests/data/adapters). A session prints ``thread.started``, ``turn.started``, ``item.started`` and
``item.completed`` with commands, changes and messages, and at its end ``turn.completed`` or ``turn.failed``.

*Costs.* ``usage`` has tokens only. The figures are totals of the thread, although the line is about a turn. A killed
session prints none. ``input_tokens`` include the cached ones.

*Errors.* ``error`` alone need not be final, because Codex tries again; an item of the type ``error`` is a warning.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import hostile, reading
from lifefold.interpreters.adapters.adapter import Brief, Conversation, Now, Permissions, Reports
from lifefold.interpreters.adapters.facts import Cost, Counted, Ended, Tokens, Work
from lifefold.interpreters.adapters.login import Login, LoginFile
from lifefold.interpreters.adapters.reading import Reading, Step

_SANDBOXES: Final = {
    Permissions.READ: "read-only",
    Permissions.EDIT: "workspace-write",
    Permissions.ALL: "danger-full-access",
}

_WORKS: Final = {
    "command_execution": Work.TOOL,
    "file_change": Work.TOOL,
    "mcp_tool_call": Work.TOOL,
    "collab_tool_call": Work.TOOL,
    "web_search": Work.TOOL,
    "context_compaction": Work.COMPACTION,
}
"""The works of the types of items."""


class _Line(msgspec.Struct, frozen=True):
    """The relevant fields of a line, of any type, because agents write them."""

    type: Any = None
    thread_id: Any = None
    item: Any = None
    usage: Any = None
    message: Any = None
    error: Any = None


_DECODER: Final = hostile.decoder(_Line)


class Codex:
    """Codex without a terminal."""

    name = "codex"
    initial = Reading()
    resumable = True
    chooses_conversation = False
    reports = Reports.TOKENS
    tested_versions = ("0.169.0",)
    version_argv = ("codex", "--version")
    login = Login(
        variables=("CODEX_API_KEY",),
        settings=("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        files=(LoginFile(".codex", "auth.json", "CODEX_HOME"),),
        elsewhere="the keychain of the system, or env_key of a provider in its config.toml",
    )

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        """Return the command line. The prompt ``-`` would mean the standard input, so it gets a newline."""
        words = ["codex", "exec", "--json", "--skip-git-repo-check"]
        if brief.model:
            words.append(f"--model={brief.model}")
        if sandbox := _SANDBOXES.get(brief.permissions):
            words += ["-c", f'sandbox_mode="{sandbox}"']
        words += brief.arguments
        if conversation is not None and conversation.begun:
            words += ["resume", conversation.id]
        return (*words, "--", "-\n" if brief.prompt == "-" else brief.prompt)

    def resume_argv(self, conversation: Conversation) -> tuple[str, ...]:
        """Return the command that resumes a thread at a terminal.

        Without ``--no-daemon`` a background server of Codex keeps the thread, and the next session cannot resume it.
        """
        return ("codex", "resume", "--no-daemon", conversation.id)

    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        """Return the facts of one line."""
        found = hostile.decoded(_DECODER, line)
        if found is None:
            return reading.noted(state, hostile.plain(line)), ()
        reader = _READERS.get(hostile.name(found.type))
        return reader(state, found, now) if reader else (state, ())

    def finish(self, state: Reading, status: int | None) -> Ended:
        """Return the end of the session. A thread that cannot be resumed is told in a line of text."""
        if state.outcome is None and "thread/resume" in state.last:
            return Ended(Outcome.CONVERSATION_LOST, state.last)
        return reading.closed(state, status)


def _thread(state: Reading, line: _Line, _now: Now) -> Step:
    return reading.began(state, hostile.name(line.thread_id))


def _item(state: Reading, line: _Line, _now: Now) -> Step:
    """Read an item: a message, or a tool. The output of a command is the command's, and no word of the agent."""
    item, over = hostile.table(line.item), line.type == "item.completed"
    identifier, kind = hostile.name(item.get("id")), hostile.name(item.get("type"))
    if kind == "agent_message":
        return reading.said(state, hostile.sentence(item.get("text"))) if over else (state, ())
    work = _WORKS.get(kind)
    if work is None:
        return state, ()
    state, facts = reading.started(state, work, identifier, kind, hostile.subject(item))
    if not over:
        return state, facts
    status = hostile.name(item.get("status"))
    state, more = reading.ended(state, work, identifier, ok=status not in {"failed", "declined"})
    if status == "declined":
        state, declined = reading.denied(state, identifier, kind, hostile.sentence(item.get("command")))
        more += declined
    return state, facts + more


def _completed(state: Reading, line: _Line, _now: Now) -> Step:
    state = reading.judged(state, Outcome.SUCCESS, state.last)
    return reading.spent(state, Cost(_tokens(hostile.table(line.usage))), Counted.CONVERSATION)


def _failed(state: Reading, line: _Line, now: Now) -> Step:
    return reading.failed(state, hostile.sentence(hostile.table(line.error).get("message")), now)


def _error(state: Reading, line: _Line, now: Now) -> Step:
    return reading.troubled(state, hostile.sentence(line.message), now)


_READERS: Final[dict[str, Callable[[Reading, _Line, Now], Step]]] = {
    "thread.started": _thread,
    "item.started": _item,
    "item.completed": _item,
    "turn.completed": _completed,
    "turn.failed": _failed,
    "error": _error,
}


def _tokens(usage: dict[str, Any]) -> Tokens:
    cached = hostile.count(usage.get("cached_input_tokens"))
    written = hostile.count(usage.get("cache_write_input_tokens"))
    fresh = max(0, hostile.count(usage.get("input_tokens")) - cached - written)
    return Tokens(fresh, cached, written, hostile.count(usage.get("output_tokens")))
