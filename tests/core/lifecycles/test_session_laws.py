"""Laws of every session, over arbitrary sequences of inputs.

Half of the inputs are chosen without regard to the state. They are an event of the table without a slot or in the name
of any activity that was ever begun, a timer's report, a confirmation, or a recovery of the runner. Most are refused, as
they should be. The other half are reports that an activity may send next, so that the sequences reach later states.
"""

from typing import Any, Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import (
    ActivityEnded,
    AggregateType,
    Codec,
    Created,
    EntityStep,
    Envelope,
    Event,
    IllegalTransition,
    Machine,
    Outcomes,
    Phase,
    Reaction,
    Refusal,
    RunnerRecovered,
    Running,
    Step,
    System,
    TimerFired,
    encode,
    react,
    written,
)
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import Limits, Session, State
from lifefold.core.lifecycles.session_profiles import PromptFailed, prompt_failures
from lifefold.core.lifecycles.session_windowed import WindowedSession, windowed
from lifefold.effects import Begin, CancelTimer, Effect, End, LogFatal, StartTimer
from session_life import Life

MACHINES: Final[dict[str, Machine[Any]]] = {
    machine.name: machine for machine in (session.machine, windowed, prompt_failures)
}
SOLO: Final = AggregateType("agent", machines=MACHINES.values())
SYSTEM: Final = System("solo", SOLO)


class Unheard(Event, frozen=True):
    """An event that no table of a session knows."""


class Likely(Event, frozen=True):
    """Stands for what something that goes on has to say: one of its events, or the confirmation of its end."""


class Move(msgspec.Struct, frozen=True):
    """An input still without its slot and generation: ``source`` picks them from all that were ever begun.

    For ``Likely``, ``source`` picks one of the things that go on, and ``choice`` what it says.
    """

    event: Event
    source: int
    choice: int
    delay_ms: int


OUTCOMES: Final = st.sampled_from([session.Success(), session.Error("x"), session.Timeout()])
EVENTS: Final = st.one_of(
    st.builds(session.WorktreeReady),
    st.builds(session.PromptReady, st.text(max_size=5)),
    st.builds(session.SessionStarted, st.integers(0, 2)),
    st.builds(session.SessionExited, OUTCOMES),
    st.builds(session.UrgentMessage),
    st.builds(session.GraceExceeded),
    st.builds(session.BackoffElapsed),
    st.builds(session.OperatorStop),
    st.builds(session.FatalError, st.text(max_size=5)),
    st.builds(PromptFailed, st.text(max_size=5)),
    st.builds(Unheard),
)
LIMITS: Final = st.builds(
    Limits,
    max_consecutive_errors=st.integers(1, 4),
    max_total_errors=st.integers(1, 6),
    jitter=st.sampled_from([0.0, 0.5]),
    reset_errors_on=st.sampled_from(["start", "success"]),
    total_errors_window_ms=st.integers(1, 20_000),
)
MOVES: Final = st.lists(
    st.builds(
        Move,
        st.one_of(
            st.just(Likely()),
            EVENTS,
            st.sampled_from([TimerFired("", 0), ActivityEnded("", 0)]),
            st.builds(RunnerRecovered, st.integers(0, 5_000)),
        ),
        st.integers(0, 6),
        st.integers(0, 5),
        st.sampled_from([0, 1, 2_000, 60_000]),
    ),
    max_size=60,
)
RECORDS: Final = st.builds(
    Session,
    state=st.sampled_from(State),
    session_seq=st.integers(0, 2),
    consecutive_errors=st.integers(0, 10),
    total_errors=st.integers(0, 30),
    limits=LIMITS,
)


