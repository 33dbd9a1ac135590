"""``rules_version``: which rules decide, as a short digest; an entry of a log keeps it.

The digest is made of the syntax trees of all modules that decide, and of the tables and rules as they are put together.
So a changed docstring, comment or layout changes nothing. Names of modules do not count: a program has the same rules
as a script and as an imported module. A module counts as a whole, with parts of it that decide nothing.
Rules without a source file, such as those of a notebook, count by their tables and their names only.

The trees of a fleet take seconds, so the version is cached with the digests of the files it was made of (``cache``).
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from lifefold.core.kernel import Machine, Property, Row, System

if TYPE_CHECKING:
    from lifefold.interpreters.rules.cache import Made

DIGITS: Final = 16
"""The number of hexadecimal digits of a version."""

_REMEMBERED: Final = 64
"""The number of systems whose version this process remembers: the code of a process does not change."""

_known: Final[dict[int, tuple[System, str]]] = {}


def rules_version(system: System) -> str:
    """Return the version of a system's rules: 16 hexadecimal digits.

    Raises ``OSError`` if a source file cannot be read.

    >>> from lifefold import alone
    >>> from lifefold.core.fleet.board import intake
    >>> len(rules_version(alone(intake.machine)[0]))
    16
    """
    _of, found = _known.get(id(system), (None, ""))
    if not found:
        found = _version(system)
        while len(_known) >= _REMEMBERED:
            del _known[next(iter(_known))]
        _known[id(system)] = (system, found)  # the system itself is kept, so no other one gets its id
    return found


def _version(system: System) -> str:
    # Only a writer needs a version: the imports would slow down every other command.
    from lifefold.interpreters.rules import cache  # noqa: PLC0415
    from lifefold.interpreters.rules.modules import seeds_of  # noqa: PLC0415

    seeds = sorted(seeds_of(system))
    code = cache.kept(seeds, _code)
    return _digest([code, *_tables(system)])


def _code(seeds: list[str]) -> "Made":
    """Return the digest of all modules that decide, and the digests of their files."""
    from lifefold.interpreters.rules.cache import Made, digest  # noqa: PLC0415
    from lifefold.interpreters.rules.modules import sources_of  # noqa: PLC0415

    sources = sources_of(seeds).values()
    files = {str(each.file): digest(each.data) for each in sources}
    return Made(_digest(sorted(_meaning(each.text) for each in sources)), files)


def _meaning(text: str) -> str:
    """Return the digest of a text's syntax tree; of the text itself if it is no program any more."""
    from lifefold.interpreters.rules.syntax import digest_of  # noqa: PLC0415

    try:
        return digest_of(text)
    except (SyntaxError, ValueError):
        return sha256(text.encode()).hexdigest()


def _tables(system: System) -> Iterator[str]:
    """Yield what the modules may not say: tables and rules, in order, as a program has put them together."""
    for kind, of in system.aggregates.items():
        yield kind
        for machine in of.machines.values():
            yield from _table(machine)
        yield from (f"{each.on}.{each.name}" for each in of.rules)
        yield from map(_property, of.properties)
    yield from map(_property, system.properties)


def _table(machine: Machine[Any]) -> Iterator[str]:
    yield f"machine {machine.name}, {machine.initial!r}"
    yield from map(_line, machine.rows)
    yield from (f"{slot} in {sorted(span.states)}" for slot, span in machine.spans.items())
    yield from (f"final {each}" for each in sorted(machine.final))
    yield from (
        f"{sorted(where)} postpone {[each.__name__ for each in events]}" for where, events in machine.postpone.items()
    )
    yield from (f"served {each}" for each in sorted(machine.served))
    yield from (f"invariant {each.__qualname__}" for each in machine.invariants)
    yield from map(_property, machine.properties)


def _property(declared: Property[Any]) -> str:
    return f"{declared.property_kind} {declared.name}"


def _line(row: Row[Any]) -> str:
    return f"{row} {getattr(row.action, '__qualname__', '')}"


def _digest(texts: list[str]) -> str:
    state = sha256()
    for text in texts:
        data = text.encode()
        state.update(b"%d " % len(data))
        state.update(data)
    return state.hexdigest()[:DIGITS]
