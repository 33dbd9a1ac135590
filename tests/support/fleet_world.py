"""A whole fleet in a world of its own: what its handlers do outlives every runner, and runners die where a test says.

A ``World`` remembers what was done to it, in memory or in a file. ``live`` is the life of one runner on it.
It begins with the present log. It ends with the fleet's work, or when its ``Fuse`` burns through.
``must_be_sound`` looks at both afterwards and finds whatever was lost, doubled, or done without having been decided.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Never

import anyio
from anyio.lowlevel import checkpoint

from agreement import fold_with_ledger, fold_with_react
from engine_harness import TappedStore, VirtualClock
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import assignment, mailbox, shutdown
from lifefold.core.kernel import Envelope, Event, Reaction, Refusal, RequestedEffect, encode
from lifefold.core.lifecycles import session, task
from lifefold.core.policy.retry import RetryPolicy
from lifefold.effects import (
    AwaitTrigger,
    Begin,
    CancelSession,
    CancelTimer,
    CheckOutWork,
    DeliverNotification,
    Effect,
    End,
    FollowOutput,
    ForceStopSession,
    HoldTimeLimit,
    IncrementSession,
    InspectWork,
    InterruptSession,
    LogFatal,
    MergeWork,
    NotifyProcess,
    ParkWork,
    PauseTriggers,
    PrepareWorktree,
    ResumeTriggers,
    RunSession,
    StartTimer,
    SteerSession,
    StorePrompt,
    Tell,
    VerifyWork,
    WarnOfSilence,
    WatchBranch,
    WatchOutput,
)
from lifefold.interpreters.engine import ActivityContext, EffectContext, Engine, Interpreter, Ledger
from lifefold.interpreters.store import Batch, Entry, MemoryStore, SqliteStore

POINTS: Final = ("decided", "persisted", "letting go", "performing", "performed")
"""The points at which a runner can die, in their order.

They are before its batch is written, before the first effect of the batch leaves, and between two effects. Two more are
at the beginning of a handler's call, and after its work but before the record of it.
"""

PLAN: Final = Plan(
    "small",
    tuple(AgentPlan(name, session.Limits(backoff_base_ms=1, grace_ms=50)) for name in ("ann", "bob")),
    (
        TaskPlan("T1", "one"),
        TaskPlan("T2", "two"),
        TaskPlan("T3", "three"),
        TaskPlan("T4", "four", depends_on=("T1", "T2")),
    ),
    retry=RetryPolicy(backoff_base_ms=1),
)

FAILING: Final = {("T1", "1"): "session", ("T2", "1"): "verification", ("T3", "1"): "merge"}
"""The failures by task and claim: every possible failure occurs."""

TURNS_OF_TIME: Final = 40
"""How many turns of the event loop pass between two moments of the world's time."""


class Crashed(BaseException):
    """The runner is gone, here and now."""


class Fuse:
    """Burns through at the k-th time that a point is reached, and from then on nothing can be done any more."""

    def __init__(self, point: str = "", at: int = 0, blow: Callable[[], object] | None = None) -> None:
        self._point = point
        self._at = at
        self._blow = blow
        self.reached: Counter[str] = Counter()
        self.blown = False

    def reach(self, point: str) -> None:
        """Get to a point. Raises ``Crashed`` if the runner dies there, or has died before."""
        self.reached[point] += 1
        if self.blown or (point == self._point and self.reached[point] == self._at):
            self.blown = True
            if self._blow is not None:
                self._blow()
            raise Crashed