class Story:
    """A life that is led through moves; it remembers every activity and timer that was ever begun, the newest first."""

    def __init__(self, machine: Machine[Any], limits: Limits) -> None:
        record = type(machine.initial)(limits=limits)
        self.life = Life(record, machine)
        self.begun: list[tuple[str, int]] = []
        self.trace: list[tuple[Envelope | None, EntityStep | Refusal | None, tuple[Effect, ...]]] = []
        self.remember(None, None, self.life.effects)

    def remember(
        self, envelope: Envelope | None, answer: EntityStep | Refusal | None, effects: tuple[Effect, ...]
    ) -> None:
        """Keep what an input came to."""
        for effect in effects:
            if isinstance(effect, Begin | StartTimer) and (effect.slot, effect.generation) not in self.begun:
                self.begun.insert(0, (effect.slot, effect.generation))
        self.trace.append((envelope, answer, effects))

    def play(self, move: Move) -> EntityStep | Refusal:
        """Offer one move to the entity."""
        life = self.life
        life.now_ms += move.delay_ms
        if isinstance(move.event, Likely) and life.entity.running:
            return self.say(life.entity.running[move.source % len(life.entity.running)], move.choice)
        slot, generation = ("", 0)
        if move.source < len(self.begun):
            slot, generation = self.begun[move.source]
        match move.event:
            case TimerFired():
                envelope = Envelope("session", TimerFired(slot, generation), life.now_ms)
            case ActivityEnded():
                envelope = Envelope("session", ActivityEnded(slot, generation), life.now_ms)
            case RunnerRecovered():
                envelope = Envelope("session", move.event, life.now_ms)
            case event:
                envelope = Envelope("session", event, life.now_ms, slot=slot, generation=generation)
        answer = life.offer(envelope)
        self.remember(envelope, answer, life.effects)
        return answer

    def say(self, part: Running, choice: int) -> EntityStep | Refusal:
        """Offer what something that goes on has to say."""
        life = self.life
        if part.phase is Phase.ENDING:
            envelope = Envelope("session", ActivityEnded(part.slot, part.generation), life.now_ms)
        elif part.activity is None:
            life.now_ms = max(life.now_ms, part.deadline_ms)
            envelope = Envelope("session", TimerFired(part.slot, part.generation), life.now_ms)
        else:
            said = [event for kind in life.machine.spans[part.slot].during.yields for event in kind.examples()]
            event = said[choice % len(said)]
            envelope = Envelope("session", event, life.now_ms, slot=part.slot, generation=part.generation)
        answer = life.offer(envelope)
        self.remember(envelope, answer, life.effects)
        return answer


def machines() -> st.SearchStrategy[Machine[Any]]:
    """Choose the machine or one of its profiles."""
    return st.sampled_from(list(MACHINES.values()))


@given(machines(), RECORDS, EVENTS)
def test_every_event_in_every_record_is_a_step_or_a_refusal_and_changes_nothing_given(
    machine: Machine[Any], record: Session, event: Event
) -> None:
    """Totality and determinism: no input raises, nothing given is changed, the same input has the same answer."""
    before = msgspec.json.encode(record)
    given_record = msgspec.convert(msgspec.to_builtins(record), machine.record)
    answer = machine.step(given_record, event)
    assert isinstance(answer, Step | IllegalTransition)
    assert machine.plain_step(given_record, event) == answer
    assert msgspec.json.encode(record) == before
    if isinstance(answer, IllegalTransition):
        assert type(event).__name__ not in answer.allowed or isinstance(
            event, session.SessionStarted | session.SessionExited
        )


@given(machines(), LIMITS, MOVES)
def test_a_refused_input_changes_nothing(machine: Machine[Any], limits: Limits, moves: list[Move]) -> None:
    """After a refusal the entity is the very same; after an acceptance its version never went down."""
    story = Story(machine, limits)
    for move in moves:
        before = story.life.entity
        answer = story.play(move)
        if isinstance(answer, Refusal):
            assert story.life.entity is before
            assert answer.kind in {"illegal", "stale", "early", "unsolicited"}
            assert answer.reason
        else:
            assert story.life.entity.version == before.version + len(answer.transitions)


