"""The command ``verify``: whether a recorded run was allowed, or the first entry that was not, and why."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import anyio
import msgspec

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.logs import find_log
from lifefold.interpreters.cli.proven import proven_of
from lifefold.interpreters.cli.recorded_logs import OneLog, must_be_of, one_log
from lifefold.interpreters.cli.wording import in_shell, moment, this_command
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.recorder.audit import Audit, Fault, audit, audit_chain
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import Entry, peek_log
from lifefold.interpreters.store.anchor_file import END, UnreadableAnchor, anchor_beside, read_anchor
from lifefold.interpreters.store.chain import Anchor
from lifefold.interpreters.store.errors import Damaged
from lifefold.interpreters.store.place import beside


def verify(arguments: Namespace) -> int:
    """Audit a run; return 0 if it was allowed, else 1. Raises ``BadInput``."""
    if arguments.chain:
        return _chain_alone(arguments)
    of = one_log(arguments.log, arguments.db)
    rules = rules_version(of.system)
    found, span, entries = _audited(of, arguments, rules)
    proven = proven_of(of, entries, arguments.certificate)
    proofs = proven.proofs
    is_allowed = found.is_allowed and not any(each.lacking for each in proofs)
    if arguments.json:
        whole = {"log": str(of.path), "allowed": is_allowed, "rules": rules, **msgspec.to_builtins(found)}
        json.dump({**whole, **msgspec.to_builtins(proven)}, sys.stdout, indent=2)
        print()
    else:
        print(f"{of.path}: {found.entries:,} entries{span}")
        for line in (*_lines(found), *proven.lines()):
            print(plain(line.encode()))
        print(_allowed(found) + proven.words() if is_allowed else _verdict(found.fault))
        if found.fault is not None and found.fault.kind == "property" and found.fault.seq > 1:
            own = () if of.is_fleet else (of.target.name,)
            words = ("fork", *own, str(of.path), "--at", str(found.fault.seq - 1), "--pytest", "test_incident.py")
            print(f"as a test: {this_command()} {in_shell(words)}")
    return 0 if is_allowed else 1


def _chain_alone(arguments: Namespace) -> int:
    """Tell whether a log is as it was written; no entry is folded, so its system need not be known."""
    if arguments.certificate:
        raise BadInput("--chain and --certificate: accepted: one of them, because a chain needs no rules")
    path = find_log(arguments.log[-1] if arguments.log else arguments.db)
    known, wrong = _anchor(path, arguments.anchor)
    try:
        with peek_log(path) as store:
            found = audit_chain(anyio.run(store.chain), known)
    except Damaged as error:
        found = Audit(0, "", fault=Fault("chain", 0, str(error)))
    if found.fault is None and wrong:
        found = msgspec.structs.replace(found, fault=Fault("anchor", 0, wrong))
    if arguments.json:
        whole = {"log": str(path), "intact": found.fault is None, **msgspec.to_builtins(found)}
        print(json.dumps(whole, indent=2))
    else:
        print(f"{path}: {found.entries:,} entries")
        for line in _of_chain(found):
            print(plain(line.encode()))
        print("the log is as it was written" if found.fault is None else _verdict(found.fault))
    return 0 if found.fault is None else 1


def _audited(of: OneLog, arguments: Namespace, rules: str) -> tuple[Audit, str, list[Entry]]:
    """Return the audit of a log, its span of time in words, and its entries."""
    known, wrong = _anchor(of.path, arguments.anchor)
    try:
        with peek_log(of.path) as store:
            chain = anyio.run(store.chain)
    except Damaged as error:
        return Audit(0, "", fault=Fault("chain", 0, str(error))), "", []
    entries = [entry for entry, _ in chain.rows]
    must_be_of(of, entries)
    found = audit(of.system, chain, known, rules)
    if found.fault is None and wrong:
        found = msgspec.structs.replace(found, fault=Fault("anchor", 0, wrong))
    span = f", from {moment(entries[0].at_ms)} to {moment(entries[-1].at_ms)}" if entries else ""
    return found, span, entries


def _anchor(log: Path, given: str | None) -> tuple[Anchor | None, str]:
    """Return the anchor that was kept outside of a log, and what is wrong with the one beside it."""
    try:
        return (read_anchor(Path(given)) if given is not None else anchor_beside(log)), ""
    except UnreadableAnchor as error:
        if given is not None:
            raise BadInput(str(error)) from error
        return None, str(error)
    except OSError as error:
        raise BadInput(f"{given or beside(log, END)}: {(error.strerror or '').lower()}") from error


def _lines(found: Audit) -> Iterator[str]:
    fault = "" if found.fault is None else found.fault.kind
    yield from _of_chain(found)
    if fault in {"chain", "anchor", "unreadable", "property"}:
        return
    if found.judged:
        yield f"  properties  {found.judged:,} times judged, and true"
    if fault == "rules":
        return
    same = [f"the present ones decide the same on {found.decided:,} entries"] if found.decided else []
    folded = [f"{found.foreign:,} entries of other rules are only folded"] if found.foreign else []
    if same or folded:
        yield f"  rules       {'; '.join(same + folded)}"
    if found.past is not None:
        yield f"  past        {_place(found.past)}, which other rules decided, would not be allowed: {found.past.why}"


def _of_chain(found: Audit) -> Iterator[str]:
    fault = "" if found.fault is None else found.fault.kind
    if fault == "chain":
        return
    yield f"  chain       every link is right; the newest is {found.link[:_SHOWN]}"
    if fault == "anchor":
        return
    yield f"  anchor      {'the one outside of the log fits' if found.compared else 'none is outside of the log'}"


_SHOWN = 16


def _allowed(found: Audit) -> str:
    if not found.foreign:
        return "this run was allowed"
    judged = "what these rules decided was allowed; " if found.decided else ""
    others = f"{judged}other rules decided {found.foreign:,} entries"
    if found.past is None:
        return f"{others}, which break no property of these"
    return f"{others}, and a program that has them can judge those"


def _verdict(fault: Fault | None) -> str:
    if fault is None:
        return "not allowed: a certificate is not of these rules"
    return plain(f"not allowed: {_place(fault)}: {fault.why}".encode())


def _place(fault: Fault) -> str:
    place = f"entry {fault.seq}" if fault.seq else "the log"
    return f"{place} ({fault.stream}, version {fault.version})" if fault.stream else place
