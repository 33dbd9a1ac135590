"""The last words of any program: a line of text, or the sentence inside a line of JSON. Pure.

Programs print one object a line, and the sentence is inside the object. All text is the agents', of any type and depth.

- Claude Code ends with ``"type": "result"``: ``is_error``, ``result`` or ``errors``, and ``subtype``. The form ``json``
  with ``--verbose`` is an array of all messages. Older versions exit with status 0 at an error.
  (code.claude.com/docs/en/headless)
- Codex ends each turn with ``"type": "turn.completed"`` or ``"turn.failed"``, which has ``error.message``.
  (developers.openai.com/codex/noninteractive)
- opencode and model services print ``"type": "error"`` with an ``error``, whose sentence can lie one level deeper.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

from lifefold.interpreters.adapters import hostile
from lifefold.interpreters.adapters.reading import SENTENCE_CHARS

DEEPEST: Final = 4
"""How many objects within each other are searched for a sentence."""

_OPENINGS: Final = (b"{", b"[")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class LastWords(msgspec.Struct, frozen=True):
    """A sentence of a program, and the program's own names for the kind of the failure; empty if there are none."""

    said: str = ""
    kind: str = ""

    @property
    def known(self) -> str:
        """The text by which the end is classified."""
        return " ".join(f"{self.said} {self.kind}".split())

    @property
    def shown(self) -> str:
        """The text for people."""
        return self.said or self.kind


def objects_of(line: bytes) -> tuple[dict[str, Any], ...]:
    """Return the objects of a line of JSON: it is one, or it is an array of them. Empty for any other line."""
    if not line.lstrip().startswith(_OPENINGS):
        return ()
    try:
        found: object = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ()
    each = _as_list(found)[-hostile.MOST_ITEMS :] or [found]
    return tuple(cast("dict[str, Any]", one) for one in each if isinstance(one, dict))


def of_line(line: bytes, objects: tuple[dict[str, Any], ...]) -> LastWords:
    """Return the words of a line and its objects: the sentence of the last one.

    Without a sentence they are the whole line. Its escapes are replaced, because an escaped secret is not recognised.
    """
    words = _words(objects[-1]) if objects else LastWords()
    if words.said:
        return words
    if not line.lstrip().startswith(_OPENINGS):
        return LastWords(_short(line.decode("utf-8", "replace")))
    return LastWords(_short(_unescaped(line)))


def of_result(objects: Iterable[dict[str, Any]], before: LastWords | None) -> LastWords | None:
    """Return the words of the last result if it reports an error, and None if it reports none.

    Without a result among the objects, ``before`` is still the last one.
    """
    for each in objects:
        match each.get("type"):
            case "result" if each.get("is_error") is True:
                before = _words(each)
            case "turn.failed":
                before = _words(each)
            case "result" | "turn.completed":
                before = None
            case _:
                pass
    return before


def _words(of: dict[str, Any]) -> LastWords:
    error = of.get("error")
    table = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    kinds = (of.get("subtype"), of.get("code"), table.get("type"), table.get("code"), table.get("name"))
    names = " ".join(each for each in kinds if isinstance(each, str))
    return LastWords(_short(_sentence(of)), hostile.name(names))


_SENTENCES: Final = ("result", "errors", "error", "message", "data", "detail", "text", "part", "item", "content")
"""The keys that lead to a sentence, the most telling first."""


def _sentence(found: object, depth: int = 0) -> str:
    if isinstance(found, str):
        return found.strip()
    if depth > DEEPEST or not isinstance(found, dict | list):
        return ""  # a key that is missing is None, and leads nowhere
    table = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    listed = reversed(_as_list(cast("object", found)))
    inner = (*listed, *map(table.get, _SENTENCES))
    return next(filter(None, (_sentence(each, depth + 1) for each in inner)), "")


def _unescaped(line: bytes) -> str:
    """Return a line of JSON with the characters that its escapes stand for."""
    text = _ESCAPE.sub(_character, line.decode("utf-8", "replace").strip())
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins the halves of a pair


def _character(escape: re.Match[str]) -> str:
    code, other = escape.groups()
    return chr(int(code, 16)) if code else _CONTROLS.get(other, other)


def _short(text: str) -> str:
    return hostile.sentence(text, SENTENCE_CHARS)


def _as_list(value: object) -> list[object]:
    """Return a value as a list, typed; empty if it is another kind."""
    return cast("list[object]", value) if isinstance(value, list) else []
