"""The board under whatever workers, people and time say to it, in any order; its properties are asked at every step.

Workers report in time, late, twice, and of lost claims. Operators approve, reject, split, cancel, unblock, retry and
add tasks, where that is possible and where it is not. Timers fire, workers leave, and runners recover. The view of the
board's work is compared with the tasks and worker slots after every step.
"""

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from aggregate_hand import Hand
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.board import fleet_task, intake, worker_slot
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.dispatch.claims import KEPT
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system import board_properties
from lifefold.core.fleet.system.plan import fleet_task_of
from lifefold.core.kernel import (
    AggregateType,
    Created,
    Envelope,
    Event,
    Opened,
    Phase,
    Reaction,
    Refusal,
    RunnerRecovered,
    TimerFired,
    replace,
)
from lifefold.core.kernel.property import Property, PropertyKind
from lifefold.core.lifecycles import approval, task
from lifefold.core.lifecycles.task import Stage, State
from lifefold.core.policy.retry import RetryPolicy

ROLES: Final = ("", "", "tester", "writer")
PATHS: Final = ("a", "a/b", "a/b/c", "a/bc", "b", "b/a")
FILES: Final = st.lists(st.sampled_from(PATHS), max_size=2).map(tuple)
REASONS: Final = ("broken", "permission denied", "timed out")


class Chance(NamedTuple):
    """The random parts of a step: a number, a way, and some files."""

    number: int
    way: int
    files: tuple[str, ...] = ()


PICK: Final = st.integers(0, 11)
CHANCES: Final = st.builds(Chance, PICK, PICK, FILES)
WORKED_AT: Final = frozenset({State.CLAIMED, State.IN_PROGRESS})

ALWAYS: Final = [each for each in board_properties.PROPERTIES if each.property_kind is PropertyKind.ALWAYS]
STEPS: Final[dict[str, list[Property[Any]]]] = {
    of.name: [
        each
        for each in (*of.properties, *board_properties.PROPERTIES)
        if each.property_kind is PropertyKind.ALWAYS_STEP and each.of is None
    ]
    for of in (fleet_task.machine, worker_slot.machine, plan_approval.machine, intake.machine)
}

ASKED_TWICE: Final = re.compile(r"task: DependencyLost is not possible in BLOCKED ")
"""What waits for a lost task in two ways is blocked by the first, and asked to block by the second."""


