"""A whole fleet in one thread: a queue in virtual time, and a script of numbers that decides everything else.

The driver does what a runner does: it delivers, performs activities, starts timers, carries messages. At each point
where the world has a choice (how a session ends, how long something takes, whether a delivery is repeated or late,
whether a person steps in, whether the runner crashes) it takes the next number of the script. When the script is used
up the world is kind: everything succeeds at once. So every run ends, and a run that fails can be shrunk.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from lifefold.core.fleet import Plan, opening, system
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.worker import assignment, desired_state, mailbox
from lifefold.core.kernel import (
    ActivityEnded,
    Aggregate,
    Codec,
    Entity,
    Envelope,
    Event,
    Phase,
    Reaction,
    Refusal,
    RequestedEffect,
    RunnerRecovered,
    TimerFired,
    Transition,
    encode,
    react,
    replace,
)
from lifefold.core.lifecycles import approval, session, task
from lifefold.effects import (
    Activity,
    Begin,
    CancelSession,
    CheckOutWork,
    Effect,
    End,
    InspectWork,
    MergeWork,
    ParkWork,
    PrepareWorktree,
    RunSession,
    StartTimer,
    Tell,
    VerifyWork,
)

INPUTS_LIMIT: Final = 20_000
CODEC: Final = Codec(system)

Part = tuple[str, str, str, int]
"""What an activity is known by: aggregate, entity, slot, generation."""


class Driver:
    """Drives the aggregates of one plan until nothing is left to happen. ``broken`` agents can make no task's place."""

    def __init__(self, plan: Plan, script: Sequence[int] = (), *, people: bool = False) -> None:
        """Open the fleet. With ``people``, the script may also give operator commands, and crash the runner."""
        self.plan = plan
        self.people = people
        self.now_ms = 0
        self.aggregates: dict[str, Aggregate] = {}
        self.refusals: list[tuple[str, Refusal]] = []
        self.log: list[tuple[str, bytes]] = []
        self.live: dict[Part, Activity] = {}
        self.broken: set[str] = set()
        self.early: dict[tuple[str, str], list[Envelope]] = {}
        self.watch: Callable[[str, Reaction], None] = lambda _name, _reaction: None
        self._script = iter(script)
        self._queue: list[tuple[int, int, str, Envelope]] = []
        self._count = 0
        for name, envelope in opening(plan, 0):
            self.put(name, envelope)

    # The world's choices

    def choose(self, options: int) -> int:
        """Return the next number of the script, below ``options``; 0 is the kind choice."""
        return next(self._script, 0) % options

    def delay_ms(self) -> int:
        """Choose how long something takes."""
        return (0, 1, 10, 3_000, 70_000)[self.choose(5)]

    # The queue

    def put(self, name: str, envelope: Envelope, delay_ms: int = 0) -> None:
        """Let an input arrive after a delay."""
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._count, name, envelope))

    def post(self, name: str, entity: str, event: Event, delay_ms: int = 0) -> None:
        """Let a person's input arrive after a delay."""
        self.put(name, Envelope(entity, event, 0, "operator"), delay_ms)

    def run(self, *, until: Callable[["Driver"], bool] = lambda _driver: False) -> "Driver":
        """Deliver until nothing is left, or until a condition holds."""
        while self._queue and not until(self):
            due_ms, _, name, envelope = heapq.heappop(self._queue)
            self.now_ms = max(self.now_ms, due_ms)
            self.deliver(name, replace(envelope, at_ms=self.now_ms))
            assert len(self.log) < INPUTS_LIMIT, "the fleet does not come to an end"
        return self

    def deliver(self, name: str, envelope: Envelope) -> Reaction | Refusal:
        """Give one input to its aggregate, by way of its bytes, and perform what it asks for."""
        entry = encode(envelope)
        of = system.type_of(name)
        aggregate = self.aggregates.get(name) or of.start(name)
        answer = react(of, aggregate, CODEC.decode(name, entry))
        if isinstance(answer, Refusal):
            self.refusals.append((name, answer))
            if answer.kind == "overtaking":
                self.early.setdefault((envelope.sender, name), []).append(envelope)
            return answer
        self.log.append((name, entry))
        self.aggregates[name] = answer.aggregate
        self.refusals += [(name, refusal) for refusal in answer.refusals]
        self.watch(name, answer)
        for asked in answer.effects:
            self.perform(name, asked)
        for transition in answer.transitions:
            if name == "board":
                self.answer(transition)
        if self.people:
            self.step_in()
        for message in self.early.pop((envelope.sender, name), []):
            self.put(name, message)
        return answer

    # What a runner does

    def perform(self, name: str, asked: RequestedEffect) -> None:
        """Do what an effect asks for."""
        match asked.effect:
            case Tell() as tell:
                self.carry(name, tell)
            case Begin(slot=slot, activity=activity, generation=generation, resumed=resumed):
                part = (name, asked.entity, slot, generation)
                if resumed and part in self.live and self.choose(2) == 0:
                    return
                self.live[part] = activity
                self.begin(part, activity)
            case End(slot=slot, generation=generation):
                self.live.pop((name, asked.entity, slot, generation), None)
                self.twice(name, Envelope(asked.entity, ActivityEnded(slot, generation), 0, "runner"), self.delay_ms())
            case StartTimer(slot=slot, generation=generation, deadline_ms=deadline_ms):
                elapsed = Envelope(asked.entity, TimerFired(slot, generation), 0, "timer")
                self.twice(name, elapsed, deadline_ms - self.now_ms + self.delay_ms())
            case CancelSession():
                self.cancel(name)
            case _:
                pass

    def carry(self, sender: str, tell: Tell) -> None:
        """Deliver a message at least once, perhaps late, perhaps again."""
        message = Envelope(tell.entity, tell.event, 0, sender, sender=sender, ordinal=tell.ordinal)
        self.twice(tell.aggregate, message, self.delay_ms())

    def twice(self, name: str, envelope: Envelope, delay_ms: int) -> None:
        """Deliver once, or twice."""
        self.put(name, envelope, delay_ms)
        if self.choose(4) == 1:
            self.put(name, envelope, delay_ms + self.delay_ms())

    def say(self, part: Part, event: Event, delay_ms: int) -> None:
        """Let an activity say something."""
        name, entity, slot, generation = part
        self.twice(name, Envelope(entity, event, 0, "runner", slot=slot, generation=generation), delay_ms)

    def begin(self, part: Part, activity: Activity) -> None:
        """Choose how an activity goes."""
        delay_ms = self.delay_ms()
        match activity:
            case PrepareWorktree():
                ready: tuple[Event, ...] = (session.WorktreeReady(),) * 9 + (session.FatalError("no space left"),)
                self.say(part, ready[self.choose(10)], delay_ms)
            case CheckOutWork():
                failed = assignment.CheckoutFailed("no branch")
                out = (assignment.CheckedOut(), assignment.CheckedOut(), failed)
                broken = part[0].partition("/")[2] in self.broken
                self.say(part, failed if broken else out[self.choose(3)], delay_ms)
            case InspectWork():
                self.say(part, assignment.Inspected(bool(self.choose(2))), delay_ms)
            case VerifyWork():
                proof = (assignment.Verified(), assignment.Verified(), assignment.Rejected("tests fail"))
                self.say(part, proof[self.choose(3)], delay_ms)
            case ParkWork():
                kept = (assignment.Parked(), assignment.Parked(), assignment.ParkingFailed("no space left"))
                self.say(part, kept[self.choose(3)], delay_ms)
            case MergeWork():
                home = (assignment.Merged("c0ffee"), assignment.Merged(), assignment.Conflicted("both changed it"))
                self.say(part, home[self.choose(3)], delay_ms)
            case RunSession(session_seq=session_seq):
                self.run_session(part, session_seq, delay_ms)
            case _:
                message = f"no handler performs {activity}"
                raise AssertionError(message)

    def run_session(self, part: Part, session_seq: int, delay_ms: int) -> None:
        """Choose how a session goes: it may fail before it has started, and it always ends some time."""
        outcomes = (
            session.Success(),
            session.Success(),
            session.Error("exit status 1"),
            session.Timeout(),
            session.Suspended(),
            session.Suspended(asked=True),
        )
        outcome = outcomes[self.choose(6)]
        if isinstance(outcome, session.Success | session.Suspended) or self.choose(2) == 0:
            self.say(part, session.SessionStarted(session_seq), delay_ms)
        self.say(part, session.SessionExited(outcome), delay_ms + 1 + self.delay_ms())

    def cancel(self, name: str) -> None:
        """Let a session that is asked to end obey, or not."""
        entity: Entity[Any] = self.aggregates[name].entities["session"]
        part = entity.find("RunSession") or entity.find("RunSession", Phase.ENDING)
        if part is not None and self.choose(2) == 0:
            exited = session.SessionExited(session.Error("cancelled"))
            self.say((name, "session", part.slot, part.generation), exited, self.delay_ms())

    # What people do, and what happens to the runner

    def answer(self, transition: Transition) -> None:
        """Let a person answer what he is asked: about a plan always, about finished work if he likes.

        Silence is an answer only where an approval has a limit of time.
        """
        if transition.machine == plan_approval.machine.name and transition.before is None:
            self.post(
                "board", "plan", (plan_approval.PlanApproved(), plan_approval.PlanDeclined())[self.choose(8) // 7], 10
            )
        if transition.entered is task.State.PENDING_APPROVAL:
            silent = None if transition.after.record.approval_ms else approval.ApprovalGranted()
            said = (approval.ApprovalGranted(), approval.ApprovalRefused("no tests"), silent)[self.choose(3)]
            if said is not None:
                self.post("board", transition.entity, said, self.delay_ms())

    def step_in(self) -> None:
        """Choose whether an operator gives a command. Pauses and holds end after a while."""
        agent = self.plan.agents[self.choose(len(self.plan.agents))].name
        worker = f"worker/{agent}"
        match self.choose(24):
            case 1 | 2:
                message = mailbox.OperatorMessageArrived(f"look at {self._count}", urgent=self.choose(2) == 0)
                self.post(worker, "mailbox", message, self.delay_ms())
            case 3:
                self.post(worker, "desired_state", desired_state.HoldWanted(), self.delay_ms())
                self.post(worker, "desired_state", desired_state.RunWanted(), 80_000 + self.delay_ms())
            case 4:
                self.post(worker, "desired_state", desired_state.PauseWanted("lunch"), self.delay_ms())
                self.post(worker, "desired_state", desired_state.ResumeWanted(), 80_000 + self.delay_ms())
            case 5:
                self.post(worker, "desired_state", desired_state.StopWanted("enough"), self.delay_ms())
            case 7 | 8:
                down_ms = self.delay_ms()
                for name in self.aggregates:
                    self.put(name, Envelope("", RunnerRecovered(down_ms), 0, "runner"), down_ms)
            case 6 | 9 | 10 | 11 | 12 | 13 | 14:
                self.speak(self.some_task())
            case _:
                pass

    def speak(self, wanted: str) -> None:
        """Choose what is said of a task. A block is over, some time."""
        epoch = self.record("board", wanted).epoch
        match self.choose(6):
            case 0:
                self.post("board", wanted, task.Blocked("no key"), self.delay_ms())
                self.post("board", wanted, task.Unblocked(), 80_000 + self.delay_ms())
            case 1:
                self.post("board", wanted, task.Released(epoch, "taken away"), self.delay_ms())
            case 2 | 3:
                parts = (fleet_task.Subtask("a part"),) * (1 + self.choose(2))
                self.post("board", wanted, fleet_task.Split(epoch, parts), self.delay_ms())
            case 4:
                self.post("board", wanted, fleet_task.RetryGranted("once more"), self.delay_ms())
            case _:
                self.post("board", wanted, task.Cancelled("not any more"), self.delay_ms())

    def some_task(self) -> str:
        """Choose a task, of the plan or a part of one."""
        found = [ref for ref in self.aggregates["board"].entities if ref.startswith("task:")]
        return sorted(found)[self.choose(len(found))]

    # What it came to

    def record(self, name: str, entity: str) -> Any:
        """Return a record of an aggregate."""
        return self.aggregates[name].record(entity)

    def states(self, prefix: str) -> dict[str, str]:
        """Return the states of the board's tasks or worker slots by their keys."""
        board = self.aggregates["board"]
        refs = (ref for ref in sorted(board.entities) if ref.startswith(f"{prefix}:"))
        return {ref.partition(":")[2]: board.record(ref).state.value for ref in refs}

    def refused_rules(self) -> Iterator[tuple[str, Refusal]]:
        """Yield the refusals of what a rule asked for."""
        return (each for each in self.refusals if each[1].envelope.actor.startswith("rule:"))


def effects_of(reaction: Reaction, kind: type[Effect]) -> list[Effect]:
    """Return the effects of one kind."""
    return [asked.effect for asked in reaction.effects if isinstance(asked.effect, kind)]