class World:
    """What has been done, in order: a list of words for each deed. In a file it outlives its process."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.deeds: list[tuple[str, ...]] = [tuple(json.loads(line)) for line in lines]

    def do(self, *words: str) -> None:
        """Do a deed."""
        self.deeds.append(words)
        if self._path is not None:
            with self._path.open("ab", buffering=0) as file:
                os.write(file.fileno(), json.dumps(words).encode() + b"\n")

    def has(self, *words: str) -> bool:
        """Tell whether there is a deed that begins with these words."""
        return any(deed[: len(words)] == words for deed in self.deeds)


class Hands:
    """One runner's handlers. They do what they can do only once, once; what has begun is adopted."""

    def __init__(self, world: World, fuse: Fuse) -> None:
        self.world: Final = world
        self.fuse: Final = fuse
        self.engine: Engine

    def interpreter(self) -> Interpreter:
        effects = (
            *(StorePrompt, IncrementSession, LogFatal, ForceStopSession, CancelSession),
            *(
                WarnOfSilence,
                InterruptSession,
                HoldTimeLimit,
                SteerSession,
                NotifyProcess,
                PauseTriggers,
                ResumeTriggers,
            ),
        )
        return Interpreter(
            dict.fromkeys(effects, self.perform),
            {
                PrepareWorktree: self.prepare,
                CheckOutWork: self.check_out,
                InspectWork: self.inspect,
                VerifyWork: self.verify,
                ParkWork: self.park,
                MergeWork: self.merge,
                WatchBranch: self.watch,
                RunSession: self.run_session,
                WatchOutput: self.watch,
                FollowOutput: self.watch,
                AwaitTrigger: self.watch,
                DeliverNotification: self.watch,
            },
        )

    def do(self, *words: str) -> None:
        """Do a deed, unless the runner is dead; it may die right after."""
        if self.fuse.blown:
            raise Crashed
        self.world.do(*words)
        self.fuse.reach("performed")

    async def perform(self, effect: Effect, context: EffectContext) -> None:
        self.fuse.reach("performing")
        await checkpoint()
        if isinstance(effect, CancelSession):
            self.world.do("asked to end", context.within.key, str(context.entity.record.attempt))
        self.do("effect", *map(str, context.identity), encode(effect).decode())

    async def watch(
        self,
        _activity: WatchBranch | WatchOutput | FollowOutput | AwaitTrigger | DeliverNotification,
        context: ActivityContext,
    ) -> None:
        """Let watched sessions move all the time, and no trigger fire; the fleet has no notifiers."""
        if not context.cleanup_only:
            await anyio.sleep_forever()

    async def prepare(self, _activity: PrepareWorktree, context: ActivityContext) -> None:
        await self._once(context, session.WorktreeReady(), "worktree", context.origin.within.key)

    async def check_out(self, activity: CheckOutWork, context: ActivityContext) -> None:
        await self._once(context, assignment.CheckedOut(), "branch", activity.task, str(activity.epoch))

    async def inspect(self, activity: InspectWork, context: ActivityContext) -> None:
        await self._once(context, assignment.Inspected(differs=True), "inspected", activity.task, str(activity.epoch))

    async def verify(self, activity: VerifyWork, context: ActivityContext) -> None:
        claim = (activity.task, str(activity.epoch))
        rejected = FAILING.get(claim) == "verification"
        event = assignment.Rejected("no") if rejected else assignment.Verified()
        await self._once(context, event, "verified", *claim)

    async def park(self, activity: ParkWork, context: ActivityContext) -> None:
        await self._once(context, assignment.Parked(), "parked", activity.task, str(activity.epoch))

    async def merge(self, activity: MergeWork, context: ActivityContext) -> None:
        claim = (activity.task, str(activity.epoch))
        if FAILING.get(claim) == "merge":
            await self._once(context, assignment.Conflicted("no"), "conflict", *claim)
        else:
            await self._once(context, assignment.Merged(".".join(claim)), "merge", *claim)

    async def _once(self, context: ActivityContext, event: Event, *deed: str) -> None:
        """Do a deed that must not be done twice, and report it."""
        self.fuse.reach("performing")
        await checkpoint()
        if context.cleanup_only:
            return
        if not self.world.has(*deed):
            self.do(*deed)
        await checkpoint()
        await context.report(event)

    async def run_session(self, activity: RunSession, context: ActivityContext) -> None:
        """Run a process that goes on without its runner; adopt it if it is there."""
        self.fuse.reach("performing")
        process = (context.origin.within.key, str(activity.attempt))
        await checkpoint()
        await checkpoint()
        if context.cleanup_only:
            self._kill(process)
            return
        if not self.world.has("spawn", *process):
            self.do("spawn", *process)
        try:
            await context.report(session.SessionStarted(activity.session_seq))
            if process == ("ann", "1"):
                await self._urge()
            await self._work(process)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await checkpoint()
                self._kill(process)
            raise
        brief = context.origin.within.record("assignment").brief
        failed = FAILING.get((brief.task, str(brief.epoch))) == "session"
        if not self.world.has("exit", *process):
            self.do("exit", *process, "failed" if failed else "well")
        await context.report(session.SessionExited(session.Error("exit 1") if failed else session.Success()))

    async def _urge(self) -> None:
        """Send an urgent message. An accepted one must be kept."""
        message = Envelope("mailbox", mailbox.OperatorMessageArrived("hurry"), self.engine.clock.now_ms())
        if isinstance(await self.engine.send("worker/ann", message), Reaction):
            self.do("message")

    async def _work(self, process: tuple[str, str]) -> None:
        for _ in range(20):
            if self.world.has("asked to end", *process):
                return
            await checkpoint()

    def _kill(self, process: tuple[str, str]) -> None:
        if self.world.has("spawn", *process) and not self.world.has("exit", *process):
            self.do("exit", *process, "killed")


