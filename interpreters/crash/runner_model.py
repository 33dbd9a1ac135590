"""The model of a runner: decide, persist, perform, record, and a crash after every prefix of them.

A crash loses what is volatile and nothing else. The next runner folds the log and gives each aggregate with a live
entity ``RunnerRecovered``, which sets the timers and attends the running activities. Then it performs effects without a
record, and delivers messages without a receipt, as the engine does.

Decisions and possible inputs come from the aggregates (see ``decisions``), as far as this runner has started their
handlers. There is no report without a handler, and no end without ``End``. The effects of an aggregate are performed in
order, the messages between two aggregates arrive in order, and decisions are persisted in order, several at once.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from lifefold.core.kernel import Aggregate, Cause, Envelope, Phase, System
from lifefold.effects import Begin, Effect, End, StartTimer, Tell
from lifefold.interpreters.crash.decisions import Decisions
from lifefold.interpreters.search.crash_model import (
    Activity,
    CrashBounds,
    CrashModel,
    Discipline,
    Durable,
    Fault,
    Flight,
    Handler,
    OutsideWorld,
    Stage,
    Step,
    Volatile,
)

Successor = tuple[Step, CrashModel, tuple[Fault, ...]]


class Runner:
    """A system under a runner of some discipline."""

    def __init__(
        self,
        system: System,
        opening: Sequence[tuple[str, Envelope]],
        discipline: Discipline,
        bounds: CrashBounds,
        recognised: tuple[type[Effect], ...] = (),
    ) -> None:
        """Take the system. Effects that are ``recognised`` may be performed again although they are not idempotent."""
        self.discipline: Final = discipline
        self.bounds: Final = bounds
        self.decisions: Final = Decisions(system, opening)
        self.names: Final = self.decisions.names
        self.effects: Final = self.decisions.effects
        self.outcomes: Final = self.decisions.outcomes
        self.states: Final = self.decisions.states
        self._recognised: Final = recognised

    def initial(self) -> CrashModel:
        """Return the crash model before any decision."""
        empty = self.decisions.empty()
        durable = Durable(empty, (), (0,) * len(empty), (), frozenset())
        return CrashModel(durable, self._come_back(durable), OutsideWorld(frozenset(), frozenset()))

    def standing(self, aggregates: Sequence[Aggregate], under_way: Sequence[tuple[int, Tell]]) -> CrashModel:
        """Return the crash model of an idle runner, with the messages in flight.

        Each message in flight comes with the number of its sender.
        """
        log = tuple(self.decisions.number(component, each) for component, each in enumerate(aggregates))
        messages = tuple(self.decisions.number_of_message(sender, tell) for sender, tell in under_way)
        durable = Durable(log, (), tuple(each.version for each in aggregates), messages, frozenset())
        handlers = frozenset(
            each for component, number in enumerate(log) for each in self.decisions.handlers(component, number)
        )
        begun = frozenset(each.of for each in handlers if each.kind != "timer")
        volatile = Volatile(log, (), (), messages, handlers, frozenset())
        return CrashModel(durable, volatile, OutsideWorld(frozenset(), begun))

    def successors(self, model: CrashModel) -> Iterator[Successor]:
        """Yield all possible steps in a fixed order; a crash last."""
        yield from self._decisions(model)
        yield from self._persisting(model)
        yield from self._performing(model)
        yield from self._beginning(model)
        yield from self._recording(model)
        if model.crashes < self.bounds.crashes:
            again = self._come_back(model.durable)
            if again != model.volatile:
                yield Step(Stage.CRASH), model._replace(volatile=again, crashes=model.crashes + 1), ()

    def loses(self, model: CrashModel) -> bool:
        """Tell whether a persisted effect is not performed, where no step is possible any more."""
        durable, outside = model.durable, model.outside
        intended = {deed for each in durable.entries for deed in self.outcomes[each].deeds}
        if durable.untaken or not intended <= outside.performed:
            return True
        return any(
            phase is Phase.ENDING or (phase is Phase.LIVE and activity not in outside.begun)
            for component, number in enumerate(durable.log)
            for activity, phase in self.decisions.going_on(component, number).items()
        )

    def envelope(self, model: CrashModel, step: Step) -> Envelope:
        """Return the input of a ``DECIDE`` step."""
        number = model.volatile.now[step.component]
        if step.sent_message >= 0:
            return self.decisions.sent_message(step.component, number, step.sent_message)
        if step.number < 0:
            return self.decisions.greeting(step.component, number)
        accepted = self.decisions.accepted(step.component, number)
        return next(each.given for each in accepted if each.number == step.number)

    # Decide

    def _decisions(self, model: CrashModel) -> Iterator[Successor]:
        volatile = model.volatile
        if volatile.pending:
            component, *pending = volatile.pending
            outcome = self.decisions.greet(component, volatile.now[component])
            yield self._decided(
                model, Step(Stage.DECIDE, component), outcome, volatile._replace(pending=tuple(pending))
            )
            return
        if sum(Stage.PERSIST in each.stages for each in volatile.flights) >= self.bounds.batch:
            return
        for component, number in enumerate(volatile.now):
            for each in self.decisions.accepted(component, number):
                counts = each.cause is not Cause.CONFIRMATION
                if (counts and model.inputs >= self.bounds.inputs) or (
                    each.needs is not None and each.needs not in volatile.handlers
                ):
                    continue
                step = Step(Stage.DECIDE, component, each.number)
                yield self._decided(model._replace(inputs=model.inputs + counts), step, each.outcome, model.volatile)
        heads: set[tuple[int, str]] = set()
        for sent_message in volatile.mail:
            sender, tell = self.decisions.messages[sent_message]
            if (sender, tell.aggregate) not in heads:
                heads.add((sender, tell.aggregate))
                yield self._delivered(model, sent_message, self.names.index(tell.aggregate))

    def _delivered(self, model: CrashModel, sent_message: int, component: int) -> Successor:
        volatile = model.volatile
        rest = volatile._replace(mail=tuple(each for each in volatile.mail if each != sent_message))
        outcome = self.decisions.receive(component, volatile.now[component], sent_message)
        return self._decided(model, Step(Stage.DECIDE, component, sent_message=sent_message), outcome, rest)

    def _decided(self, model: CrashModel, step: Step, outcome: int, volatile: Volatile) -> Successor:
        component, to = self.outcomes[outcome].component, self.outcomes[outcome].to
        going_on = self.decisions.going_on(component, to)
        handlers = frozenset(
            each for each in volatile.handlers if each.of.component != component or each.of in going_on
        )
        now = (*volatile.now[:component], to, *volatile.now[component + 1 :])
        flight = Flight(outcome, self.discipline.order[1:], follows=volatile.known)
        after = self._fly(volatile._replace(now=now, handlers=handlers), (*volatile.flights, flight))
        return step, model._replace(volatile=after), ()

    # Persist

    def _persisting(self, model: CrashModel) -> Iterator[Successor]:
        volatile, durable = model.volatile, model.durable
        if any(not self.states[component][volatile.now[component]].version for component in volatile.pending):
            return  # a system is opened in one transaction
        ready: list[Flight] = []
        for each in volatile.flights:
            if Stage.PERSIST in each.stages:
                if each.stages[0] is not Stage.PERSIST:
                    break
                ready.append(each)
        if not ready:
            return
        if self.discipline.together:
            durable, volatile = self._recorded(durable, volatile)
        for each in ready:
            durable = self._written(durable, each)
        flights = tuple(_onward(each) if each in ready else each for each in volatile.flights)
        yield Step(Stage.PERSIST), model._replace(durable=durable, volatile=self._fly(volatile, flights)), ()

    def _written(self, durable: Durable, flight: Flight) -> Durable:
        outcome, component = self.outcomes[flight.outcome], self.outcomes[flight.outcome].component
        return durable._replace(
            log=(*durable.log[:component], outcome.to, *durable.log[component + 1 :]),
            entries=(*durable.entries, flight.outcome) if outcome.deeds else durable.entries,
            untaken=tuple(each for each in (*durable.untaken, *outcome.messages) if each != outcome.took),
            past=frozenset(
                (by, version) for by, version in durable.past | flight.follows if version > durable.recorded[by]
            ),
        )

    # Perform

    def _fly(self, volatile: Volatile, flights: Sequence[Flight]) -> Volatile:
        """Take every decision through the stages that need neither the world nor the disk."""
        left: list[Flight] = []
        for flight in flights:
            outcome, each = self.outcomes[flight.outcome], flight
            while each.stages and each.stages[0] is not Stage.PERSIST:
                if each.stages[0] is Stage.PERFORM:
                    if each.fresh:
                        volatile, each = self._let_go(volatile, flight.outcome), each._replace(fresh=False)
                    if each.done < len(outcome.deeds):
                        break
                    if outcome.deeds:
                        volatile = volatile._replace(known=volatile.known | {outcome.entry})
                elif outcome.deeds:
                    break
                each = _onward(each)
            if each.stages:
                left.append(each)
        return volatile._replace(flights=tuple(left))

    def _let_go(self, volatile: Volatile, number: int) -> Volatile:
        outcome, handlers = self.outcomes[number], set(volatile.handlers)
        sets_timers = self.discipline.restores_timers or number not in self.decisions.recoveries
        for ref, effect in outcome.derived:
            of = Activity(outcome.component, ref, effect.slot, effect.generation)
            if isinstance(effect, Begin):
                handlers.add(Handler("resume" if effect.resumed else "begin", of))
            elif isinstance(effect, StartTimer):
                if sets_timers:
                    handlers.add(Handler("timer", of, effect.deadline_ms))
            else:
                handlers = {each for each in handlers if each.of != of}
                if isinstance(effect, End):
                    handlers.add(Handler("ended", of))
        return volatile._replace(handlers=frozenset(handlers), mail=volatile.mail + outcome.messages)

    def _performing(self, model: CrashModel) -> Iterator[Successor]:
        volatile, durable, outside = model.volatile, model.durable, model.outside
        busy: set[int] = set()
        for place, flight in enumerate(volatile.flights):
            outcome = self.outcomes[flight.outcome]
            if flight.stages[0] is not Stage.PERFORM or outcome.component in busy:
                continue
            busy.add(outcome.component)
            if flight.owed and self.discipline.recovers_first and not self._is_recovered(volatile):
                continue
            deed = outcome.deeds[flight.done]
            faults: list[Fault] = []
            if not any(deed in self.outcomes[each].deeds for each in durable.entries):
                faults.append(Fault.UNPERSISTED)
            if deed in outside.performed and not (
                self.effects[deed][3].idempotent or self.relies_on(self.effects[deed][3])
            ):
                faults.append(Fault.TWICE)
            if outcome.entry in durable.past:
                faults.append(Fault.PAST)
            if flight.owed and not self._attends(model, outcome.component):
                faults.append(Fault.UNATTENDED)
            flights = list(volatile.flights)
            flights[place] = flight._replace(done=flight.done + 1)
            after = model._replace(
                volatile=self._fly(volatile, flights), outside=outside._replace(performed=outside.performed | {deed})
            )
            yield Step(Stage.PERFORM, outcome.component, deed=deed), after, tuple(faults)

    def _is_recovered(self, volatile: Volatile) -> bool:
        """Tell whether all running activities were requested again."""
        recoveries = self.decisions.recoveries
        return not volatile.pending and not any(each.fresh and each.outcome in recoveries for each in volatile.flights)

    def _attends(self, model: CrashModel, component: int) -> bool:
        """Tell whether the runner has handlers for all running activities of an aggregate."""
        has = {each.of for each in model.volatile.handlers}
        now, log = (
            self.decisions.going_on(component, each[component]) for each in (model.volatile.now, model.durable.log)
        )
        return all(of in has or now.get(of) is not Phase.LIVE for of, phase in log.items() if phase is Phase.LIVE)

    def strands(self, model: CrashModel) -> bool:
        """Tell whether an idle runner lacks a timer of the log, or has it with another deadline."""
        volatile, log = model.volatile, model.durable.log
        if volatile.pending or volatile.flights or volatile.now != log:
            return False
        return any(
            not self.decisions.timers(component, number) <= volatile.handlers for component, number in enumerate(log)
        )

    def relies_on(self, effect: Effect) -> bool:
        """Tell whether a repeated effect is harmless only if its performer recognises it."""
        return not effect.idempotent and (effect.recognised or isinstance(effect, self._recognised))

    def _beginning(self, model: CrashModel) -> Iterator[Successor]:
        """Yield the steps in which handlers start activities, or attend running ones."""
        volatile, outside = model.volatile, model.outside
        for handler in sorted(volatile.handlers):
            if handler.kind not in {"begin", "resume"}:
                continue
            faults: list[Fault] = []
            if handler.of not in self.decisions.going_on(handler.of.component, model.durable.log[handler.of.component]):
                faults.append(Fault.UNPERSISTED)
            if handler.kind == "begin" and handler.of in outside.begun:
                faults.append(Fault.TWICE)
            handlers = volatile.handlers - {handler} | {Handler("live", handler.of)}
            after = model._replace(
                volatile=volatile._replace(handlers=handlers),
                outside=outside._replace(begun=outside.begun | {handler.of}),
            )
            yield Step(Stage.PERFORM, handler.of.component, handler=handler), after, tuple(faults)

    # Record

    def _recording(self, model: CrashModel) -> Iterator[Successor]:
        durable, volatile = self._recorded(model.durable, model.volatile)
        if durable != model.durable:
            yield Step(Stage.RECORD), model._replace(durable=durable, volatile=volatile), ()

    def _recorded(self, durable: Durable, volatile: Volatile) -> tuple[Durable, Volatile]:
        """Record all performed effects."""
        if all(flight.stages[0] is not Stage.RECORD for flight in volatile.flights):
            return durable, volatile
        recorded = list(durable.recorded)
        flights = list(volatile.flights)
        for place, flight in enumerate(flights):
            if flight.stages[0] is Stage.RECORD:
                component, version = self.outcomes[flight.outcome].entry
                recorded[component] = max(recorded[component], version)
                flights[place] = _onward(flight)
        known = frozenset(
            (component, version) for component, version in volatile.known if version > recorded[component]
        )
        past = frozenset((component, version) for component, version in durable.past if version > recorded[component])
        return durable._replace(recorded=tuple(recorded), past=past), self._fly(volatile._replace(known=known), flights)

    # Crash

    def _come_back(self, durable: Durable) -> Volatile:
        """Return the knowledge of a new runner: the contents of the log."""
        again = tuple(stage for stage in self.discipline.order if stage in {Stage.PERFORM, Stage.RECORD})
        flights = [
            Flight(each, again, fresh=False, owed=True)
            for each in durable.entries
            if self.outcomes[each].version > durable.recorded[self.outcomes[each].component]
        ]
        pending = tuple(each for each, number in enumerate(durable.log) if self.decisions.is_greeted(each, number))
        return self._fly(Volatile(durable.log, pending, (), durable.untaken, frozenset(), frozenset()), flights)


def _onward(flight: Flight) -> Flight:
    return flight._replace(stages=flight.stages[1:])
