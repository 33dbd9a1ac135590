"""A trace step by step, as plain values for programs: each input with the records before and after it.

A step has its input in words, the transitions that follow, their effects, and the messages in flight after it. Only
messages that steps of the trace have sent are in flight: those of the time before the trace are not known here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from lifefold.core.kernel import Cause, Created, Entity, Envelope, Opened, SystemStep, Transition
from lifefold.effects import Tell
from lifefold.interpreters.report.finding import Finding
from lifefold.interpreters.report.report import ReportBase
from lifefold.interpreters.report.trace import CrashTrace, Trace, kernel_words, placed

MOST_CHARACTERS: Final = 400
"""The longest value of a field or of an effect; the rest is cut off."""


class Field(msgspec.Struct, frozen=True):
    """A field of a record, with its values before and after a step. ``before`` is empty for a new entity."""

    name: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        """Whether the step has changed it."""
        return self.before != self.after


class Moved(msgspec.Struct, frozen=True):
    """A transition: its entity and machine, the states before (empty for a new entity) and after, event, fields."""

    entity: str
    machine: str
    before: str
    after: str
    event: str
    fields: tuple[Field, ...] = ()


class TracedStep(msgspec.Struct, frozen=True):
    """A step. ``stage`` is what a runner does in a crash trace, such as ``persist``; it is empty elsewhere.

    ``at_ms`` counts from the first step. ``refused`` says why nothing came of the input. ``messages`` are
    in flight after the step. ``repeats``: the step belongs to the cycle that repeats for ever.
    """

    number: int
    said: str
    at_ms: int = 0
    stage: str = ""
    aggregate: str = ""
    moved: tuple[Moved, ...] = ()
    effects: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    refused: str = ""
    repeats: bool = False


class TracedFinding(msgspec.Struct, frozen=True):
    """A finding of a report with its trace. ``earlier`` counts the inputs before the first step.

    ``begins`` has the records of the opening, if there are no steps. ``end`` says what is wrong after the last step.
    ``notes`` are further lines about the way, such as the deviations of a simulation.
    """

    words: str
    kind: str
    mark: str
    steps: tuple[TracedStep, ...]
    begins: tuple[tuple[str, str], ...] = ()
    end: str = ""
    earlier: int = 0
    notes: tuple[str, ...] = ()


class Told(msgspec.Struct, frozen=True):
    """A finding without a trace: most are properties that hold."""

    words: str
    kind: str
    mark: str


class TracedReport(msgspec.Struct, frozen=True):
    """A report: ``met`` is the size of the work, ``extent`` has its further facts with their names.

    ``told`` are the findings without a trace, in the order of the report, and ``traced`` those with one. ``pictures``
    has the states of the machines that move in a trace as SVG, by name, if the command could draw them.
    """

    title: str
    is_ok: bool
    conclusion: str
    met: str
    extent: tuple[tuple[str, str], ...]
    told: tuple[Told, ...]
    traced: tuple[TracedFinding, ...]
    pictures: Mapping[str, str] = {}


class Way(NamedTuple):
    """The trace of a finding where it is longer than the text shows, with the inputs before it, and with notes."""

    trace: Trace
    earlier: int = 0
    notes: tuple[str, ...] = ()


Lengthen = Callable[[Finding], Way | None]
"""Returns the way to a finding; None if its own trace is all there is."""


def only_shown(_finding: Finding) -> None:
    """Return that the trace of a finding is all there is."""


def stepwise(report: ReportBase, lengthen: Lengthen = only_shown) -> TracedReport:
    """Return a report with each shown trace step by step."""
    title, told, traced = report.title, list[Told](), list[TracedFinding]()
    for finding in report.shown_findings():
        way = lengthen(finding) or (None if finding.shown is None else Way(finding.shown))
        words = finding.words(of=title), finding.kind, finding.mark
        if way is None:
            told.append(Told(*words))
        else:
            traced.append(_traced(words, way))
    return TracedReport(
        title, report.ok, report.conclusion(), report.met(), tuple(report.said()), tuple(told), tuple(traced)
    )


def _traced(words: tuple[str, str, str], way: Way) -> TracedFinding:
    begins = tuple((place, _cut(repr(record))) for place, record in way.trace.begins)
    return TracedFinding(*words, tuple(_steps(way.trace)), begins, " ".join(_end(way.trace)), way.earlier, way.notes)


def _steps(trace: Trace) -> Iterator[TracedStep]:
    flying: dict[tuple[str, str, int], Tell] = {}
    steps = (*trace.steps, *(trace.cycle or ()))
    begin_ms = steps[0].envelope.at_ms if steps else trace.begin_ms
    for number, step in enumerate(steps, 1):
        yield _step(number, step, flying, begin_ms, repeats=bool(trace.cycle) and number > len(trace.steps))
    for number, incident in enumerate(trace.incidents if isinstance(trace, CrashTrace) else (), len(steps) + 1):
        if incident.decision is None:
            yield TracedStep(number, incident.words, stage=incident.stage, messages=_in_flight(flying))
        else:
            decided = _step(number, incident.decision, flying, begin_ms)
            yield msgspec.structs.replace(decided, said=incident.words, stage=incident.stage)


def _step(
    number: int, step: SystemStep, flying: dict[tuple[str, str, int], Tell], begin_ms: int, *, repeats: bool = False
) -> TracedStep:
    """Return a step; ``flying`` becomes the messages in flight after it."""
    name, envelope, reaction = step
    if envelope.sender:
        flying.pop((envelope.sender, name, envelope.ordinal), None)
    sent = [each.effect for each in reaction.effects if isinstance(each.effect, Tell)]
    flying.update({(name, tell.aggregate, tell.ordinal): tell for tell in sent})
    refused = reaction.refused
    return TracedStep(
        number,
        _cut(f"{placed(name, envelope.entity)}: {_said(step.cause, envelope)}"),
        envelope.at_ms - begin_ms,
        "",
        name,
        tuple(map(_moved, reaction.transitions)),
        tuple(f"{placed(name, each.entity)}: {_cut(repr(each.effect))}" for each in reaction.effects),
        _in_flight(flying),
        "" if refused is None else _cut(refused.reason),
        repeats,
    )


def _in_flight(flying: dict[tuple[str, str, int], Tell]) -> tuple[str, ...]:
    return tuple(f"{sender} → {receiver}: {_cut(repr(tell.event))}" for (sender, receiver, _), tell in flying.items())


def _moved(of: Transition) -> Moved:
    before = "" if of.before is None else str(of.before.state)
    fields = tuple(_fields(of.before, of.after))
    return Moved(of.entity, of.machine, before, str(of.after.state), _cut(repr(of.event)), fields)


def _fields(before: Entity[Any] | None, after: Entity[Any]) -> Iterator[Field]:
    """Yield the fields of a record besides its state."""
    for name in after.record.__struct_fields__:
        if name != "state":
            was = "" if before is None else _cut(repr(getattr(before.record, name, "")))
            yield Field(name, was, _cut(repr(getattr(after.record, name))))


def _end(trace: Trace) -> Iterator[str]:
    if trace.attempt is not None:
        envelope = trace.attempt.envelope
        if envelope is not None:
            yield f"{placed(trace.attempt.aggregate, envelope.entity)}: {_said(trace.attempt.cause, envelope)}:"
        yield trace.attempt.said
    if trace.cycle == ():
        yield "From then on nothing happens any more."
    elif trace.cycle:
        yield f"From step {len(trace.steps) + 1} on the steps repeat for ever."


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def _said(cause: Cause, envelope: Envelope) -> str:
    """Return an input in words: its source and its event."""
    event = envelope.event
    if words := kernel_words(event):
        return words
    if isinstance(event, Created | Opened):
        return f"from outside: {event!r}"
    source = {Cause.REPORT: f"{envelope.slot} reports", Cause.MESSAGE: f"{envelope.sender} tells"}
    return f"{source.get(cause, 'an operator gives')} {event!r}"


def machines_in(report: TracedReport) -> tuple[str, ...]:
    """Return the names of the machines that move in the traces of a report."""
    steps = (step for finding in report.traced for step in finding.steps)
    return tuple(dict.fromkeys(moved.machine for step in steps for moved in step.moved))
