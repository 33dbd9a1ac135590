"""A run as a sequence diagram: a lane for each aggregate, an arrow for each input, and the transitions that follow.

A message leads from the aggregate that sent it to the one that received it. A command leads from its operator. A timer,
an activity and the runner's recovery are of their own aggregate, so their arrow returns to its lane.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from lifefold.core.kernel import Cause, SystemStep, Transition
from lifefold.interpreters.report.trace import kernel_words
from lifefold.interpreters.views.formats.mermaid import safe

MOST: Final = 60
"""The most inputs that a diagram shows, unless it is told otherwise."""


class Signal(NamedTuple):
    """An input: its number, milliseconds since the first one, its lanes, its name, and its transitions in words."""

    number: int
    after_ms: int
    sender: str
    receiver: str
    words: str
    moves: tuple[str, ...]

    def line(self) -> str:
        """Return it as a line of text."""
        moved = f"   {'; '.join(self.moves)}" if self.moves else ""
        place = self.receiver if self.sender == self.receiver else f"{self.sender} → {self.receiver}"
        return f"{self.number:>4} {self.after_ms / 1_000:>8.3f} s  {place}: {self.words}{moved}"


class Sequence(msgspec.Struct, frozen=True):
    """A sequence diagram. ``left_out`` is the number of later inputs that it does not show."""

    title: str
    signals: tuple[Signal, ...]
    left_out: int = 0

    @property
    def lanes(self) -> tuple[str, ...]:
        """The senders and receivers, in the order in which they appear."""
        return tuple(dict.fromkeys(name for each in self.signals for name in (each.sender, each.receiver)))

    def text(self) -> str:
        """Return a line for each input."""
        return "\n".join([self.title, *(each.line() for each in self.signals), *self.rest()])

    def rest(self) -> Iterator[str]:
        """Yield a line about the inputs that are left out, if there are any."""
        if self.left_out:
            yield f"… {self.left_out:,} more input{'s' if self.left_out > 1 else ''}"


def sequence(title: str, steps: Iterable[SystemStep], *, most: int = MOST) -> Sequence:
    """Return the first ``most`` steps as a sequence diagram."""
    coming = iter(steps)
    shown = tuple(islice(coming, most))
    begin_ms = shown[0].envelope.at_ms if shown else 0
    signals = tuple(_signal(number, each, begin_ms) for number, each in enumerate(shown, 1))
    return Sequence(title, signals, sum(1 for _ in coming))


def mermaid_sequence(drawn: Sequence) -> str:
    """Return the diagram in Mermaid's language, which GitHub and most notebooks draw."""
    names = {lane: f"p{number}" for number, lane in enumerate(drawn.lanes)}
    lines = [f"participant {name} as {safe(lane)}" for lane, name in names.items()]
    for each in drawn.signals:
        lines.append(f"{names[each.sender]}->>{names[each.receiver]}: {each.number}. {safe(each.words)}")
        if each.moves:
            lines.append(f"Note over {names[each.receiver]}: {'<br/>'.join(map(safe, each.moves))}")
    if drawn.left_out and names:
        lines.append(f"Note over {next(iter(names.values()))}: {safe(next(drawn.rest()))}")
    return "\n".join(["sequenceDiagram", *(f"    {line}" for line in lines)]) + "\n"


def _signal(number: int, step: SystemStep, begin_ms: int) -> Signal:
    envelope = step.envelope
    sender = {Cause.COMMAND: envelope.actor, Cause.MESSAGE: envelope.sender}.get(step.cause, step.aggregate)
    words = kernel_words(envelope.event) or type(envelope.event).__name__
    outcome = getattr(envelope.event, "outcome", None)
    said = words if outcome is None else f"{words}({type(outcome).__name__})"
    refused = step.reaction.refused
    moves = (f"refused: {refused.reason}",) if refused else tuple(_moves(step.aggregate, step.reaction.transitions))
    return Signal(number, envelope.at_ms - begin_ms, sender, step.aggregate, said, moves)


def _moves(aggregate: str, transitions: Iterable[Transition]) -> Iterator[str]:
    """Yield the transitions into states. One that stays in its state changes nothing that a diagram shows."""
    for each in transitions:
        if each.entered is not None:
            entity = "" if each.entity == aggregate else f"{each.entity}: "
            before = "" if each.before is None else f"{each.before.state} → "
            yield f"{entity}{before}{each.after.state}"
