"""Which part of a recorded run is under certificates.

A certificate names the version of the rules that it proves, and each entry of a log names the version that decided it
(``lifefold.interpreters.rules``). Equal versions have the same code, tables, rules and properties. So the properties
that are proven are those of the entry. A certificate proves them for its own small configuration: the aggregates of its
opening, within its bounds. A kind of aggregates that no certificate has is not covered.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from lifefold.core.kernel import ENGINE
from lifefold.interpreters.store import Entry


class Scope(msgspec.Struct, frozen=True):
    """What a certificate is of: its target, its digest, the version of its rules, and its kinds of aggregates."""

    target: str
    digest: str
    rules: str
    kinds: tuple[str, ...]


class Covering(msgspec.Struct, frozen=True):
    """What certificates cover of a run. ``entries`` counts those of the rules of a certificate."""

    under: tuple[Scope, ...] = ()
    """The certificates of the rules of an entry."""
    entries: int = 0
    other_rules: Mapping[str, int] = {}
    """The number of entries that other rules decided, by their version; empty for rules without a version."""
    kinds: tuple[str, ...] = ()
    """The kinds of aggregates of these entries that no certificate has."""

    @property
    def is_whole(self) -> bool:
        """Whether each entry is of the rules of a certificate that has its kind of aggregates."""
        return bool(self.under) and not self.other_rules and not self.kinds


def covering(scopes: Iterable[Scope], entries: Iterable[Entry]) -> Covering:
    """Return what certificates cover of the entries of a log."""
    counts = Counter((each.rules, each.stream.partition("/")[0]) for each in entries if each.stream != ENGINE)
    versions = {rules for rules, _ in counts}
    under = tuple(each for each in scopes if each.rules and each.rules in versions)
    known = {(each.rules, kind) for each in under for kind in each.kinds}
    of = {each.rules for each in under}
    others = Counter[str]()
    for (rules, _), count in counts.items():
        if rules not in of:
            others[rules] += count
    kinds = dict.fromkeys(kind for rules, kind in counts if rules in of and (rules, kind) not in known)
    return Covering(under, sum(counts.values()) - sum(others.values()), dict(others), tuple(kinds))
