"""Earned access: the document's graduated access levels (E34, E35).

The four levels are reached at 0, 1, 3 and 10 successes. A recorded success promotes by one level at most, and only an
agent without violations. A violation demotes by one level and stays on record. It blocks promotion until an operator
promotes by hand, which clears it (E35). A failure is neutral.

The user maps transitions of a lifecycle to the level they need. A transition outside the map needs none, so without a
map nothing is gated (E34).
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import msgspec

from lifefold.core.kernel import replace


class AccessLevel(IntEnum):
    """The trust in an agent; a higher level includes all rights of a lower one."""

    UNTRUSTED = 0
    PROBATIONARY = 1
    TRUSTED = 2
    ELEVATED = 3

    @property
    def word(self) -> str:
        """The name in the spelling of fleet files: ``probationary``."""
        return self.name.lower()


class Capabilities(msgspec.Struct, frozen=True):
    """The rights of a level. ``folders`` are those an agent may write to; None means any."""

    write: bool
    network: bool
    max_files: int
    folders: tuple[str, ...] | None


class Trust(msgspec.Struct, frozen=True):
    """An agent's track record and its present level."""

    level: AccessLevel = AccessLevel.UNTRUSTED
    successes: int = 0
    violations: int = 0


SUCCESSES: Final = {
    AccessLevel.UNTRUSTED: 0,
    AccessLevel.PROBATIONARY: 1,
    AccessLevel.TRUSTED: 3,
    AccessLevel.ELEVATED: 10,
}
"""The number of successes that each level takes."""

CAPABILITIES: Final = {
    AccessLevel.UNTRUSTED: Capabilities(write=False, network=False, max_files=0, folders=("docs/",)),
    AccessLevel.PROBATIONARY: Capabilities(write=True, network=False, max_files=5, folders=("src/", "tests/", "docs/")),
    AccessLevel.TRUSTED: Capabilities(
        write=True, network=True, max_files=20, folders=("src/", "tests/", "docs/", "scripts/")
    ),
    AccessLevel.ELEVATED: Capabilities(write=True, network=True, max_files=100, folders=None),
}

Gates = Mapping[tuple[str, str], AccessLevel]
"""The least level that a transition needs, by its (from, to); a transition that is absent needs none."""


def succeeded(trust: Trust) -> Trust:
    """Record a success; it promotes by one level if the record allows it."""
    counted = replace(trust, successes=trust.successes + 1)
    above = _above(trust.level)
    return replace(counted, level=above) if not trust.violations and counted.successes >= SUCCESSES[above] else counted


def violated(trust: Trust) -> Trust:
    """Record a violation, and demote by one level."""
    return demoted(replace(trust, violations=trust.violations + 1))


def promoted(trust: Trust) -> Trust:
    """Promote by one level by hand, which forgives all violations (E35)."""
    return replace(trust, level=_above(trust.level), violations=0)


def demoted(trust: Trust) -> Trust:
    """Demote by one level by hand; UNTRUSTED is the lowest."""
    return replace(trust, level=AccessLevel(max(trust.level - 1, AccessLevel.UNTRUSTED)))


def may(level: AccessLevel, source: str, target: str, gates: Gates) -> bool:
    """Tell whether an agent of this level may perform a transition (E34)."""
    return level >= gates.get((source, target), AccessLevel.UNTRUSTED)


def _above(level: AccessLevel) -> AccessLevel:
    return AccessLevel(min(level + 1, AccessLevel.ELEVATED))
