"""The trace of a check as a drawing: the transitions, step by step, and its end."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from lifefold.core.kernel import Cause, State, SystemStep
from lifefold.interpreters.report.trace import Trace, kernel_words, placed
from lifefold.interpreters.views.picture import Arrow, Box, Drawing, Tint

NOTHING_MORE: Final = "nothing happens any more"


class Move(NamedTuple):
    """A step of an entity: the number of the step, the entity, its states before (None: new) and after, the input."""

    number: int
    place: str
    before: State | None
    after: State
    said: str


def moves(steps: Sequence[SystemStep]) -> tuple[Move, ...]:
    """Return the transitions of these steps, in order; also those that leave their entity in its state."""
    return tuple(move for number, each in enumerate(steps, 1) for move in _moves(number, each))


def _moves(number: int, happening: SystemStep) -> Iterator[Move]:
    for step in happening.reaction.transitions:
        before = None if step.before is None else step.before.state
        place = placed(happening.aggregate, step.entity)
        own = step.entity == happening.envelope.entity or not happening.envelope.entity
        said = _said(happening) if own else f"→ {type(step.event).__name__}"
        yield Move(number, place, before, step.after.state, said)
    refused, entity = happening.reaction.refused, happening.reaction.aggregate.entities.get(happening.envelope.entity)
    if refused is not None and entity is not None:
        place = placed(happening.aggregate, entity.ref)
        yield Move(number, place, entity.state, entity.state, f"{_said(happening)}, refused")


def _said(happening: SystemStep) -> str:
    event = happening.envelope.event
    outcome = getattr(event, "outcome", None)
    which = "" if outcome is None else f"({type(outcome).__name__})"
    who = {Cause.COMMAND: "operator: ", Cause.MESSAGE: f"{happening.envelope.sender}: "}
    return kernel_words(event) or f"{who.get(happening.cause, '')}{type(event).__name__}{which}"


def crossed(found: Sequence[Move]) -> tuple[tuple[State | None, State], ...]:
    """Return the pairs of states between which these moves lead, as ``statechart`` marks them."""
    return tuple((move.before, move.after) for move in found)


def way(trace: Trace, *, title: str = "a way") -> Drawing:
    """Return a trace as a drawing: an arrow between two states, with a line for each step that takes it.

    The cycle is marked, or the state in which nothing happens any more.
    """
    steps = (*trace.steps, *(trace.cycle or ()))
    found = moves(steps)
    if not found:
        return _beginning(trace, title)
    several = len({move.place for move in found}) > 1
    first = len(trace.steps) + 1 if trace.cycle else len(steps) + 1
    ends = {move.place: _key(move.place, move.after) for move in found}
    marked = {_key(each.place, each.after) for each in found if each.number >= first}
    last = {ends[found[-1].place]} if found and not trace.cycle else set[str]()
    boxes: dict[str, Box] = {}
    lines: dict[tuple[str, str], list[Move]] = {}
    for move in found:
        for state in filter(None, (move.before, move.after)):
            key = _key(move.place, state)
            name = (str(state), move.place) if several else (str(state),)
            boxes[key] = Box(key, name, Tint.WRONG if key in marked | last else Tint.PLAIN)
        if move.before is not None:
            between = (_key(move.place, move.before), _key(move.place, move.after))
            lines.setdefault(between, []).append(move)
    arrows = [_arrow(between, taken, first) for between, taken in lines.items()]
    if trace.cycle == () and last:
        boxes[NOTHING_MORE] = Box(NOTHING_MORE, (NOTHING_MORE,), Tint.WRONG, loose=True)
        arrows.append(Arrow(next(iter(last)), NOTHING_MORE, tint=Tint.WRONG))
    return Drawing(title, tuple(boxes.values()), tuple(arrows))


def _beginning(trace: Trace, title: str) -> Drawing:
    """Return the opening as a drawing."""
    boxes = [Box(place, (str(record.state), place), Tint.WRONG) for place, record in trace.begins]
    arrows = []
    if trace.cycle == ():
        arrows = [Arrow(box.key, NOTHING_MORE, tint=Tint.WRONG) for box in boxes]
        boxes.append(Box(NOTHING_MORE, (NOTHING_MORE,), Tint.WRONG, loose=True))
    return Drawing(title, tuple(boxes), tuple(arrows))


def _key(place: str, state: State) -> str:
    return f"{place} {state}"


def _arrow(between: tuple[str, str], taken: Sequence[Move], first: int) -> Arrow:
    tint = Tint.WRONG if any(move.number >= first for move in taken) else Tint.PLAIN
    return Arrow(*between, tuple(f"{move.number}. {move.said}" for move in taken), tint)
