"""A whole fleet, and all that may happen to it: operators, agents, time, messages and crashes, in any order.

What may happen is read off the machines (``possible``), so that a new one is in here by itself. Messages arrive in any
order between different pairs, late, and again; a crash of the runner lets everything that was told be told again. After
every step all properties are asked of all that they are about, and beside them those that people have of any fleet, in
words of their own.
"""

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import board_life
from lifefold.core.fleet import AgentPlan, Budget, GatePlan, Plan, Preemption, ServicePlan, Talks, opening, system
from lifefold.core.fleet.board import budget
from lifefold.core.fleet.worker.stall_detector import Limits as StallLimits
from lifefold.core.kernel import (
    Aggregate,
    Cause,
    Entity,
    Envelope,
    Input,
    Machine,
    Possible,
    Property,
    PropertyKind,
    Reaction,
    Refusal,
    RunnerRecovered,
    System,
    Transition,
    World,
    delivery,
    late,
    possible,
    replace,
    sent_in,
    subject_of,
)
from lifefold.core.lifecycles import process, session, task
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.effects import Begin, Every

Pair = tuple[str, str]

NUMBER: Final = st.integers(0, 2**16)
"""Which of all that may happen next does."""

_LADDERS: Final = (None, StallLimits(warn_ms=1_000, nudge_ms=2_000, end_ms=3_000))
_GATES: Final = (None, None, GatePlan(merge=AccessLevel.PROBATIONARY))
_BUDGETS: Final = (
    Budget(),
    Budget(Caps(sessions=2)),
    Budget(Caps(tokens=50), Amounts(tokens=20, sessions=1), period_ms=60_000),
)
_SERVICE: Final = ServicePlan(
    "web", process.Limits(restart_policy="on_failure", max_consecutive_failures=2), triggers=(Every(1_000),),
    takes_messages=True,
)  # fmt: skip