@given(machines(), LIMITS, MOVES)
def test_the_same_inputs_always_come_to_the_same(machine: Machine[Any], limits: Limits, moves: list[Move]) -> None:
    """Determinism of the whole life: states, effects, refusals."""
    one, other = Story(machine, limits), Story(machine, limits)
    for move in moves:
        assert one.play(move) == other.play(move)
    assert one.life.entity == other.life.entity
    assert one.trace == other.trace


@given(machines(), LIMITS, MOVES, EVENTS)
def test_what_an_ended_activity_still_says_is_stale(
    machine: Machine[Any], limits: Limits, moves: list[Move], event: Event
) -> None:
    """An event in the name of anything that is not live is refused, whatever the event is (D12)."""
    story = Story(machine, limits)
    for move in moves:
        story.play(move)
    entity = story.life.entity
    live = {(part.slot, part.generation) for part in entity.running if part.phase is Phase.LIVE}
    ending = {(part.slot, part.generation) for part in entity.running if part.phase is Phase.ENDING}
    for slot, generation in story.begun:
        if (slot, generation) not in live:
            late = story.life.give(event, slot=slot, generation=generation)
            assert isinstance(late, Refusal)
            assert late.kind == "stale"
            elapsed = story.life.give(TimerFired(slot, generation))
            assert isinstance(elapsed, Refusal)
        if (slot, generation) not in ending:
            ended = story.life.give(ActivityEnded(slot, generation))
            assert isinstance(ended, Refusal)
            assert ended.kind == "stale"
    assert story.life.entity is entity


@given(machines(), LIMITS, MOVES)
def test_an_agent_below_no_threshold_is_stopped(machine: Machine[Any], limits: Limits, moves: list[Move]) -> None:
    """The invariants of the machine hold after every input, and the counters never go down but for the reset."""
    story = Story(machine, limits)
    for move in moves:
        before = story.life.record
        story.play(move)
        now = story.life.record
        assert all(invariant(now) for invariant in machine.invariants)
        assert now.consecutive_errors in {before.consecutive_errors, before.consecutive_errors + 1, 0}
        assert now.session_seq in {before.session_seq, before.session_seq + 1}
        assert now.attempt in {before.attempt, before.attempt + 1}
        if not isinstance(now, WindowedSession):
            assert now.total_errors in {before.total_errors, before.total_errors + 1}


@given(machines(), LIMITS, MOVES, MOVES)
def test_a_stopped_agent_stays_stopped(
    machine: Machine[Any], limits: Limits, moves: list[Move], afterwards: list[Move]
) -> None:
    """The final state absorbs: nothing begins any more, all that is asked for is a report or an end."""
    story = Story(machine, limits)
    for move in moves:
        story.play(move)
    story.life.give(session.OperatorStop())
    counted = (story.life.record.total_errors, story.life.record.attempt, story.life.record.session_seq)
    for move in afterwards:
        story.play(move)
        record = story.life.record
        assert record.state is State.STOPPED
        assert (record.total_errors, record.attempt, record.session_seq) == counted
        assert all(isinstance(effect, LogFatal | End) for effect in story.life.effects)
    assert all(part.phase is Phase.ENDING for part in story.life.entity.running)