async def live(store: MemoryStore | SqliteStore | TappedStore, world: World, fuse: Fuse, clock: VirtualClock) -> bool:
    """Run one runner's life: True if the fleet's work is done, False if it crashed before."""
    try:
        await _live(store, world, fuse, clock)
    except BaseExceptionGroup as group:
        others = group.split(Crashed)[1]
        if others is not None:
            raise others from None
        return False
    except Crashed:
        return False
    return True


async def _live(store: MemoryStore | SqliteStore | TappedStore, world: World, fuse: Fuse, clock: VirtualClock) -> None:
    hands = Hands(world, fuse)
    tapped = TappedStore(store)

    async def before(_batch: Batch) -> None:
        fuse.reach("decided")

    async def after(_batch: Batch) -> None:
        fuse.reach("persisted")

    def observe(_name: str, _outcome: Reaction | Refusal) -> None:
        fuse.reach("letting go")

    tapped.before, tapped.after = before, after
    engine = hands.engine = Engine(system, tapped, hands.interpreter(), clock=clock, observer=observe)
    await engine.load()
    engine.resume()
    if board.NAME not in engine.aggregates:
        for name, envelope in opening(PLAN, clock.now_ms()):
            engine.offer(name, envelope)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_let_time_pass, clock)
        await engine.run(is_over)
        tasks.cancel_scope.cancel()


async def _let_time_pass(clock: VirtualClock) -> Never:
    while True:
        for _ in range(TURNS_OF_TIME):
            await checkpoint()
        clock.go_on()


def is_over(engine: Engine) -> bool:
    """Tell whether every task is settled and every worker has left."""
    workers = [each for name, each in engine.aggregates.items() if name != board.NAME]
    opened = len(workers) == len(PLAN.agents)
    return opened and board.finished(engine.aggregates[board.NAME]) and all(map(shutdown.settled, workers))


