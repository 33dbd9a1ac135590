"""The laws of every lifecycle, checked with random traces of your machine.

``check_laws`` looks for a trace that breaks a law, shrinks it, and fails with it as a table. It proves nothing, and
needs neither bounds nor much time. ``lifefold check`` explores all states. The laws concern its assumptions: that the
reducer is a function, and that a log can be read back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis.errors import Flaky
from msgspec import Struct

from lifefold.core.kernel import (
    AggregateType,
    Codec,
    Created,
    Envelope,
    Event,
    Machine,
    Outcomes,
    PropertyKind,
    Reaction,
    Refusal,
    advance,
    alone,
    encode,
    late,
    possible,
    react,
    written,
)
from lifefold.interpreters.called import must_be
from lifefold.interpreters.seed import present_seed
from lifefold.interpreters.testing.strategies import traces
from lifefold.interpreters.testing.trace import Taken, Trace, what

SUPPRESSED: Final = (
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
    HealthCheck.nested_given,
    HealthCheck.too_slow,
)
"""The health checks of hypothesis about the length and the time of traces, which say nothing about a machine."""


class LawBrokenError(AssertionError):
    """A machine breaks a law; the message has the law, the difference, and the trace."""


class Subject(NamedTuple):
    """A machine by itself, with its system and its codec."""

    machine: Machine[Any]
    of: AggregateType
    codec: Codec


Law = Callable[[Subject, Trace], Iterator[str]]
"""Yields the violations in a trace."""


def check_laws(machine: Machine[Any], *, examples: int = 100, max_size: int = 20, seed: int | None = None) -> None:
    """Check so many random traces of at most ``max_size`` inputs. Raises ``LawBrokenError``.

    An error of the machine's own functions is raised with the trace as a note. Without a ``seed`` it is that of the
    test (``--lifefold-seed``), or a new one.
    """
    must_be(machine, Machine, "a Machine")
    number = present_seed() if seed is None else seed
    system, _ = alone(machine)
    subject = Subject(machine, system.aggregates[machine.name], Codec(system))
    for wrong in _unreadable(subject):
        raise LawBrokenError(f"{machine.name} breaks a law: what is written is read as it was: {wrong}")
    found = _Search(subject).run(examples, max_size, number)
    if found is not None:
        law, wrong, trace = found
        again = f"check_laws(..., seed={number}) or pytest --lifefold-seed={number} finds it again"
        raise LawBrokenError(f"{machine.name} breaks a law: {law}: {wrong}\n\n{trace}\n\n{again}")


class _FoundError(Exception):
    """A trace breaks a law."""


class _Search:
    """Searches the smallest trace that breaks a law; after the first, for that law only."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._found: tuple[str, str, Trace] | None = None

    def run(self, examples: int, max_size: int, number: int) -> tuple[str, str, Trace] | None:
        """Return the law, the violation, and the trace; None if there is none."""

        @seeded(number)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=SUPPRESSED,
        )
        @given(traces(self._subject.machine, max_size=max_size))
        def look(trace: Trace) -> None:
            if self._breaks(trace):
                raise _FoundError

        try:
            look()
        except (_FoundError, Flaky):  # a reducer that is not a function need not break a law again
            if self._found is None:
                raise
        return self._found

    def _breaks(self, trace: Trace) -> bool:
        laws = LAWS if self._found is None else {self._found[0]: LAWS[self._found[0]]}
        for name, law in laws.items():
            for wrong in law(self._subject, trace):
                self._found = (name, wrong, trace)
                return True
        return False


def _unreadable(subject: Subject) -> Iterator[str]:
    """Yield the events whose examples are not read back as they were written."""
    for kind in subject.machine.events:
        for event in kind.examples():
            yield from _unlike(subject, Envelope(subject.machine.name, event, 0))


def is_read_as_written(subject: Subject, trace: Trace) -> Iterator[str]:
    """Every input and every record is equal after it was written and read."""
    for taken in trace.steps:
        yield from _unlike(subject, taken.envelope)
    born: Event = Created(trace.entity.record)
    yield from _unlike(subject, Envelope(subject.machine.name, born, 0))


def _unlike(subject: Subject, envelope: Envelope) -> Iterator[str]:
    try:
        read = subject.codec.decode(subject.of.kind, encode(envelope))
    except (TypeError, ValueError) as error:
        yield f"{envelope.event!r}: {error}"
    else:
        if not _alike(read, envelope):
            yield f"{envelope.event!r} is read as {read.event!r}"