class Account:
    """Keeps account of what goes on, from the inputs and effects alone, and asserts that it adds up."""

    def __init__(self, machine: Machine[Any]) -> None:
        self.machine = machine
        self.going: dict[str, int] = {}
        self.ending: set[str] = set()

    def must_close(self, envelope: Envelope, answer: EntityStep) -> None:
        """Take off what an accepted input says, in its own name, is over."""
        event = envelope.event
        if isinstance(event, ActivityEnded):
            self.ending.remove(event.slot)
            assert self.going.pop(event.slot) == event.generation
        elif isinstance(event, TimerFired):
            assert self.going.pop(event.slot) == event.generation
        elif answer.transitions:
            slot = envelope.slot
            if slot in self.going.keys() - self.ending and type(event) in self.machine.last[slot]:
                del self.going[slot]

    def must_fit(self, effect: Effect, *, resumed: bool) -> None:
        """Note what begins and what is to end; after a crash both are only repeated."""
        match effect:
            case Begin(slot=slot, generation=generation) | StartTimer(slot=slot, generation=generation):
                assert self.going.get(slot) == (generation if resumed else None)
                self.going[slot] = generation
            case End(slot=slot, generation=generation):
                assert self.going[slot] == generation
                assert (slot in self.ending) is resumed
                self.ending.add(slot)
            case CancelTimer(slot=slot, generation=generation):
                assert self.going.pop(slot) == generation
            case _:
                pass


@given(LIMITS, MOVES, machines())
def test_every_beginning_has_one_end_before_the_next_beginning_in_its_slot(
    limits: Limits, moves: list[Move], machine: Machine[Any]
) -> None:
    """One activity at a time in a slot: begun, then over by its last event or by End and Ended, then the next (D13)."""
    story = Story(machine, limits)
    for move in moves:
        story.play(move)
    account = Account(machine)
    for envelope, answer, effects in story.trace:
        if isinstance(answer, EntityStep) and envelope is not None:
            account.must_close(envelope, answer)
        resumed = envelope is not None and isinstance(envelope.event, RunnerRecovered)
        for effect in effects:
            account.must_fit(effect, resumed=resumed)


@given(LIMITS, MOVES, machines())
def test_what_is_live_is_what_the_state_declares(limits: Limits, moves: list[Move], machine: Machine[Any]) -> None:
    """After every input, each activity of the state is live or waiting to begin, and nothing else is."""
    story = Story(machine, limits)
    for move in moves:
        story.play(move)
        life = story.life
        on = sorted(part.slot for part in life.entity.running if part.phase is not Phase.ENDING)
        assert on == sorted(slot for slot, span in machine.spans.items() if life.state in span.states)


def fold(log: list[tuple[bytes, bytes]], name: str) -> list[Reaction]:
    """Fold a log of inputs and outcomes from nothing, without a rule."""
    codec = Codec(SYSTEM)
    outcomes, aggregate = Outcomes(codec), SOLO.start(name)
    reactions: list[Reaction] = []
    for entry, outcome in log:
        reaction = outcomes.applied(SOLO, aggregate, codec.decode(name, entry), outcome)
        aggregate = reaction.aggregate
        reactions.append(reaction)
    return reactions


@given(machines(), LIMITS, MOVES)
def test_the_fold_of_the_log_is_the_state(machine: Machine[Any], limits: Limits, moves: list[Move]) -> None:
    """Every envelope survives being written and read, and folding the log gives the same reactions."""
    codec = Codec(SYSTEM)
    record = type(machine.initial)(limits=limits)
    story = Story(machine, limits)
    envelopes = [Envelope(machine.name, Created(record), 0, "test", key="created")]
    for move in moves:
        if type(move.event) in {*machine.events, Likely, TimerFired, ActivityEnded}:
            story.play(move)
            envelope = story.trace[-1][0]
            if envelope is not None and type(envelope.event) is not Likely:
                envelopes.append(msgspec.structs.replace(envelope, entity=machine.name))
    log = [encode(envelope) for envelope in envelopes]
    assert [codec.decode("agent/a", entry) for entry in log] == envelopes
    live, decided = SOLO.start("agent/a"), list[Reaction]()
    entries: list[tuple[bytes, bytes]] = []
    for envelope, entry in zip(envelopes, log, strict=True):
        reaction = react(SOLO, live, envelope)
        if isinstance(reaction, Reaction):
            entries.append((entry, written(live, envelope, reaction)))
            live = reaction.aggregate
            decided.append(reaction)
    assert fold(entries, "agent/a") == decided