def must_be_sound(entries: Sequence[Entry], performed: Mapping[str, int], world: World, *, crashes: int) -> None:
    """Hold the log and the world against each other when the work is done."""
    ledger = Ledger(system)
    decisions = list(ledger.fold(entries))
    assert fold_with_react(system, entries) == fold_with_ledger(system, entries)
    tasks = [entity.record for ref, entity in ledger.aggregates[board.NAME].entities.items() if ref.startswith("task:")]
    assert {each.id: each.state for each in tasks} == {each.id: task.State.CLOSED for each in PLAN.tasks}
    _must_be_told(decisions_of := [(each.entry.stream, each.envelope, each.reaction) for each in decisions])
    asked = [
        (each.entry.stream, each.entry.version, index, effect)
        for each in decisions
        for index, effect in enumerate(each.reaction.effects)
    ]
    _must_be_performed(asked, performed, world, crashes)
    _must_be_merged_once(tasks, world)
    _must_be_ended(asked, world)
    _must_be_kept(decisions_of, world)


def _must_be_told(decisions: Sequence[tuple[str, Envelope, Reaction]]) -> None:
    """Every message that was sent was received, once and in order; and nothing else was."""
    sent: defaultdict[tuple[str, str], list[object]] = defaultdict(list)
    received: defaultdict[tuple[str, str], list[object]] = defaultdict(list)
    for stream, envelope, reaction in decisions:
        for asked in reaction.effects:
            if isinstance(tell := asked.effect, Tell):
                sent[stream, tell.aggregate].append((tell.ordinal, tell.entity, tell.event))
        if envelope.sender:
            received[envelope.sender, stream].append((envelope.ordinal, envelope.entity, envelope.event))
    assert received == sent
    assert sum(map(len, sent.values())) > 10


def _must_be_performed(
    asked: Sequence[tuple[str, int, int, RequestedEffect]], performed: Mapping[str, int], world: World, crashes: int
) -> None:
    """Every effect was performed, as it is in the log, at most once more for each crash, and recorded; no other was."""
    derived = Begin | End | StartTimer | CancelTimer | Tell
    wanted = {
        (stream, str(version), str(index), encode(each.effect).decode())
        for stream, version, index, each in asked
        if not isinstance(each.effect, derived)
    }
    done = Counter(deed[1:] for deed in world.deeds if deed[0] == "effect")
    assert done.keys() == wanted
    assert max(done.values()) <= 1 + crashes
    for stream, version, _, _ in wanted:
        assert performed[stream] >= int(version)


def _must_be_merged_once(tasks: Sequence[task.Task], world: World) -> None:
    """Each task was merged in exactly one claim, the one it was closed with, and in that once."""
    merges = Counter(deed[1:] for deed in world.deeds if deed[0] == "merge")
    assert merges == {(each.id, str(each.epoch)): 1 for each in tasks}
    assert {each.commit for each in tasks} == {".".join(merge) for merge in merges}


def _must_be_ended(asked: Sequence[tuple[str, int, int, RequestedEffect]], world: World) -> None:
    """Every process was decided on before it was spawned, was spawned once, alone for its agent, and has ended once."""
    alive: dict[str, str] = {}
    for deed in world.deeds:
        match deed:
            case ("spawn", agent, attempt):
                assert agent not in alive, f"{agent}: session {attempt} was spawned beside session {alive[agent]}"
                alive[agent] = attempt
            case ("exit", agent, attempt, _):
                assert alive.pop(agent) == attempt
            case _:
                pass
    assert alive == {}
    spawned = Counter(deed[1:] for deed in world.deeds if deed[0] == "spawn")
    begun = {
        (stream.partition("/")[2], str(each.effect.activity.attempt))
        for stream, _, _, each in asked
        if isinstance(each.effect, Begin) and isinstance(each.effect.activity, RunSession)
    }
    assert set(spawned) <= begun
    assert set(spawned.values()) == {1}


def _must_be_kept(decisions: Sequence[tuple[str, Envelope, Reaction]], world: World) -> None:
    """Every message whose sender was told that it is accepted is in the log."""
    messages = sum(isinstance(envelope.event, mailbox.OperatorMessageArrived) for _, envelope, _ in decisions)
    assert messages >= sum(deed == ("message",) for deed in world.deeds)
