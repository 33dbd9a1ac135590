"""The cost of a session, read from the end of its output.

Only the agent knows the cost of its session, and prints it at its end. Three forms are understood, each a line of JSON.
All other lines are ignored.

- Claude Code: the last object of ``claude -p`` with ``--output-format json`` or ``stream-json``. It has ``"type":
  "result"``, ``total_cost_usd``, ``usage`` and ``modelUsage``. The money is an estimate, subagents included. Only
  ``modelUsage`` has the tokens of subagents, so it is preferred to ``usage``. Both count cached input separately. The
  cost of a process grows from result to result, so the last one of a conversation (``session_id``) counts. With
  ``--verbose`` the form ``json`` is an array of all messages. (code.claude.com/docs/en/headless and
  /agent-sdk/cost-tracking; versions 2.1; anthropics/claude-code#84784, anthropics/claude-agent-sdk-typescript#112.)
- Codex: ``codex exec --json`` prints ``"type": "turn.completed"`` with ``usage``; its ``input_tokens`` include cached
  ones. The figures are totals of the thread, although they are called the turn's, so the last ones of a thread count.
  ``"type": "thread.started"`` begins a thread. Codex reports no money, and nothing of a failed turn.
  (developers.openai.com/codex/noninteractive; openai/codex#17539, and codex-rs/exec as it was in 2026.)
- Any other agent: ``{"lifefold": {"cost_usd": 0.12, "input_tokens": 1, "output_tokens": 2}}`` with the total of the
  session up to then. The last such line replaces all others.

The conversations of a session add up. Agents may report impossible numbers. A negative, infinite or excessive number
counts as missing, and sums keep the same bounds.
"""

from collections.abc import Iterator
from decimal import ROUND_CEILING, Context
from typing import Any, Final

import msgspec

from lifefold.core.lifecycles.session import Usage
from lifefold.interpreters.fleet_file.values import as_table

TAIL_BYTES: Final = 1 << 20
"""The bytes at the end of the output that are read: more than the longest line of an agent with its cost."""

MOST_USD: Final = 1_000_000
"""The greatest cost of a session that is accepted."""

MOST_TOKENS: Final = 2**53 - 1
"""The largest integer that all JSON readers read exactly."""

_MICROUSD: Final = 6
"""The decimal places of an amount in US dollars."""

_UPWARDS: Final = Context(prec=28, rounding=ROUND_CEILING, traps=[])
"""Rounds amounts up; a text that is not a number becomes NaN."""


class _Line(msgspec.Struct, frozen=True):
    """The relevant fields of a line, of any type, because agents write them; fractions stay texts."""

    type: Any = None
    thread_id: Any = None
    session_id: Any = None
    usage: Any = None
    model_usage: Any = msgspec.field(name="modelUsage", default=None)
    total_cost_usd: Any = None
    lifefold: Any = None


_DECODER: Final = msgspec.json.Decoder(_Line | list[_Line], float_hook=str)


def usage_of(output: bytes) -> Usage:
    """Return the cost of a session, from the last ``TAIL_BYTES`` of its output; empty without one.

    Output of that length may begin within a line, so its first line is ignored.
    """
    own, thread = None, ""
    conversations: dict[tuple[str, str], Usage] = {}
    for line in _lines(output):
        own = _own(line.lifefold) or own
        if line.type == "thread.started":
            thread = _name(line.thread_id)
        elif line.type == "turn.completed" and (used := _codex(line.usage)):
            conversations["codex", thread] = used
        elif line.type == "result" and (used := _claude(line)):
            conversations["claude", _name(line.session_id)] = used
    return own or _sum(*conversations.values())


def is_own(line: str) -> bool:
    """Tell whether a line is a cost in lifefold's own form."""
    return any(_own(each.lifefold) for each in _lines(line.encode()))


def _lines(output: bytes) -> Iterator[_Line]:
    """Yield the objects of the JSON lines, and of arrays in one line, in order."""
    lines = output[-TAIL_BYTES:].splitlines()
    for line in lines[1:] if len(output) >= TAIL_BYTES else lines:
        try:
            found = _DECODER.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            continue
        yield from found if isinstance(found, list) else (found,)


def _own(said: Any) -> Usage | None:
    return _usage(_microusd(_of(said, "cost_usd")), _tokens(said, "input_tokens"), _tokens(said, "output_tokens"))


def _codex(said: Any) -> Usage | None:
    return _usage(None, _tokens(said, "input_tokens"), _tokens(said, "output_tokens"))


def _claude(result: _Line) -> Usage | None:
    """Return the cost of a result: the money, and the tokens of all models, or else of the main conversation."""
    cost, tokens = _microusd(result.total_cost_usd), _claude_models(result.model_usage) or _claude_main(result.usage)
    return _usage(cost, tokens.input_tokens, tokens.output_tokens) if tokens else _usage(cost, None, None)


def _claude_main(said: Any) -> Usage | None:
    read = _tokens(said, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return _usage(None, read, _tokens(said, "output_tokens"))


def _claude_models(said: Any) -> Usage | None:
    models = [each for each in map(_claude_model, (as_table(said) or {}).values()) if each]
    return _sum(*models) if models else None


def _claude_model(said: Any) -> Usage | None:
    read = _tokens(said, "inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")
    return _usage(None, read, _tokens(said, "outputTokens"))


def _usage(cost_microusd: int | None, input_tokens: int | None, output_tokens: int | None) -> Usage | None:
    """Return the reported figures; None if there are none."""
    if cost_microusd is None and input_tokens is None and output_tokens is None:
        return None
    return Usage(cost_microusd or 0, input_tokens or 0, output_tokens or 0)


def _sum(*usages: Usage) -> Usage:
    total = Usage()
    for each in usages:
        total = total.plus(each)
    return Usage(
        min(total.cost_microusd, MOST_USD * 10**_MICROUSD),
        min(total.input_tokens, MOST_TOKENS),
        min(total.output_tokens, MOST_TOKENS),
    )


def _microusd(said: Any) -> int | None:
    """Return an amount of US dollars, a number or a text, in millionths, rounded up; None for an impossible one."""
    if not isinstance(said, int | str) or isinstance(said, bool):
        return None
    amount = _UPWARDS.create_decimal(said)
    if not amount.is_finite() or not 0 <= amount <= MOST_USD:
        return None
    return int(amount.scaleb(_MICROUSD, _UPWARDS).to_integral_value(context=_UPWARDS))


def _tokens(said: Any, *keys: str) -> int | None:
    """Return the sum of the valid numbers under some keys; None without any."""
    found = [number for number in (_of(said, key) for key in keys) if _is_count(number)]
    return min(sum(found), MOST_TOKENS) if found else None


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= MOST_TOKENS


def _of(said: Any, key: str) -> Any:
    return (as_table(said) or {}).get(key)


def _name(said: Any) -> str:
    """Return the name of a conversation; conversations without a name count as one."""
    return said if isinstance(said, str) else ""