@st.composite
def task_plans(draw: st.DrawFn, place: int) -> TaskPlan:
    """Make a task of a plan: it depends on earlier ones only."""
    earlier = [f"T{each}" for each in range(place)]
    return TaskPlan(
        f"T{place}",
        "do it",
        depends_on=draw(st.lists(st.sampled_from(earlier), max_size=2).map(tuple)) if earlier else (),
        priority=draw(st.integers(1, 3)),
        max_retries=draw(st.integers(0, 2)),
        role=draw(st.sampled_from(ROLES)),
        files=draw(FILES),
        needs_approval=draw(st.booleans()),
        most_subtasks=draw(st.sampled_from([5, 2, 0])),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Make a small plan, with whatever a plan may have."""
    roles = st.sampled_from([ROLES[2:], ROLES[3:], ()])
    agents = tuple(AgentPlan(f"a{n}", roles=draw(roles)) for n in range(draw(st.integers(2, 4))))
    tasks = tuple(draw(task_plans(n)) for n in range(draw(st.integers(1, 6))))
    retry = RetryPolicy(other_retries=draw(st.integers(0, 2)), backoff_base_ms=draw(st.sampled_from([0, 1_000])))
    return Plan("any", agents, tasks, draw(st.booleans()), watch=draw(st.booleans()), retry=retry)


class Board(RuleBasedStateMachine):
    """A board, and all that send to it."""

    @initialize(plan=plans())
    def open(self, plan: Plan) -> None:
        """Begin as a fleet does."""
        (_, envelope), *_ = opening(plan, 0)
        assert isinstance(envelope.event, Opened)
        self.plan, self.added = plan, 0
        self.of = Hand("board", envelope.event.records)
        self.agree(self.of.reaction)

    def offer(self, envelope: Envelope) -> None:
        """Let the board take something, or refuse it; then everything has to be as promised."""
        answer = self.of.offer(envelope)
        if isinstance(answer, Reaction):
            self.agree(answer)
        else:
            assert answer.kind in {"illegal", "unknown", "duplicate"}, answer

    def agree(self, reaction: Reaction) -> None:
        """Hold a reaction against the properties, of the board and of everything on it."""
        of = reaction.aggregate
        assert [each.name for each in ALWAYS if not each.holds(of)] == []
        localized = [
            each
            for each in ALWAYS
            if each.localized and not each.holds(each.localized(of, "board", reaction.transitions))
        ]
        assert [each.name for each in localized] == []
        for step in reaction.transitions:
            assert [each.name for each in STEPS[step.machine] if not each.holds(step)] == [], step
        assert [each.reason for each in reaction.refusals if not self.is_expected(each)] == []
        held = [each.owner for each in tasks_of(of) if each.owner and each.state in KEPT]
        assert len(set(held)) == len(held), "no worker has two tasks"
        assert not any(each.owner for each in tasks_of(of) if task.settled(each)), "what is settled is in no hand"

    def is_expected(self, refusal: Refusal) -> bool:
        """Tell whether a rule has asked for something twice, or a worker for what it may not any more."""
        return not refusal.envelope.actor.startswith("rule:") or bool(ASKED_TWICE.match(refusal.reason))

    def fitting(self, fits: Callable[[fleet_task.FleetTask], bool]) -> list[fleet_task.FleetTask]:
        """Return the tasks that fit, in the order of their names."""
        return sorted((each for each in tasks_of(self.of.aggregate) if fits(each)), key=lambda each: each.id)

    def has(self, fits: Callable[[fleet_task.FleetTask], bool]) -> bool:
        """Tell whether a task fits."""
        return bool(self.fitting(fits))

    def pick(
        self, by: Chance, fits: Callable[[fleet_task.FleetTask], bool] = lambda _: True
    ) -> fleet_task.FleetTask | None:
        """Choose one of the tasks that fit; None if there is none."""
        found = self.fitting(fits)
        return found[by.number % len(found)] if found else None

    def say(self, chosen: fleet_task.FleetTask | None, event: Event) -> None:
        """Let a person say something to a task, if there is one."""
        if chosen is not None:
            self.offer(Envelope(f"task:{chosen.id}", event, self.of.now_ms, "operator"))

    # Workers

    @rule(course=st.lists(CHANCES, min_size=4, max_size=16))
    def work(self, course: list[Chance]) -> None:
        """Some work is done."""
        for by in course:
            self.report(by)

    def report(self, by: Chance) -> None:
        """A worker without a task asks for work. A worker with a task reports its outcome."""
        self.want_work()
        chosen = self.pick(by, lambda each: bool(each.owner))
        if chosen is not None:
            said = _reports(chosen, REASONS[by.number % len(REASONS)])
            event = said[by.way % len(said)]
            self.offer(self.of.message(f"worker/{chosen.owner}", f"task:{chosen.id}", event))

    def want_work(self) -> None:
        """Let each worker without a task ask for work, unless it waits already."""
        owners = {each.owner for each in tasks_of(self.of.aggregate) if each.state in KEPT}
        for name in (each.name for each in self.plan.agents if each.name not in owners):
            if self.of.entity(f"worker_slot:{name}").state in {worker_slot.State.AWAY, worker_slot.State.WORKING}:
                self.offer(self.of.message(f"worker/{name}", f"worker_slot:{name}", worker_slot.WorkWanted()))

    @precondition(lambda self: self.has(_was_claimed))
    @rule(by=CHANCES)
    def speak_too_late(self, by: Chance) -> None:
        """A worker reports on a claim that is over."""
        kinds = (
            task.Started,
            task.Completed,
            task.Failed,
            task.Verified,
            fleet_task.Parked,
            fleet_task.Returned,
            fleet_task.Split,
        )
        chosen = self.pick(by, _was_claimed)
        if chosen is not None:
            late = kinds[by.way % len(kinds)](chosen.epoch - 1)
            self.offer(self.of.message(f"worker/{self.plan.agents[0].name}", f"task:{chosen.id}", late))

    @rule(by=CHANCES)
    def leave(self, by: Chance) -> None:
        """A worker leaves for good, now and then."""
        name = self.plan.agents[by.number % len(self.plan.agents)].name
        if by.way > 9:
            self.offer(self.of.message(f"worker/{name}", f"worker_slot:{name}", worker_slot.WorkerGone("enough")))

    # People

    @precondition(lambda self: self.has(_may_be_split))
    @rule(by=CHANCES)
    def split(self, by: Chance) -> None:
        """The owner of a task splits it, by a command."""
        chosen = self.pick(by, _may_be_split)
        if chosen is not None:
            wanted = (fleet_task.Subtask("a part", files=by.files),) * (1 + by.way % 3)
            self.say(chosen, fleet_task.Split(chosen.epoch, wanted))

    @precondition(lambda self: self.has(_is(State.PENDING_APPROVAL)))
    @rule(by=CHANCES)
    def agree_or_not(self, by: Chance) -> None:
        """A person says what he thinks of finished work."""
        said = approval.ApprovalGranted() if by.way < 8 else approval.ApprovalRefused("no tests")
        self.say(self.pick(by, _is(State.PENDING_APPROVAL)), said)

    @precondition(lambda self: self.has(_is(State.PLANNED)))
    @rule(by=CHANCES)
    def decide(self, by: Chance) -> None:
        """A person decides about the plan, or about a task of it: mostly that it is to be done."""
        if by.number < 4 and self.plan.approve_plan:
            decision = plan_approval.PlanApproved() if by.way < 9 else plan_approval.PlanDeclined()
            self.offer(Envelope("plan", decision, self.of.now_ms, "operator"))
        else:
            self.say(self.pick(by, _is(State.PLANNED)), task.Approved() if by.way < 9 else task.Declined())

    @rule(by=CHANCES)
    def cancel(self, by: Chance) -> None:
        """A person does not want a task any more: most often one that has parts."""
        chosen = self.pick(by, lambda each: each.parts > 0 or by.way > 9)
        if by.way > 6:
            self.say(chosen, task.Cancelled("no"))

    @precondition(lambda self: self.has(_is(State.FAILED)))
    @rule(by=CHANCES)
    def retry(self, by: Chance) -> None:
        """A person lets a task be tried again."""
        self.say(
            self.pick(by, _is(State.FAILED)), fleet_task.RetryGranted("once more") if by.way < 6 else task.Retried()
        )

    @precondition(lambda self: self.has(_is(State.BLOCKED)))
    @rule(by=CHANCES)
    def unblock(self, by: Chance) -> None:
        """A person says that what was not there is."""
        self.say(self.pick(by, _is(State.BLOCKED)), task.Unblocked())

    @precondition(lambda self: self.has(_is(*WORKED_AT)))
    @rule(by=CHANCES)
    def take_away(self, by: Chance) -> None:
        """A task is taken from its owner."""
        chosen = self.pick(by, _is(*WORKED_AT))
        if chosen is not None:
            self.say(chosen, (task.Blocked("no key"), task.Released(chosen.epoch, "taken away"))[by.way % 2])

    @rule(by=CHANCES)
    def say_what_does_not_fit(self, by: Chance) -> None:
        """A person says something to a task that it may not be meant for."""
        said = (
            task.Approved(), task.Declined(), task.Unblocked(), task.Retried(), fleet_task.RetryGranted(),
            approval.ApprovalGranted(), approval.ApprovalRefused(), plan_approval.PlanApproved(),
        )  # fmt: skip
        self.say(self.pick(by), said[by.way % len(said)])

    @precondition(lambda self: self.plan.watch and self.added < 3)
    @rule(by=CHANCES)
    def add(self, by: Chance) -> None:
        """One more task comes, like one that is planned, but for its files; or the last has come."""
        if by.way == 11:
            self.offer(Envelope(intake.REF, intake.LastTaskIn(), self.of.now_ms, "operator"))
        elif self.added < 3 and intake.are_open(self.of.aggregate):
            self.added += 1
            like = self.plan.tasks[by.number % len(self.plan.tasks)]
            fresh = replace(like, id=f"N{self.added}", files=by.files, depends_on=(*like.depends_on, like.id))
            plan = self.of.aggregate.entities.get("plan")
            proposed = plan is not None and plan.state is plan_approval.State.PROPOSED
            record = fleet_task_of(fresh, 10 + self.added, replace(self.plan, approve_plan=proposed))
            self.offer(Envelope(f"task:{fresh.id}", Created(record), self.of.now_ms, "operator"))

    # Time, and the runner

    @rule(by=CHANCES)
    def elapse(self, by: Chance) -> None:
        """A timer reaches its deadline."""
        entities = self.of.aggregate.entities
        timers = [(ref, part) for ref in sorted(entities) for part in entities[ref].running if part.phase is Phase.LIVE]
        if timers:
            ref, part = timers[by.number % len(timers)]
            self.of.now_ms = max(self.of.now_ms, part.deadline_ms)
            self.offer(Envelope(ref, TimerFired(part.slot, part.generation), self.of.now_ms, "timer"))

    @rule()
    def recover(self) -> None:
        """The runner comes back."""
        self.offer(Envelope("", RunnerRecovered(10), self.of.now_ms, "runner"))


def _is(*states: State) -> Callable[[fleet_task.FleetTask], bool]:
    return lambda each: each.state in states


def _was_claimed(t: fleet_task.FleetTask) -> bool:
    return t.epoch > 0


def _may_be_split(t: fleet_task.FleetTask) -> bool:
    return t.state in WORKED_AT and t.parts < t.most_subtasks


def _reports(t: fleet_task.FleetTask, reason: str) -> tuple[Event, ...]:
    """Return what the owner of a task may say of it."""
    rejected = task.Rejected(t.epoch, reason)
    match t.state, t.stage:
        case State.CLAIMED, _:
            ended = (task.Completed(t.epoch), task.Failed(t.epoch, reason), task.Released(t.epoch))
            return (task.Started(t.epoch),) * 9 + ended
        case State.IN_PROGRESS, _:
            return (task.Completed(t.epoch),) * 3 + (task.Failed(t.epoch, reason),)
        case _, Stage.MERGE:
            return task.Verified(t.epoch), task.Verified(t.epoch), fleet_task.Returned(t.epoch, "no disk"), rejected
        case _, Stage.VERIFY | Stage.REVERIFY:
            home = fleet_task.Parked(t.epoch) if t.needs_approval else task.Verified(t.epoch)
            return home, home, fleet_task.Returned(t.epoch, "no disk"), rejected
        case _:
            home = fleet_task.Parked(t.epoch) if t.needs_approval else task.Verified(t.epoch)
            return home, home, home, rejected


MOVES: Final[tuple[Callable[[Board, Chance], None], ...]] = (
    *(Board.report,) * 8,
    *(Board.elapse,) * 2,
    *(Board.agree_or_not,) * 2,
    Board.split,
    Board.decide,
    Board.cancel,
    Board.retry,
    Board.unblock,
    Board.take_away,
    Board.add,
    Board.speak_too_late,
    Board.say_what_does_not_fit,
    Board.leave,
    lambda of, by: of.recover() if by.way == 0 else None,
)
"""What may be done next, some of it more often."""


BOARD: Final = system.type_of("board")


def must_survive_steps(plan: Plan, seed: int, steps: int, kind: AggregateType = BOARD) -> None:
    """Let a board take so many steps that look like chance and are the same every time."""
    of = Board()
    of.open(plan)
    of.of.of = kind
    for step in range(steps):
        number, way, move, files, *paths = blake2b(f"{seed}:{step}".encode()).digest()
        by = Chance(number % 12, way % 12, tuple(PATHS[path % len(PATHS)] for path in paths[: files % 3]))
        MOVES[move % len(MOVES)](of, by)
