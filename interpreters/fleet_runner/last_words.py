"""The last words of agent programs that print JSON: the sentence for operators, and a failure reported as a result.

Programs print one object a line, and the sentence is inside the object. All text is the agents', of any type and depth.

- Claude Code ends with ``"type": "result"``: ``is_error``, ``result`` or ``errors``, and ``subtype``. The form ``json``
  with ``--verbose`` is an array of all messages. Older versions exit with status 0 at an error.
  (code.claude.com/docs/en/headless)
- Codex ends each turn with ``"type": "turn.completed"`` or ``"turn.failed"``, which has ``error.message``.
  (developers.openai.com/codex/noninteractive)
- opencode and model services print ``"type": "error"`` with an ``error``, whose sentence can lie one level deeper.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from lifefold.interpreters.adapters.command import is_cost
from lifefold.interpreters.fleet_file.values import as_table
from lifefold.interpreters.fleet_runner import usage

DEEPEST: Final = 4
"""How many objects within each other are searched for a sentence."""


class LastWords(msgspec.Struct, frozen=True):
    """A sentence of a program, and the program's own names for the kind of the failure; empty if there are none.

    Both are as the program wrote them, because a secret value in them can have white space.
    """

    said: str
    kind: str = ""

    @property
    def known(self) -> str:
        """The text by which the end is classified."""
        return " ".join(f"{self.said} {self.kind}".split())


def of_error(output: bytes) -> LastWords | None:
    """Return the words of the last result in an output if it reports an error; None otherwise."""
    for each in _objects_from_the_end(output):
        match each.get("type"):
            case "result" if each.get("is_error") is True:
                return _words(each)
            case "turn.failed":
                return _words(each)
            case "result" | "turn.completed":
                return None
            case _:
                pass
    return None


def at_the_end(output: bytes) -> LastWords | None:
    """Return the words of the last line of an output if it is JSON, also a torn line of it; None otherwise.

    Without a sentence they are the whole line without escapes, because an escaped secret would not be recognised.
    """
    for line in reversed(output[-usage.TAIL_BYTES :].splitlines()):
        if line.strip() and not is_cost(line):
            last = next(_objects(line), None)
            words = None if last is None else _words(last)
            if words is not None and words.said:
                return words
            return LastWords(_unescaped(line)) if line.lstrip().startswith(_OPENINGS) else None
    return None


def _unescaped(line: bytes) -> str:
    """Return a line of JSON with the characters that its escapes stand for."""
    text = _ESCAPE.sub(_character, line.decode("utf-8", "replace").strip())
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins the halves of a pair


def _character(escape: re.Match[str]) -> str:
    code, other = escape.groups()
    return chr(int(code, 16)) if code else _CONTROLS.get(other, other)


_OPENINGS: Final = (b"{", b"[")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _objects_from_the_end(output: bytes) -> Iterator[Mapping[str, Any]]:
    for line in reversed(output[-usage.TAIL_BYTES :].splitlines()):
        yield from _objects(line)


def _objects(line: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a line of JSON, the last one first."""
    if not line.lstrip().startswith(_OPENINGS):
        return
    try:
        found: object = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
    yield from (table for each in reversed(_as_list(found) or [found]) if (table := as_table(each)) is not None)


def _words(of: Mapping[str, Any]) -> LastWords:
    error = as_table(of.get("error")) or {}
    kinds = (of.get("subtype"), of.get("code"), error.get("type"), error.get("code"), error.get("name"))
    return LastWords(_sentence(of), " ".join(each for each in kinds if isinstance(each, str)))


_SENTENCES: Final = ("result", "errors", "error", "message", "data", "detail", "text", "part", "item", "content")
"""The keys that lead to a sentence, the most telling first."""


def _sentence(found: object, depth: int = 0) -> str:
    if isinstance(found, str):
        return found.strip()
    if depth > DEEPEST:
        return ""
    table = as_table(found) or {}
    inner = (*reversed(_as_list(found)), *(table.get(key) for key in _SENTENCES))
    return next(filter(None, (_sentence(each, depth + 1) for each in inner)), "")


def _as_list(value: object) -> list[object]:
    """Return a value as a list, typed; empty if it is another kind."""
    return cast("list[object]", value) if isinstance(value, list) else []
