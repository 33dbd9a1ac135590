"""The signals that the runner and its shims have sent, and the proof that each one had at its moment.

``interposed.c`` writes a line for each signal, with the target as it was just before. These are proofs:

- *child*: the target, or the leader of the group, is an unreaped child of the sender. The kernel does not give its pid
  away before the sender reaps it.
- *pidfd*: the signal goes through a pidfd, to a process that has run this fleet's programs. A pidfd names one process
  for ever, so it is enough that the identity was compared after the pidfd was opened.
- *self*: the sender is the target.

A signal that reached no process needs no proof. A process that becomes the leader of a session or of a group is known
just before: a kill can end it before its program begins.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

SENDERS = {"shim": "shim/__main__.py", "runner": "tortured_runner.py"}
"""By sender: a part of its command line. Signals of agents, of git and of the test itself are not judged."""


class Sent(NamedTuple):
    """A signal, or the begin of a program (``how`` is "begin"), or of a kill by the test ("strike").

    ``state``, ``parent``, ``group`` and ``start`` are those of the target just before, as in ``/proc/PID/stat``.
    """

    how: str
    sender: int
    target: int
    number: int
    answer: int
    state: str
    parent: int
    group: int
    start: int
    words: str


def read(path: Path) -> Iterator[Sent]:
    """Yield the lines of a record of signals."""
    for line in path.read_text(errors="replace").splitlines():
        how, sender, target, number, answer, state, parent, group, start, *words = line.split(" ", 9)
        numbers = (int(sender), int(target), int(number), int(answer))
        yield Sent(how, *numbers, state, int(parent), int(group), int(start), "".join(words))


class Judged(NamedTuple):
    """The signals of the fleet by proof, and those without one."""

    proofs: Counter[str]
    unproven: list[str]


def judge(lines: Iterable[Sent]) -> Judged:
    """Judge all signals of runners and shims."""
    known: set[tuple[int, int]] = set()
    who: dict[int, str] = {}
    found = Judged(Counter(), [])
    for each in lines:
        if each.how == "begin":
            if each.words or (each.target, each.start) not in known:
                who[each.target] = next((name for name, part in SENDERS.items() if part in each.words), "")
            known.add((each.target, each.start))
        elif each.how == "strike":
            who[each.sender] = ""
        elif who.get(each.sender):
            proof = _proof(each, known)
            if proof:
                found.proofs[f"{who[each.sender]}: {proof}"] += 1
            else:
                sender = who[each.sender]
                found.unproven.append(f"{sender} sent {each.number} to {each.target} without a proof: {each}")
    return found


def _proof(each: Sent, known: set[tuple[int, int]]) -> str:
    if each.answer != 0:
        return "no process reached"
    if each.target == each.sender:
        return "self"
    if each.state != "-" and each.parent == each.sender:
        return "child"
    if each.how.startswith("pidfd") and (each.target, each.start) in known:
        return "pidfd"
    return ""
