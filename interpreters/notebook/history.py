"""The history of a log: every input with its outcome, the state at any time, and a fork from there."""

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final, NamedTuple, Self, overload

from lifefold.core.kernel import ENGINE, Envelope, Refusal, State, System, SystemStep, Transition, describe
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.store import Entry


class Stop(NamedTuple):
    """A transition or a refused message: the number of its input, milliseconds since the first, the entity, the event.

    A refused message leaves its entity in its state.
    """

    number: int
    after_ms: int
    place: str
    before: State | None
    after: State
    words: str

    def line(self) -> str:
        """Return it as a line of text."""
        before = "" if self.before is None else f"{self.before} → "
        return f"{self.number:>4} {self.after_ms / 1_000:>8.3f} s  {self.place:<24} {before}{self.after}   {self.words}"


class History(Sequence[Decision]):
    """The inputs of a system in order, each with its outcome."""

    def __init__(self, system: System, inputs: Iterable[tuple[str, Envelope]]) -> None:
        """Fold inputs. Raises ``ValueError`` for one that the rules refuse."""
        self.system: Final = system
        ledger = Ledger(system)
        self._decisions: Final = tuple(_decided(ledger, name, envelope) for name, envelope in inputs)

    @classmethod
    def of(cls, system: System, entries: Iterable[Entry]) -> Self:
        """Fold a log's entries. Raises ``LogMismatchError`` where log and rules do not agree."""
        decisions = (each for each in Ledger(system).fold(entries) if each.entry.stream != ENGINE)
        return cls(system, [(each.entry.stream, each.envelope) for each in decisions])

    @classmethod
    def read(cls, system: System, text: str) -> Self:
        """Read inputs, a JSON object on each line: the aggregate as ``stream``, and its ``envelope``."""
        codec = Ledger(system).codec
        found = [json.loads(line) for line in text.splitlines()]
        return cls(system, [(each["stream"], codec.decode(each["stream"], _wire(each))) for each in found])

    def __len__(self) -> int:
        return len(self._decisions)

    @overload
    def __getitem__(self, place: int) -> Decision: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Decision, ...]: ...

    def __getitem__(self, place: int | slice) -> Decision | tuple[Decision, ...]:
        return self._decisions[place]

    def fork(self, inputs: int) -> Ledger:
        """Return the state after so many inputs: a ledger of its own, that can be given other inputs."""
        ledger = Ledger(self.system)
        for each in self._decisions[:inputs]:
            ledger.decide(each.entry.stream, each.envelope)
        return ledger

    def instead(self, inputs: int, *others: tuple[str, Envelope]) -> "History":
        """Return another history: so many inputs of this one, and then these. Raises ``ValueError`` as above."""
        kept = [(each.entry.stream, each.envelope) for each in self._decisions[:inputs]]
        return History(self.system, [*kept, *others])

    def stops(self, aggregate: str = "", entity: str = "") -> tuple[Stop, ...]:
        """Return the transitions into states, and refused messages: of one aggregate or entity, or of all."""
        return tuple(
            stop
            for number, decision in enumerate(self._decisions, 1)
            if decision.entry.stream.startswith(aggregate)
            for stop in self._stops(number, decision)
            if not entity or stop.place.endswith(f" {entity}")
        )

    def _stops(self, number: int, decision: Decision) -> Iterator[Stop]:
        begin_ms = self._decisions[0].envelope.at_ms
        for step in decision.reaction.transitions:
            if step.entered is not None:
                yield _stop(number, decision, step, begin_ms)
        refused, entity = decision.reaction.refused, decision.reaction.aggregate.entities.get(decision.envelope.entity)
        if refused is not None and entity is not None:
            words = f"{type(decision.envelope.event).__name__}, refused: {refused.reason}"
            after_ms, place = decision.envelope.at_ms - begin_ms, f"{decision.entry.stream} {entity.ref}"
            yield Stop(number, after_ms, place, entity.state, entity.state, words)

    def steps(self) -> Iterator[SystemStep]:
        """Yield the inputs with their reactions, as a check's trace has them."""
        return (SystemStep(each.entry.stream, each.envelope, each.reaction) for each in self._decisions)

    def text(self) -> str:
        """Return all transitions, a line each."""
        return "\n".join(stop.line() for stop in self.stops())

    def html(self) -> str:
        """Return all transitions as a table that stands alone."""
        cell = '<td style="text-align: left; white-space: nowrap">'
        rows = [
            "<tr>" + "".join(f"{cell}{escape(component)}</td>" for component in _cells(stop)) + "</tr>"
            for stop in self.stops()
        ]
        return "\n".join(
            ['<div style="max-height: 24em; overflow: auto"><table><tbody>', *rows, "</tbody></table></div>"]
        )


def _cells(stop: Stop) -> tuple[str, ...]:
    before = "" if stop.before is None else str(stop.before)
    return str(stop.number), f"{stop.after_ms / 1_000:.3f} s", stop.place, before, str(stop.after), stop.words


def _decided(ledger: Ledger, name: str, envelope: Envelope) -> Decision:
    decision = ledger.decide(name, envelope)
    match decision:
        case Refusal():
            raise ValueError(f"{name} refuses {type(envelope.event).__name__}: {decision.reason}")
        case Decision():
            return decision


def _wire(line: Any) -> bytes:
    return json.dumps(line["envelope"]).encode()


def _stop(number: int, decision: Decision, step: Transition, begin_ms: int) -> Stop:
    before = None if step.before is None else step.before.state
    said = in_plain_words(describe(step.event))
    words = f"{type(step.event).__name__}: {said}" if said else type(step.event).__name__
    after_ms = decision.envelope.at_ms - begin_ms
    return Stop(number, after_ms, f"{decision.entry.stream} {step.entity}", before, step.after.state, words)
