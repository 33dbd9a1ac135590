"""The same fleet in a simulation and on the real engine, under virtual time: event for event it is the same run.

Compared is the whole log, in its order, byte for byte: what an engine has written, and what it would have written of
the inputs of the simulation. An entry has its aggregate, version, time and input, the requested effects, and the
digest of all states so far of its aggregate. An input has its slot and generation, or its sender and ordinal.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import kiln
from lifefold.core import fleet
from lifefold.core.kernel import START_MS, Envelope, Event, Input, Opened, RunnerRecovered, System, replace
from lifefold.effects import Activity, CancelSession, Effect, RunSession, VerifyWork
from lifefold.interpreters.engine import ActivityContext, EffectContext, Interpreter
from lifefold.interpreters.simulate import Environment, Limits, Name, Run, simulate
from lifefold.interpreters.simulate.on_engine import ENACTABLE, Death, Enacted, enact, log_of, operator_inputs, prompt
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.targets.fleet_plans import governed_plan
from lifefold.interpreters.targets.simulation_targets import FLEET, named
from lifefold.interpreters.targets.target import Target

SECOND_MS = 1_000
BRISK = {RunSession: (200, 8 * SECOND_MS), VerifyWork: (100, 2 * SECOND_MS)}
"""Nothing but patience is gained by sessions of minutes: the engine asks for posts ten times a second."""

on_both_back_ends = pytest.mark.parametrize("backend", ["asyncio", "trio"])


class Worlds:
    """One target, in a simulation and on the engine, for so long."""

    def __init__(self, target: Target, until_ms: int, backend: str = "asyncio") -> None:
        around = prompt(target.environment)
        self.environment = msgspec.structs.replace(
            around, durations_ms={**around.durations_ms, **BRISK}, operators_ms=(SECOND_MS, 10 * SECOND_MS)
        )
        self.target = target
        self.until_ms = until_ms
        self.backend = backend

    def simulated(self, seed: int | None = None, but: Mapping[Name, int] | None = None) -> Run:
        """Simulate it, without a check of debts at the end."""
        limits = Limits(until_ms=self.until_ms, healing_ms=0)
        return simulate(
            self.target.subject,
            opening=self.target.opening,
            seed=seed,
            but=but,
            faults=ENACTABLE,
            environment=self.environment,
            limits=limits,
        )

    def enacted(self, run: Run, **more: Any) -> Enacted:
        """Let the engine do what the simulation has done."""
        work = partial(
            enact,
            self.target.subject,
            opening=self.target.opening,
            until_ms=self.until_ms,
            but=run.deviations,
            environment=self.environment,
            operators=operator_inputs(run.entries),
            **more,
        )
        return anyio.run(work, backend=self.backend)

    def must_agree(self, run: Run, **more: Any) -> Enacted:
        """Run it on the engine, too, and compare."""
        enacted = self.enacted(run, **more)
        assert list(enacted.entries) == list(run.entries)
        assert list(enacted.log) == log_of(self.target.subject, run.entries)
        return enacted


def pottery(system: System = kiln.system) -> Target:
    """Return kilns that burn: timers, one of which begins anew after a crash, messages and operators."""
    burning = Opened({"kiln": kiln.Kiln(kiln.Heat.FIRING)})
    tally, *kilns = kiln.opened(0, "a", "b")
    opening = (tally, *((name, replace(envelope, event=burning)) for name, envelope in kilns))
    environment = Environment(durations_ms={kiln.Fire: (SECOND_MS, 20 * SECOND_MS)})
    return Target("pottery", system, opening, environment=environment)


def died_at(run: Run) -> int:
    """Return how many entries there were when the runner died; if it did not, how many there are."""
    places = (place for place, each in enumerate(run.entries) if isinstance(each.envelope.event, RunnerRecovered))
    return next(places, len(run.entries))


LATER = pytest.mark.campaign


def begun() -> Target:
    """Return a governed fleet whose plan was approved: what operators say then is about work."""
    plan = msgspec.structs.replace(governed_plan(2, 3), approve_plan=False)
    return Target("fleet-begun-2x3", fleet.system, tuple(fleet.opening(plan, 0)), environment=FLEET)


TARGETS = [
    *(named("fleet-2x3"), named("fleet-3x9"), pottery(), begun()),
    *(named("fleet-restarts-2x3"), named("fleet-preempting-2x3")),
]
SHORT_MS, LONG_MS = 60 * SECOND_MS, 600 * SECOND_MS


BACK_ENDS = ("asyncio", "trio")


@pytest.mark.parametrize(
    ("target", "seeds", "until_ms", "backend"),
    [
        *(
            pytest.param(each, range(5), SHORT_MS, backend, id=f"{each.name}-{backend}")
            for each, backend in zip(TARGETS, cycle(BACK_ENDS), strict=False)
        ),
        *(
            pytest.param(each, range(5, 15), LONG_MS, backend, id=f"{each.name}-long-{backend}", marks=LATER)
            for each, backend in zip(TARGETS, cycle(BACK_ENDS[::-1]), strict=False)
        ),
    ],
)
def test_a_seed_comes_to_the_same_log_on_the_engine(target: Target, seeds: range, until_ms: int, backend: str) -> None:
    """Whatever activities and operators do: they fail, hang, flood, are slow; they stop, hold, resume.

    Each target has a short form on one back end, and a long one on the other.
    """
    worlds, struck = Worlds(target, until_ms, backend), set[str]()
    for seed in seeds:
        run = worlds.simulated(seed)
        worlds.must_agree(run)
        struck |= set(run.struck)
    assert struck >= {"fails", "hangs", "slow"} or target.name != "fleet-3x9"


DECISIONS = {
    "fleet-governed-2x3": {"PlanApproved", "PlanDeclined", "Approved", "Declined", "LastTaskIn"},
    "fleet-stalling-2x3": {"Silent", "Stirred"},
    "fleet-limited-2x3": {"Raise"},
    "fleet-serving-2x3": {"MessageArrived", "Triggered", "ServiceGone"},
    "fleet-orphans-2x3": {"Inspected", "Orphaned", "Salvaged"},
    "fleet-trusted-2x3": {"Promoted", "Demoted", "Violated"},
    "fleet-begun-2x3": {
        *("Parked", "ApprovalGranted", "ApprovalRefused", "Split", "Recalled", "RetryGranted", "Retried"),
        *("PauseWanted", "ResumeWanted"),
    },
}
"""What only such fleets hear in which operators have a say, or whose sessions are watched, by the target."""


@pytest.mark.parametrize(
    ("target", "backend"),
    [
        pytest.param(named("fleet-governed-2x3"), "asyncio", id="fleet-governed-2x3-asyncio"),
        pytest.param(named("fleet-governed-2x3"), "trio", id="fleet-governed-2x3-trio", marks=LATER),
        pytest.param(named("fleet-stalling-2x3"), "trio", id="fleet-stalling-2x3-trio"),
        pytest.param(named("fleet-stalling-2x3"), "asyncio", id="fleet-stalling-2x3-asyncio", marks=LATER),
        pytest.param(named("fleet-limited-2x3"), "asyncio", id="fleet-limited-2x3-asyncio"),
        pytest.param(named("fleet-serving-2x3"), "trio", id="fleet-serving-2x3-trio"),
        pytest.param(named("fleet-serving-2x3"), "asyncio", id="fleet-serving-2x3-asyncio", marks=LATER),
        pytest.param(named("fleet-orphans-2x3"), "asyncio", id="fleet-orphans-2x3-asyncio"),
        pytest.param(named("fleet-trusted-2x3"), "trio", id="fleet-trusted-2x3-trio", marks=LATER),
        pytest.param(begun(), "asyncio", id="fleet-begun-2x3-asyncio", marks=LATER),
        pytest.param(begun(), "trio", id="fleet-begun-2x3-trio"),
    ],
)
def test_operator_commands_lead_to_the_same_log_on_the_engine(target: Target, backend: str) -> None:
    """Approvals, refusals, splits, retries, pauses: of each the first run with it."""
    worlds, unheard = Worlds(target, 2 * SHORT_MS, backend), set(DECISIONS[target.name])
    for run in map(worlds.simulated, range(400)):
        heard = unheard & {type(each.envelope.event).__name__ for each in run.entries}
        if heard:
            worlds.must_agree(run)
            unheard -= heard
        if not unheard:
            return
    raise AssertionError(f"no run has {sorted(unheard)}")


@on_both_back_ends
@pytest.mark.parametrize("target", TARGETS[:2], ids=lambda target: target.name)
def test_if_all_is_orderly_it_is_the_same_log_although_much_happens_at_one_instant(
    target: Target, backend: str
) -> None:
    """Agents that begin together and take the same time are done in the same millisecond: the order is the same."""
    worlds = Worlds(target, 60 * SECOND_MS, backend)
    run = worlds.simulated()
    worlds.must_agree(run)
    instants = [(each.aggregate, each.envelope.at_ms) for each in run.entries if each.envelope.slot]
    assert len({at_ms for _, at_ms in instants}) < len(set(instants))


@on_both_back_ends
def test_a_log_in_a_file_is_the_same(backend: str, tmp_path: Path) -> None:
    """SQLite, with its thread and its syncs: what is on the disk is what the simulation says."""
    worlds = Worlds(named("fleet-2x3"), 60 * SECOND_MS, backend)
    run, path = worlds.simulated(6), tmp_path / "log.db"
    store = SqliteStore.create(path, {})
    worlds.must_agree(run, store=store)
    store.close()
    again = SqliteStore.open(path)
    assert list(anyio.run(again.read, backend=backend)) == log_of(worlds.target.subject, run.entries)
    again.close()


def is_said_on_return(run: Run) -> bool:
    """Tell whether an operator command comes in the millisecond of a recovery."""
    back = {each.envelope.at_ms for each in run.entries if isinstance(each.envelope.event, RunnerRecovered)}
    return any(each.envelope.at_ms in back for each in operator_inputs(run.entries))


def killed(worlds: Worlds, drawn: Run, death: Death, commits: Sequence[int], down_ms: int = 0) -> Iterator[Run]:
    """Simulate a run once for each of these commits, with which the runner dies, if the engine has them, too.

    A refusal is no commit of the engine's; and what comes at once it takes at once, unlike a simulation. An operator
    command may come in the millisecond of a recovery. A log does not tell which was first.
    """
    bounds = {0, *worlds.must_agree(drawn).commits}
    for commit in commits:
        down: dict[Name, int] = {("takes", "restart", 1, death.point, 2): down_ms}
        run = worlds.simulated(but={**drawn.deviations, **down, (death.point, commit, 1): 1})
        after = worlds.simulated(but={**drawn.deviations, (PERSISTED.point, commit, 1): 1})
        before = worlds.simulated(but={**drawn.deviations, (DECIDED.point, commit, 1): 1})
        is_commit = died_at(before) < died_at(after) and {died_at(before), died_at(after)} <= bounds
        if is_commit and not is_said_on_return(run):
            assert died_at(run) == died_at(after if death.is_written else before)
            yield run


PERSISTED, DECIDED = Death(0), Death(0, is_written=False)


SHORT, LONG = (range(3), range(2, 24, 7)), (range(2, 4), range(1, 60, 4))


@pytest.mark.parametrize(
    ("death", "down_ms"),
    [
        pytest.param(death, down_ms, id=f"{name}, {how_long}")
        for death, name in ((DECIDED, "decided"), (PERSISTED, "persisted"))
        for down_ms, how_long in ((0, "shortly"), (10 * SECOND_MS, "for a while"))
    ],
)
@pytest.mark.parametrize(
    ("target", "tried", "backend"),
    [
        pytest.param(TARGETS[0], SHORT, "asyncio", id="fleet-2x3-asyncio"),
        pytest.param(TARGETS[2], SHORT, "trio", id="pottery-trio"),
        *(
            pytest.param(each, LONG, backend, id=f"{each.name}-long-{backend}", marks=LATER)
            for each, backend in zip(TARGETS, cycle(BACK_ENDS), strict=False)
        ),
    ],
)
def test_an_engine_that_dies_and_comes_back_writes_what_a_runner_does(
    target: Target, death: Death, down_ms: int, tried: tuple[range, range], backend: str
) -> None:
    """Killed right before, or after, a batch is written; what goes on outside goes on meanwhile, unheard.

    The long form has two seeds: mistakes that were planted in the recovery are found by the first, if by any.
    """
    worlds, compared = Worlds(target, SHORT_MS, backend), 0
    seeds, commits = tried
    for seed in seeds:
        drawn = worlds.simulated(seed)
        if not death.is_written:  # no runner is at work that could be told again
            drawn = worlds.simulated(
                but={name: way for name, way in drawn.deviations.items() if name[0] != "operators"}
            )
        for run in killed(worlds, drawn, death, commits, down_ms):
            place = died_at(run) + (not death.is_written)
            lives = worlds.must_agree(run, dies=[death._replace(entries=place)]).lives
            assert lives == 1 + len(run.recovery_ms)
            compared += 1
    assert compared > 1


def test_a_death_that_never_comes_is_told() -> None:
    """A run without it differs from one with it."""
    worlds = Worlds(pottery(), SHORT_MS)
    run = worlds.simulated(1)
    entries = len(run.entries)
    told = f"no engine has died at 1000000 entries: there were {entries}, as of 60000 ms"
    with pytest.raises(ValueError, match=f"^{told}$"):
        worlds.enacted(run, dies=[Death(1_000_000)])


Altered = Callable[[Interpreter], Interpreter]


@on_both_back_ends
def test_a_run_can_be_cancelled_while_a_process_is_being_ended(backend: str) -> None:
    """Its end is shielded, and takes virtual time, of which there is no more then."""
    target, ending = pottery(), list[bool]()

    async def work() -> bool:
        with anyio.CancelScope() as scope:

            def altered(given: Interpreter) -> Interpreter:
                async def cancel(context: ActivityContext) -> None:
                    try:
                        await anyio.sleep_forever()
                    finally:
                        ending.append(context.ending)
                        scope.cancel()

                async def fire(activity: kiln.Fire, context: ActivityContext) -> None:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(cancel, context)
                        await given.activities[kiln.Fire](activity, context)
                        tasks.cancel_scope.cancel()

                return Interpreter(activities={kiln.Fire: fire}).over(given)

            doused = Input("kiln/a", Envelope("kiln", kiln.Doused(), START_MS + 500))
            await enact(
                target.subject,
                until_ms=SHORT_MS,
                opening=target.opening,
                environment=prompt(target.environment),
                operators=[doused],
                altered=altered,
            )
        return scope.cancelled_caught

    assert anyio.run(work, backend=backend)
    assert ending[0]


def instead(kind: type[Activity], handler: Callable[[Any, Any, Any], Any]) -> Altered:
    """Have a handler of our own for an activity, which is given the one that it replaces."""

    def altered(given: Interpreter) -> Interpreter:
        return Interpreter({}, {kind: partial(handler, given.activities[kind])}).over(given)

    return altered


class Twice(ActivityContext):
    """An activity that reports everything twice."""

    def __init__(self, inner: ActivityContext) -> None:
        super().__init__(inner.begin, inner.origin, cleanup_only=inner.cleanup_only)
        self._inner = inner

    async def report(self, event: Event) -> bool:
        return await self._inner.report(event) and await self._inner.report(event)


async def reports_twice(given: Any, activity: Activity, context: ActivityContext) -> None:
    await given(activity, Twice(context))


async def is_late(given: Any, activity: Activity, context: ActivityContext) -> None:
    clock = given.__self__.clock
    await clock.sleep_until(clock.now_ms() + 1)
    await given(activity, context)


async def says_something_else(_given: Any, _activity: Activity, context: ActivityContext) -> None:
    await context.report(kiln.Fired(7))


def hastens_nothing(given: Interpreter) -> Interpreter:
    return Interpreter({CancelSession: ignored}).over(given)


async def ignored(_effect: Effect, _occasion: EffectContext) -> None:
    pass


def about(run: Run, part: str) -> bool:
    """Tell whether an activity goes on in a run, has said something, and something about it took longer than usual."""
    names = [name for name in run.deviations if name[0] == "takes" and part in name]
    return bool(names) and any(part in {each.envelope.slot, "hastened"} for each in run.entries)


@on_both_back_ends
@pytest.mark.parametrize(
    ("target", "part", "altered"),
    [
        pytest.param(pottery(), "Fire", instead(kiln.Fire, reports_twice), id="reports twice"),
        pytest.param(pottery(), "Fire", instead(kiln.Fire, says_something_else), id="says something else"),
        pytest.param(TARGETS[0], "VerifyWork", instead(VerifyWork, is_late), id="a millisecond late"),
        pytest.param(TARGETS[0], "hastened", hastens_nothing, id="hastens nothing"),
    ],
)
def test_an_engine_that_does_otherwise_is_found(target: Target, part: str, altered: Altered, backend: str) -> None:
    """The comparison can fail: with handlers that deviate, in one thing, from what the processes do."""
    worlds = Worlds(target, SHORT_MS, backend)
    runs = [*islice((each for each in map(worlds.simulated, range(400)) if about(each, part)), 5)]
    for run in runs:
        worlds.must_agree(run)
        if list(worlds.enacted(run, altered=altered).log) != log_of(target.subject, run.entries):
            return
    raise AssertionError(f"{len(runs)} runs are the same, although {altered} does otherwise")
