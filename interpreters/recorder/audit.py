"""Whether a recorded run was allowed: its chain, its decisions, and the properties of its system, entry by entry.

Four questions are asked, in this order. The first answer that is no ends the audit.

1. Is the log as it was written? The chain of links, the anchor in the log and an anchor beside it tell.
2. Can every entry be read and folded, with what was decided then?
3. Do the present rules decide the same again? Entries of other rules are folded only, and counted.
4. Did every property hold after every entry of these rules? Invariants, ``always`` and ``always_step`` of machines,
   aggregates and the system are judged, as in a simulation. A liveness property says nothing about a run that has not
   ended. What other rules decided is no fault, because their properties may have been others. The first entry of
   theirs that these would not allow is named all the same (``Audit.past``).

All but the first question are asked in one pass: an entry is decided again, or folded, and judged at once
(``safety_monitor``). If the pass finds anything, the questions are asked one after the other, with every property.

The entries of the opening, which are the first of their streams, are judged when all of them are there. A system of
many entities is judged as a whole at intervals, and near each transition between them (see ``property_monitor``). A
property without a localized form is then found broken a few entries late.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from lifefold.core.kernel import ENGINE, Reaction, System
from lifefold.interpreters.engine import Decision, Ledger, LogMismatchError
from lifefold.interpreters.recorder.newest_state import NewestState
from lifefold.interpreters.recorder.safety_monitor import SafetyMonitor
from lifefold.interpreters.simulate.property_monitor import PropertyMonitor, Violation
from lifefold.interpreters.store import Entry
from lifefold.interpreters.store.chain import Anchor, BrokenChain, verified
from lifefold.interpreters.store.reading import Chain


class Fault(msgspec.Struct, frozen=True):
    """Why a run was not allowed. ``seq`` is the position of the first wrong entry, 0 for the log as a whole.

    ``kind`` is ``chain``, ``anchor``, ``unreadable``, ``rules`` or ``property``.
    """

    kind: str
    seq: int
    why: str
    stream: str = ""
    version: int = 0
    owner: str = ""
    name: str = ""
    of: str = ""
    """A broken property: its owner, its name, and its subject."""


class Audit(msgspec.Struct, frozen=True):
    """The result. ``judged`` counts the properties that were judged, each once for each of its subjects.

    ``decided`` is the number of entries on which the present rules have decided again. The rest was folded only;
    ``foreign`` of these are of other rules. ``compared`` is whether an anchor beside the log was compared.
    """

    entries: int
    link: str
    compared: bool = False
    decided: int = 0
    foreign: int = 0
    judged: int = 0
    fault: Fault | None = None
    past: Fault | None = None
    """The first entry of other rules after which a property of the present ones does not hold."""

    @property
    def is_allowed(self) -> bool:
        """Whether the run was allowed."""
        return self.fault is None


def audit(system: System, chain: Chain, beside: Anchor | None = None, rules: str = "") -> Audit:
    """Audit a run. ``beside`` is an anchor that was kept outside of the log.

    ``rules`` is the version of the present rules. An entry of another version is not decided again, and is no fault.
    Without it, all entries are judged and decided again.
    """
    entries = [entry for entry, _ in chain.rows]
    foreign = sum(bool(rules) and each.rules != rules and each.stream != ENGINE for each in entries)
    found = msgspec.structs.replace(audit_chain(chain, beside), foreign=foreign)
    if found.fault is not None:
        return found
    ledger = Ledger(system, rules=rules)
    at_once = _Run(system, entries, rules, SafetyMonitor(system), ledger.verify(entries))
    fault, decided = at_once.fault(), len(entries) - ledger.only_folded - ledger.of_engine
    if fault is not None:
        return _question_by_question(system, entries, rules, msgspec.structs.replace(found, fault=fault))
    past = _first_fault(system, entries) if foreign else None
    return msgspec.structs.replace(found, judged=at_once.judged, decided=decided, past=past)


def _question_by_question(system: System, entries: Sequence[Entry], rules: str, found: Audit) -> Audit:
    """Ask the second, the third and the fourth question one after the other.

    ``found`` has a fault that was seen when all of them were asked at once. It stands if no question has another.
    """
    ran = _folded(system, entries, rules)
    fault = ran.fault()
    if fault is not None:
        return msgspec.structs.replace(found, judged=ran.judged, fault=fault)
    fault, decided = _decided_again(system, entries, rules)
    return msgspec.structs.replace(found, judged=ran.judged, decided=decided, fault=fault or found.fault)


def _first_fault(system: System, entries: Sequence[Entry]) -> Fault | None:
    """Fold a run of any rules, and return the first entry that the present properties do not allow."""
    fault = _Run(system, entries, "", SafetyMonitor(system), Ledger(system).fold(entries)).fault()
    return fault and (_folded(system, entries, "").fault() or fault)


def audit_chain(chain: Chain, beside: Anchor | None = None) -> Audit:
    """Answer the first question alone: whether the log is as it was written. No entry is folded."""
    fault = of_chain(chain) or (None if beside is None else of_anchor(chain, beside))
    newest = chain.rows[-1][1].hex() if chain.rows else ""
    return Audit(len(chain.rows), newest, compared=beside is not None, fault=fault)


def of_chain(chain: Chain) -> Fault | None:
    """Return the first entry that is not as it was written."""
    try:
        verified(*chain)
    except BrokenChain as error:
        return Fault("chain", error.position, str(error), *_named(chain, error.position))
    return None


def of_anchor(chain: Chain, beside: Anchor) -> Fault | None:
    """Return the contradiction between a log and an anchor that was kept outside of it."""
    count, rows = beside.entries, chain.rows
    if count > len(rows):
        missing = f"{count - len(rows)} of its newest entries are missing, from entry {len(rows) + 1} on"
        return Fault("anchor", len(rows) + 1, f"{missing}: the anchor outside of the log names entry {count}")
    if count and rows[count - 1][1] != beside.link:
        why = f"entry {count}, or one before it, is another one than the anchor outside of the log names"
        return Fault("anchor", count, why, *_named(chain, count))
    return None


def _named(chain: Chain, seq: int) -> tuple[str, int]:
    """Return the stream and the version of an entry; nothing for one that is missing."""
    if not 0 < seq <= len(chain.rows):
        return "", 0
    entry = chain.rows[seq - 1][0]
    return str(entry.stream), int(entry.version)


class _Judged(NamedTuple):
    """An entry at a position with its reaction, whose properties are judged."""

    seq: int
    entry: Entry
    reaction: Reaction

    @property
    def is_of_system(self) -> bool:
        """Whether an aggregate has accepted it."""
        return self.entry.stream != ENGINE


class _Run:
    """A run with its properties. ``decisions`` are those on its entries: folded, or made again."""

    def __init__(
        self,
        system: System,
        entries: Sequence[Entry],
        rules: str,
        monitor: PropertyMonitor,
        decisions: Iterator[Decision],
    ) -> None:
        self._system: Final = system
        self._entries: Final = entries
        self._rules: Final = rules
        self._monitor: Final = monitor
        self._decisions: Final = decisions
        self._names: Final[dict[str, None]] = {}
        self._opening: Final[list[_Judged]] = []
        """The first entries, whose properties are judged when all aggregates are there."""
        self._last: _Judged | None = None
        self._now: Final = NewestState()

    @property
    def judged(self) -> int:
        """The number of judged properties."""
        return self._monitor.asked

    def fault(self) -> Fault | None:
        """Return the first entry that has no decision, or after which a property is broken."""
        folded = 0
        try:
            for seq, decision in enumerate(self._decisions, 1):
                folded = seq
                self._now.take(decision)
                for each in self._due(_Judged(seq, decision.entry, decision.reaction)):
                    broken = self._broken(each)
                    if broken is not None:
                        return broken
        except LogMismatchError as error:
            entry = self._entries[folded]
            return Fault("unreadable", folded + 1, str(error), entry.stream, entry.version)
        return self._at_the_end()

    def _due(self, each: _Judged) -> Iterator[_Judged]:
        """Yield the entries that are to be judged now: those of the opening when it is over."""
        if each.is_of_system and each.entry.version == 1:
            self._begin(each.entry.stream)
        is_opening = each.is_of_system and each.seq == len(self._names)
        if is_opening:
            self._opening.append(each)
        if not is_opening or each.seq == len(self._entries):
            yield from self._opening
            self._opening.clear()
        if not is_opening and each.is_of_system:
            yield each

    def _broken(self, each: _Judged) -> Fault | None:
        _seq, entry, reaction = each
        if self._rules and entry.rules != self._rules:
            self._last = None
            self._monitor.pass_over(reaction.aggregate)
            return None
        try:
            of = self._system.type_of(entry.stream)
            self._monitor.look(of, reaction, self._now.system_state, self._now.under_way)
        except Violation as broken:
            return _of_violation(broken, each)
        self._last = each
        return None

    def _at_the_end(self) -> Fault | None:
        """Judge the whole once more, because a large system is judged as a whole at intervals only."""
        if self._last is None:
            return None
        try:
            self._monitor.look_around(self._now.system_state, self._now.under_way)
        except Violation as broken:
            return _of_violation(broken, self._last)
        return None

    def _begin(self, stream: str) -> None:
        """Note a new aggregate, and that projections of the system now have it."""
        self._names[stream] = None
        self._monitor.begin({name: self._system.type_of(name) for name in self._names})


def _folded(system: System, entries: Sequence[Entry], rules: str) -> _Run:
    """Return a run that is folded as it was decided, with all properties evaluated after each entry."""
    return _Run(system, entries, rules, PropertyMonitor(system), Ledger(system).fold(entries))


def _of_violation(broken: Violation, each: _Judged) -> Fault:
    why = f"{broken.owner}: {broken.prop}: not so of {broken.of}"
    entry = each.entry
    return Fault("property", each.seq, why, entry.stream, entry.version, broken.owner, broken.prop, broken.of)


def _decided_again(system: System, entries: Sequence[Entry], rules: str) -> tuple[Fault | None, int]:
    """Decide again on the entries of the present rules. Return the first other decision, and how many were the same."""
    ledger, seq = Ledger(system, rules=rules), 0
    try:
        for _ in ledger.verify(entries):
            seq += 1
    except LogMismatchError as error:
        entry = entries[seq]
        return Fault("rules", seq + 1, str(error), entry.stream, entry.version), seq - ledger.only_folded
    of_engine = sum(each.stream == ENGINE for each in entries)
    return None, seq - ledger.only_folded - of_engine
