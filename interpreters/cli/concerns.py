"""The concerns of an operator, as lines that fit a terminal: waiting decisions, and final failures."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli.colours import painted
from lifefold.interpreters.cli.fitting import wrapped
from lifefold.interpreters.cli.wording import as_typed, cut_in_the_middle
from lifefold.interpreters.explain.chronicle_words import Mood
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.explain.why.phrases import count, enumerated
from lifefold.interpreters.explain.words import unwrapped
from lifefold.interpreters.processes.command import plain

REASON_LINES: Final = 2
"""The lines of a terminal that a reason gets at most in ``lifefold status``; ``lifefold show`` has all of it."""


SHORTEST: Final = 20
"""The fewest characters of a shortened reason."""


class Concern(msgspec.Struct, frozen=True):
    """One sentence for the operator, without the sign before it."""

    said: str
    mood: Mood

    def line(self) -> str:
        """Return the sentence with its sign: an exclamation mark, or a cross for what has failed for good."""
        return f"{'x' if self.mood is Mood.FAILED else '!'} {self.said}"


def waiting(lines: Iterable[str]) -> Iterator[Concern]:
    """Yield lines about what waits for an operator."""
    return (Concern(line, Mood.WAITS) for line in lines)


def failing(lines: Iterable[str]) -> Iterator[Concern]:
    """Yield lines about what does not work, and needs no decision."""
    return (Concern(line, Mood.PLAIN) for line in lines)


def failed(tasks: Sequence[TaskStatus], log: str, room: int | None) -> Iterator[Concern]:
    """Yield a line for each task that has failed for good: why, what it blocks, and the command that shows more.

    A reason has at most ``room`` characters, if there is a limit: its beginning and its end.
    """
    for each in tasks:
        if each.state == State.FAILED and not each.is_retried:
            reason = unwrapped(each.reason)
            brief = reason if room is None else cut_in_the_middle(reason, room)
            blocked = [one.id for one in tasks if one.state == State.BLOCKED and _is_blocked_by(one, each.id, tasks)]
            also = f" (after {count(each.attempts, 'attempt')}{f'; blocks {enumerated(blocked)}' if blocked else ''})"
            said = f"{each.id} has failed: {brief}{also}: {as_typed(f'lifefold show {each.id}{log}')}"
            yield Concern(plain(said.encode("utf-8", "surrogateescape")), Mood.FAILED)


def failed_briefly(tasks: Sequence[TaskStatus], width: int) -> Iterator[Concern]:
    """Yield a line of at most ``width`` characters for each task that has failed for good."""
    for each in tasks:
        if each.state == State.FAILED and not each.is_retried:
            said = f"{each.id} has failed: "
            reason = cut_in_the_middle(unwrapped(each.reason), max(SHORTEST, width - len(said) - len("x ")))
            yield Concern(plain(f"{said}{reason}".encode("utf-8", "surrogateescape")), Mood.FAILED)


def _is_blocked_by(of: TaskStatus, name: str, tasks: Sequence[TaskStatus]) -> bool:
    """Tell whether a task is blocked by another, through others or not."""
    blockers = {each.id: each.blocked_by for each in tasks}
    passed = set[str]()
    at = of.id
    while at in blockers and at not in passed:
        passed.add(at)
        at = blockers[at]
        if at == name:
            return True
    return False


def lines(every: Sequence[Concern], width: int | None, room: int | None, *, colours: bool) -> Iterator[str]:
    """Yield the concerns in their order, in at most ``room`` lines if there is a limit, and count the others."""
    left = room
    for number, each in enumerate(every):
        found = wrapped(each.line(), width)
        more = len(every) - number
        if left is not None and len(found) > left - (1 if more > 1 else 0) and number:
            yield painted(as_typed(f"and {more} more: lifefold tasks"), Mood.WAITS, colours=colours)
            return
        yield from (painted(line, each.mood, colours=colours) for line in found)
        left = None if left is None else left - len(found)
