"""The modules of a target, and those of the checker, each with a digest of its syntax tree.

A changed docstring or comment changes no digest. ``lifefold.interpreters.rules.modules`` says which modules count.
"""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lifefold.interpreters.rules.modules import imports_of, seeds_of, sources_of
from lifefold.interpreters.rules.syntax import DIGITS, digest_of
from lifefold.interpreters.targets.target import Target


def code_of(target: Target) -> dict[str, str]:
    """Return the digests of all modules of a target, by name, in the order of the names."""
    sources = sources_of({*filter(None, (target.module,)), *seeds_of(target.subject)})
    return {name: digest_of(source.text) for name, source in sources.items()}


def digest(texts: Mapping[str, str]) -> str:
    """Return one digest for several named texts."""
    state = sha256()
    for name, text in sorted(texts.items()):
        state.update(f"{len(name)} {len(text)} {name}{text}".encode())
    return state.hexdigest()[:DIGITS]


@lru_cache(maxsize=1)
def checker() -> str:
    """Return one digest of the checker's own code: the modules that a search and its verdicts use."""
    return digest(checker_modules())


def checker_modules() -> dict[str, str]:
    """Return the digests of the checker's own modules, by name."""
    todo, found = [_CHECKER], dict[str, str]()
    while todo:
        name = todo.pop()
        spec = find_spec(name)
        if name in found or spec is None or spec.origin is None:
            continue
        text = Path(spec.origin).read_text(encoding="utf-8")
        found[name] = digest_of(text)
        todo += (each for each in imports_of(name, text) if each.startswith(_CHECKERS))
    return found


_CHECKER: Final = "lifefold.interpreters.check.checking"
_CHECKERS: Final = tuple(f"lifefold.interpreters.{room}." for room in ("check", "search", "crash"))