def _alike(one: Any, other: Any) -> bool:
    """Tell whether two values are equal and of the same types throughout: a state is more than its name."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Struct):
        return all(_alike(getattr(one, name), getattr(other, name)) for name in one.__struct_fields__)
    if _is_mapping(one):
        return one.keys() == other.keys() and all(_alike(value, other[key]) for key, value in one.items())
    if _is_sequence(one):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def is_a_function(subject: Subject, trace: Trace) -> Iterator[str]:
    """The same input to the same record has the same outcome."""
    for taken in trace.steps:
        if react(subject.of, taken.before, taken.envelope) != taken.outcome:
            yield f"{what(taken.envelope)} had another outcome the second time"


def leaves_all_as_it_was(subject: Subject, trace: Trace) -> Iterator[str]:
    """The arguments of a reducer do not change, whether it has accepted the event or refused it."""
    last = trace.steps[-1]
    for taken in trace.steps:
        yield from _changed(subject, taken, taken.envelope)
    for each in possible(subject.of, last.after, last.envelope.at_ms):
        yield from _changed(subject, Taken(last.after, each.envelope, last.outcome), each.envelope)


def _changed(subject: Subject, taken: Taken, envelope: Envelope) -> Iterator[str]:
    given = (*taken.before.entities.values(), envelope)
    before = [encode(each) for each in given]
    answer = react(subject.of, taken.before, envelope)
    if [encode(each) for each in given] != before:
        how = "was refused and" if isinstance(answer, Refusal) else "was taken and"
        yield f"{what(envelope)} {how} has changed what it was given"


def refuses_what_is_late(subject: Subject, trace: Trace) -> Iterator[str]:
    """Reports of an earlier generation of an activity or a timer are refused."""
    for envelope in late(subject.machine, trace.entity, trace.steps[-1].envelope.at_ms):
        if not isinstance(advance(subject.machine, trace.entity, envelope), Refusal):
            yield f"{what(envelope)}, of an earlier generation, was accepted"


def keeps_invariants(subject: Subject, trace: Trace) -> Iterator[str]:
    """Every invariant holds in every record."""
    for taken in trace.steps:
        record = taken.after.record(subject.machine.name)
        for holds in subject.machine.invariants:
            if not holds(record):
                yield f"{holds.__name__} does not hold of {record!r}"


def has_properties(subject: Subject, trace: Trace) -> Iterator[str]:
    """Invariants and transition properties hold."""
    declared = subject.machine.properties
    for taken in trace.steps:
        entity = taken.after.entities[subject.machine.name]
        steps = taken.outcome.transitions if isinstance(taken.outcome, Reaction) else ()
        for prop in declared:
            subjects: tuple[Any, ...] = {PropertyKind.ALWAYS: (entity,), PropertyKind.ALWAYS_STEP: steps}.get(
                prop.property_kind, ()
            )
            if not all(prop.holds(each) for each in subjects):
                yield f"{prop.name!r} does not hold after {what(taken.envelope)}"


def folds_to_the_same(subject: Subject, trace: Trace) -> Iterator[str]:
    """The log, read back, folds to the same reactions: without the rules, and decided by them again."""
    aggregate, outcomes = subject.of.start(subject.of.kind), Outcomes(subject.codec)
    for taken in trace.steps:
        envelope = subject.codec.decode(subject.of.kind, encode(taken.envelope))
        again = react(subject.of, aggregate, envelope)
        if isinstance(again, Refusal) or isinstance(taken.outcome, Refusal):
            yield f"{what(taken.envelope)} was accepted, and is refused when the log is folded"
            return
        outcome = written(aggregate, taken.envelope, taken.outcome)
        folded = outcomes.applied(subject.of, aggregate, envelope, outcome)
        if folded != taken.outcome or outcome != written(aggregate, envelope, again):
            yield f"the log folds to something else from {what(taken.envelope)} on"
            return
        aggregate = again.aggregate


LAWS: Final[dict[str, Law]] = {
    "what is written is read as it was": is_read_as_written,
    "the same input has the same outcome": is_a_function,
    "what is given does not change": leaves_all_as_it_was,
    "what is late is refused": refuses_what_is_late,
    "invariants hold": keeps_invariants,
    "properties hold": has_properties,
    "the log folds to the same": folds_to_the_same,
}
