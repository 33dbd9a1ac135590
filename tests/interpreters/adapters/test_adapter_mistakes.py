"""A deliberate mistake in the decoder of a program is noticed by the program's recordings."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agent_outcomes import differences
from lifefold.interpreters import adapters
from lifefold.interpreters.adapters import Adapter, adapter_of

MISTAKES = [
    ("claude", '"resetsAt"', '"resets_at"'),
    ("claude", "line.permission_denials", "line.errors"),
    ("claude", "if line.is_error is not True:", "if line.is_error is False or True:"),
    ("claude", "state, total, Counted.SESSION, models", "state, total, Counted.CONVERSATION, models"),
    ("claude", '"cacheReadInputTokens"', '"cachedInputTokens"'),
    ("claude", '"prompt_too_long": Outcome.PROMPT_TOO_LONG', '"prompt_too_long": Outcome.FAILED'),
    ("claude", '"billing_error": Outcome.OUT_OF_CREDIT,', '"billing_error": Outcome.LOGIN_REFUSED,'),
    ("claude", 'ok=each.get("is_error") is not True', "ok=True"),
    ("claude", '"compacting"', '"compaction"'),
    ("claude", "Error: Session ID", "Error: Conversation"),
    ("codex", "- cached - written", ""),
    ("codex", "Counted.CONVERSATION", "Counted.SESSION"),
    ("codex", '"turn.completed"', '"turn.ended"'),
    ("codex", '{"failed", "declined"}', '{"declined"}'),
    ("codex", '"thread.started"', '"session.started"'),
    ("codex", '"thread/resume" in state.last', '"no thread" in state.last'),
    ("opencode", '"stop"', '"end"'),
    ("opencode", "LOGGED.match(text)", "None"),
    ("opencode", '_REFUSED: Final = ("The user rejected permission", ', "_REFUSED: Final = ("),
    ("opencode", 'part.get("cost")', 'part.get("usd")'),
    ("opencode", '"ContextOverflowError": Outcome.PROMPT_TOO_LONG', '"ContextOverflowError": Outcome.FAILED'),
    ("opencode", '"sessionID"', '"session_id"'),
    ("gemini", 'stats.get("cached")', "0"),
    ("gemini", "Outcome.TURN_LIMIT if error", "Outcome.FAILED if error"),
    ("gemini", "Counted.SESSION", "Counted.CONVERSATION"),
    ("gemini", 'line.status == "success"', "line.status"),
    ("gemini", "Error resuming session", "Error: no session"),
    ("gemini", "return own or", "return"),
    ("aider", "judged(state, Outcome.PROMPT_TOO_LONG, text)", "judged(state, Outcome.SUCCESS, text)"),
    ("aider", '"AuthenticationError": Outcome.LOGIN_REFUSED', '"AuthenticationError": Outcome.FAILED'),
    ("aider", "words if words is Outcome.OUT_OF_CREDIT else ", ""),
    ("aider", "cost = Cost(used, None if money is None else max(0, money - before))", "cost = Cost(used)"),
    ("aider", '("Tokens:", "litellm.")', '("Tokens:",)'),
    ("aider", 'r"^Applied edit to', 'r"^Changed'),
]
"""A program, a part of its module, and the mistake in its place."""


def mistaken(program: str, part: str, mistake: str) -> Adapter[Any]:
    """Return the adapter of a program with a mistake in its module."""
    path = Path(adapters.__file__).parent / f"{program}.py"
    source = path.read_text()
    assert part in source, f"{path.name} has no {part!r} any more"
    module = ModuleType(f"mistaken_{program}")
    exec(compile(source.replace(part, mistake), path, "exec"), module.__dict__)  # noqa: S102  # the source is ours
    made: Adapter[Any] = getattr(module, type(adapter_of(program)).__name__)()
    return made


@pytest.mark.parametrize(("program", "part", "mistake"), MISTAKES)
def test_the_recordings_notice_a_mistake_in_a_decoder(program: str, part: str, mistake: str) -> None:
    assert differences(program, mistaken(program, part, mistake))


@pytest.mark.parametrize("program", ["claude", "codex", "opencode", "gemini", "aider"])
def test_a_module_without_a_mistake_is_read_as_expected(program: str) -> None:
    assert differences(program, mistaken(program, "class", "class")) == []