_TALKS: Final = (None, Talks(chooses=True, resumes=True), Talks(chooses=False, resumes=True))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Make a small plan that asks for whatever a fleet file may ask for."""
    few: Plan = draw(board_life.plans())
    limits = session.Limits(max_consecutive_errors=draw(st.integers(1, 3)), max_total_errors=4)
    restart = Restart(max_restarts=draw(st.integers(0, 2)))
    agents = [
        AgentPlan(
            each.name,
            limits,
            roles=each.roles,
            caps=draw(st.sampled_from([Caps(), Caps(), Caps(sessions=1)])),
            stall=draw(st.sampled_from(_LADDERS)),
            restart=restart,
            talks=draw(st.sampled_from(_TALKS)),
        )
        for each in few.agents
    ]
    capped = draw(st.booleans())
    tasks = [replace(each, caps=Caps(sessions=1)) if capped and not n else each for n, each in enumerate(few.tasks)]
    return replace(
        few,
        agents=tuple(agents),
        tasks=tuple(tasks),
        budget=draw(st.sampled_from(_BUDGETS)),
        gates=draw(st.sampled_from(_GATES)),
        restarts=draw(st.sampled_from([None, Intensity(max_restarts=2)])),
        preemption=draw(st.sampled_from([None, Preemption(), Preemption(1_000)])),
        orphaned=draw(st.sampled_from(list(task.OnDeath))),
        services=draw(st.sampled_from([(), (_SERVICE,)])),
        anew=draw(st.booleans()),
    )


class Life:
    """The aggregates of a fleet, the messages between them, and the clock; it asks every property after every input."""

    def __init__(self, plan: Plan, of: System = system) -> None:
        """Open the fleet."""
        self.of = of
        self.plan = plan
        self.now_ms = 0
        self.world = World(of)
        self.told: dict[Pair, list[Envelope]] = {}
        self.closed: dict[str, int] = {}
        self.stopped: dict[str, bool] = {}
        self.begun: dict[str, set[tuple[str, str]]] = {}
        for name, envelope in opening(plan, 0):
            self.give(name, envelope)

    # What happens

    def give(self, name: str, envelope: Envelope) -> Reaction | Refusal:
        """Give an input to an aggregate; then everything has to be as promised."""
        given = Input(name, envelope)
        answer = self.world.outcome(given)
        if isinstance(answer, Reaction):
            self.world = self.world.after(given, answer)
            for tell in sent_in(answer):
                self.told.setdefault((name, tell.aggregate), []).append(delivery(name, tell, 0).envelope)
            self.agree(name, answer)
        return answer

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """Return the aggregates by name."""
        return self.world.aggregates

    def waiting(self) -> list[Pair]:
        """Return between whom messages are on their way, in a fixed order."""
        return sorted(self.world.next_messages())

    def under_way(self, pair: Pair) -> list[Envelope]:
        """Return the messages of a pair that have not arrived."""
        return [each for each in self.told[pair] if (*pair, each.ordinal) in self.world.in_flight]

    def deliver(self, pair: Pair, number: int) -> None:
        """Let one of the messages of a pair arrive, be it too early; or one again that has arrived before."""
        waiting = self.under_way(pair)
        every = self.told[pair]
        envelope = waiting[0] if number % 4 else every[number // 4 % len(every)]
        answer = self.give(pair[1], replace(envelope, at_ms=self.now_ms))
        if envelope is not waiting[0]:
            assert isinstance(answer, Refusal)
            assert answer.kind in {"duplicate", "overtaking"}, answer
        else:
            assert isinstance(answer, Reaction), answer

    def may_happen(self, *causes: Cause) -> list[tuple[str, Possible]]:
        """Return what may happen next from these causes, in a fixed order."""
        return [
            (name, each)
            for name in sorted(self.aggregates)
            for each in possible(self.of.type_of(name), self.aggregates[name], self.now_ms)
            if each.cause in causes
        ]

    def happen(self, number: int, *causes: Cause) -> None:
        """Let one of these happen, and the time pass until then."""
        every = self.may_happen(*causes)
        if every:
            name, each = every[number % len(every)]
            self.now_ms = max(self.now_ms, each.envelope.at_ms)
            self.give(name, replace(each.envelope, actor=each.envelope.actor or "operator", at_ms=self.now_ms))

    def crash(self) -> None:
        """Let the runner die, and come back: it lets go on what went on."""
        for name in sorted(self.aggregates):
            assert isinstance(self.give(name, Envelope("", RunnerRecovered(10), self.now_ms, "engine")), Reaction)

    def speak_late(self, number: int) -> None:
        """Let an activity, or a timer, that is long over say something: it is refused, and nothing has changed."""
        every = [(name, ref) for name in sorted(self.aggregates) for ref in sorted(self.aggregates[name].entities)]
        name, ref = every[number % len(every)]
        for envelope in late(self.machine(name, ref), self.entity(name, ref), self.now_ms):
            assert isinstance(self.give(name, envelope), Refusal), envelope

    # What is promised

    def agree(self, name: str, reaction: Reaction) -> None:
        """Ask everything: of the steps, of what has changed, of the aggregate, of the system, and of any fleet."""
        of, aggregate = self.of.type_of(name), reaction.aggregate
        for step in reaction.transitions:
            declared = (*of.machines[step.machine].properties, *of.properties, *self.of.properties)
            self.hold(declared, PropertyKind.ALWAYS_STEP, step)
            self.count(name, step)
        for ref in reaction.changed:
            self.hold(self.machine(name, ref).properties, PropertyKind.ALWAYS, aggregate.entities[ref])
        self.hold(of.properties, PropertyKind.ALWAYS, aggregate)
        scene = self.world.system_state()
        for each in self.of.properties:
            if each.property_kind is PropertyKind.ALWAYS:
                self.hold((each,), PropertyKind.ALWAYS, subject_of(each, scene))
        self.of_any_fleet(name, reaction)

    def hold(self, declared: tuple[Property[Any], ...], property_kind: PropertyKind, subject: Any) -> None:
        """Ask the properties of one kind."""
        broken = [each.name for each in declared if each.property_kind is property_kind and not each.holds(subject)]
        assert not broken, broken

    def count(self, name: str, step: Transition) -> None:
        """Take note of what may happen once at most."""
        if step.entity.startswith("task:") and step.entered is task.State.CLOSED:
            self.closed[step.entity] = self.closed.get(step.entity, 0) + 1
        if step.entity == "desired_state":
            self.stopped[name] = self.stopped.get(name, False) or str(step.after.state) == "Stop"

    def of_any_fleet(self, name: str, reaction: Reaction) -> None:
        """What people expect of any fleet, said once more, and without the words of the properties."""
        tasks = [each for ref, each in self.aggregates["board"].entities.items() if ref.startswith("task:")]
        owners = [each.record.owner for each in tasks if each.record.owner and not task.settled(each.record)]
        assert len(owners) == len(set(owners)), "an owner has one task"
        assert all(count == 1 for count in self.closed.values()), "nothing is completed twice"
        for each in tasks:
            assert not (task.settled(each.record) and each.record.owner), "nothing is both settled and in hand"
            if each.state in {task.State.CLAIMED, task.State.IN_PROGRESS}:
                self.is_looked_after(each)
        for ref, entity in self.aggregates["board"].entities.items():
            if ref.startswith("budget:"):
                self.is_within_its_cap(entity.record)
        if self.stopped.get(name):
            begun = [each.effect.slot for each in reaction.effects if isinstance(each.effect, Begin)]
            assert str(self.record(name, "desired_state").state) == "Stop", "an intended stop is final"
            assert "RunSession" not in [slot for slot in begun if not self.is_resumed(reaction, slot)], "nothing begins"

    def is_looked_after(self, of: Entity[Any]) -> None:
        """A task in hand has an owner who is there, or whose word is on its way."""
        owner = f"worker/{of.record.owner}"
        worker_slot = self.record("board", f"worker_slot:{of.record.owner}")
        assert owner in self.aggregates, "the owner of a task is a worker"
        assert str(worker_slot.state) == "Working", "who has a task has not gone"
        assert worker_slot.task == of.record.id

    def is_within_its_cap(self, of: budget.Budget) -> None:
        """What is spent and set aside is no more than the cap."""
        for line in of.lines:
            assert line.account.spent + line.account.reserved <= line.account.cap, "spending is within the caps"

    @staticmethod
    def is_resumed(reaction: Reaction, slot: str) -> bool:
        """Tell whether what begins went on already: an agent that was left running is found again (E19)."""
        begun = [each.effect for each in reaction.effects if isinstance(each.effect, Begin)]
        return all(each.resumed for each in begun if each.slot == slot)

    def entity(self, name: str, ref: str) -> Entity[Any]:
        """Return an entity."""
        return self.aggregates[name].entities[ref]

    def machine(self, name: str, ref: str) -> Machine[Any]:
        """Return the machine of an entity."""
        return self.of.type_of(name).machines[ref.partition(":")[0]]

    def record(self, name: str, ref: str) -> Any:
        """Return the record of an entity."""
        return self.entity(name, ref).record


class Fleet(RuleBasedStateMachine):
    """A fleet, its operators and its sessions."""

    subject: System = system

    @initialize(plan=plans())
    def open(self, plan: Plan) -> None:
        """Begin as a fleet does."""
        self.life = Life(plan, self.subject)

    @rule(number=NUMBER)
    def an_operator_sends_a_message(self, number: int) -> None:
        """A person says what is a person's to say, to whomever, whether it fits or not."""
        self.life.happen(number, Cause.COMMAND)

    @rule(numbers=st.lists(NUMBER, min_size=1, max_size=8))
    def agents_get_on(self, numbers: list[int]) -> None:
        """What goes on in the agents says how it goes, or is confirmed to have ended; what they tell arrives."""
        for number in numbers:
            self.life.happen(number, Cause.REPORT, Cause.CONFIRMATION)
            for pair in self.life.waiting():
                self.life.deliver(pair, 1)

    @rule(number=NUMBER)
    def an_agent_says_something(self, number: int) -> None:
        """And whom it tells hears of it later."""
        self.life.happen(number, Cause.REPORT, Cause.CONFIRMATION)

    @rule(number=NUMBER)
    def time_passes(self, number: int) -> None:
        """A timer reaches its deadline."""
        self.life.happen(number, Cause.TIMER)

    @precondition(lambda self: self.life.waiting())
    @rule(number=NUMBER)
    def a_message_arrives(self, number: int) -> None:
        """In its turn, too early, or again."""
        waiting = self.life.waiting()
        self.life.deliver(waiting[number % len(waiting)], number // 7)

    @rule()
    def the_runner_crashes(self) -> None:
        """And comes back."""
        self.life.crash()

    @rule(number=NUMBER)
    def a_message_comes_too_late(self, number: int) -> None:
        """What is long over says something."""
        self.life.speak_late(number)
