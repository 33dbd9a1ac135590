"""A runner that recovers resumes activities, sets timers, and then performs owed effects: in all drivers."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import anyio
import msgspec
import pytest

from lifefold.core.kernel import EntityStep, RequestedEffect, RunnerRecovered, replace
from lifefold.core.kernel import reaction as kernel_reaction
from lifefold.core.lifecycles import session
from lifefold.effects import Activity, CancelSession, Effect, RunSession, StartTimer
from lifefold.interpreters.check import CrashBounds, Fault, check
from lifefold.interpreters.engine import ActivityContext, EffectContext, Interpreter, Ledger
from lifefold.interpreters.engine.engine import Engine
from lifefold.interpreters.simulate import Limits, Name, Run, simulate
from lifefold.interpreters.simulate.activities import Activities
from lifefold.interpreters.simulate.on_engine import ENACTABLE, Death, enact, log_of, operator_inputs, prompt
from lifefold.interpreters.simulate.runner import Runner
from lifefold.interpreters.simulate.scheduler import Part
from lifefold.interpreters.targets.simulation_targets import FLEET, named

FEW: Final = CrashBounds(inputs=2, crashes=1, batch=1)
TARGET: Final = named("fleet-2x3")
UNTIL_MS: Final = 120_000
WORLD: Final = msgspec.structs.replace(prompt(FLEET), operators_ms=(5_000, 20_000))
SLOT: Final = RunSession.__name__
POINT: Final = Death(0).point
SOON: Final = Limits(until_ms=6 * 3_600_000)
"""Long enough for a crash that strands a session; what is stranded then stays so for the days of healing."""
Deed = tuple[str, str]
"""What was done, and in which aggregate."""


def simulated(**more: Any) -> Run:
    """Simulate a small fleet for two minutes."""
    limits = Limits(until_ms=UNTIL_MS, healing_ms=0)
    return simulate(TARGET.subject, opening=TARGET.opening, faults=ENACTABLE, environment=WORLD, limits=limits, **more)


def cancelling(run: Run) -> list[int]:
    """Return how many entries there are when a session was asked to end that is still to say how it has ended."""
    ledger = Ledger(TARGET.system)
    decisions = ledger.fold(log_of(TARGET.subject, run.entries))
    return [
        place
        for place, each in enumerate(decisions, 1)
        if any(isinstance(asked.effect, CancelSession) for asked in each.reaction.effects)
        and each.reaction.aggregate.entities["session"].find(SLOT) is not None
    ]


def died_at(run: Run) -> int:
    """Return how many entries there were when the runner died; -1 if it did not."""
    return next((at for at, each in enumerate(run.entries) if isinstance(each.envelope.event, RunnerRecovered)), -1)


def ends_at_once(run: Run, place: int) -> bool:
    """Tell whether the session of the entry before this place ends as soon as the next runner has asked it to."""
    name, back_ms = run.entries[place - 1].aggregate, run.entries[place].envelope.at_ms
    said = (each.envelope for each in run.entries[place:] if each.aggregate == name and each.envelope.slot == SLOT)
    return any(each.at_ms <= back_ms + 1 for each in said)


class Killed(NamedTuple):
    """A run whose runner dies as soon as it is on record that a session is to be asked to end."""

    run: Run
    entries: int


@pytest.fixture(scope="module")
def killed() -> Killed:
    """Find one: nothing was performed of what the last entry asks for."""
    for seed in range(400):
        drawn = simulated(seed=seed)
        for place in cancelling(drawn):
            for commit in range(1, 2 * place + 10):
                more: Mapping[Name, int] = {(POINT, commit, 1): 1, ("takes", "restart", 1, POINT, 2): 0}
                run = simulated(but={**drawn.deviations, **more})
                if died_at(run) == place and ends_at_once(run, place):
                    return Killed(run, place)
    raise AssertionError("no session is asked to end")


def after_recovery(deeds: Sequence[Deed]) -> list[Deed]:
    """Return what was done in the life of the second runner until it has asked the session to end."""
    mine = [each for each in deeds[deeds.index(("recovers", "")) :] if each != ("recovers", "")]
    cancels = [place for place, (what, _) in enumerate(mine) if what == "CancelSession"]
    assert cancels, "no session is asked to end"
    return mine[: cancels[0] + 1]


def watched_simulation(run: Run, monkeypatch: pytest.MonkeyPatch) -> list[Deed]:
    """Simulate a run again, and see what is done in which order."""
    deeds: list[Deed] = []
    begin, perform, start = Activities.begin, Runner._perform, Runner.start

    def begins(self: Activities, part: Part, aggregate: Any) -> None:
        deeds.append((f"{part[2]} is taken up", part[0]))
        begin(self, part, aggregate)

    def performs(self: Runner, identity: tuple[str, int, int], asked: RequestedEffect) -> None:
        perform(self, identity, asked)
        deeds.append((type(asked.effect).__name__, identity[0]))

    def starts(self: Runner) -> None:
        if self.life:
            deeds.append(("recovers", ""))
        start(self)

    monkeypatch.setattr(Activities, "begin", begins)
    monkeypatch.setattr(Runner, "_perform", performs)
    monkeypatch.setattr(Runner, "start", starts)
    assert simulated(but=run.deviations).entries == run.entries
    return deeds


def watched_engine(run: Run, entries: int, monkeypatch: pytest.MonkeyPatch) -> list[Deed]:
    """Let an engine do the same, and see what is done in which order."""
    deeds: list[Deed] = []
    resume = Engine.resume

    def resumes(self: Engine) -> None:
        if self.aggregates:
            deeds.append(("recovers", ""))
        resume(self)

    def altered(given: Interpreter) -> Interpreter:
        return Interpreter(
            {kind: partial(performs, handler) for kind, handler in given.effects.items()},
            {kind: partial(lives, handler) for kind, handler in given.activities.items()},
        )

    async def performs(handler: Callable[..., Any], effect: Effect, context: EffectContext) -> None:
        await handler(effect, context)
        deeds.append((type(effect).__name__, context.within.name))

    async def lives(handler: Callable[..., Any], activity: Activity, context: ActivityContext) -> None:
        deeds.append((f"{type(activity).__name__} is taken up", context.origin.within.name))
        await handler(activity, context)

    monkeypatch.setattr(Engine, "resume", resumes)
    work = partial(
        enact,
        TARGET.subject,
        opening=TARGET.opening,
        until_ms=UNTIL_MS,
        but=run.deviations,
        environment=WORLD,
        operators=operator_inputs(run.entries),
        dies=[Death(entries)],
        altered=altered,
    )
    enacted = anyio.run(work)
    assert enacted.lives == 2
    return deeds


def test_what_is_owed_is_performed_after_what_goes_on_was_taken_up(
    killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulator and engine do the same in the same order: a session that is to be cancelled is attended first."""
    simulation = after_recovery(watched_simulation(killed.run, monkeypatch))
    engine = after_recovery(watched_engine(killed.run, killed.entries, monkeypatch))
    (cancel, name) = engine[-1]
    assert (cancel, simulation[-1]) == ("CancelSession", engine[-1])
    for deeds in (simulation, engine):
        assert ("RunSession is taken up", name) in deeds
    assert sorted(simulation) == sorted(engine)


def test_a_simulated_runner_that_performs_what_is_owed_first_is_found(
    killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it asks to end is not attended yet, so that it would not end."""
    start = Runner.start

    def hasty(self: Runner) -> None:
        self._again = [*self._owed.items()]
        self._perform_again()
        start(self)

    monkeypatch.setattr(Runner, "start", hasty)
    found = simulated(but=killed.run.deviations).found
    assert found is not None
    assert found.prop == Fault.UNATTENDED


def test_an_engine_that_performs_what_is_owed_first_is_found(killed: Killed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session is not there yet for its handlers: the engine finds that nothing is asked to end."""
    resume = Engine.resume

    def hasty(self: Engine) -> None:
        for name, asked, origin in self._owed:
            self._queue(name).put(asked, origin)
        self._owed.clear()
        resume(self)

    monkeypatch.setattr(Engine, "resume", hasty)
    with pytest.raises(AssertionError, match="no session is asked to end"):
        after_recovery(watched_engine(killed.run, killed.entries, monkeypatch))


def forgetting(advance: Callable[..., Any]) -> Callable[..., Any]:
    """Return an ``advance`` whose ``RunnerRecovered`` asks for no timer."""

    def forgets(machine: Any, entity: Any, envelope: Any) -> Any:
        done = advance(machine, entity, envelope)
        if isinstance(done, EntityStep) and isinstance(envelope.event, RunnerRecovered):
            return replace(done, effects=tuple(each for each in done.effects if not isinstance(each, StartTimer)))
        return done

    return forgets


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel forget timers when a runner is back."""
    monkeypatch.setattr(kernel_reaction, "advance", forgetting(vars(kernel_reaction)["advance"]))


@pytest.mark.usefixtures("forgetful")
def test_rules_that_ask_for_no_timer_after_a_crash_are_found_by_the_check() -> None:
    """A runner dies while nothing but a timer is pending, and whatever comes back waits for ever."""
    report = check(session.machine, crashes=FEW)
    assert Fault.STRANDED in {each.name for each in report.broken()}


@pytest.mark.usefixtures("forgetful")
def test_rules_that_ask_for_no_timer_after_a_crash_are_found_by_seeds() -> None:
    """Within sixty seeds."""
    target = named("session")
    runs = (simulate(target.subject, seed=seed, environment=target.environment, limits=SOON) for seed in range(60))
    found = next(run.found for run in runs if run.found is not None)
    assert found.prop == Fault.STRANDED


def test_a_simulated_runner_that_sets_no_timers_again_is_found_by_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the rules ask for them."""
    release = Runner._release

    def forgets(self: Runner, name: str, reaction: Any) -> None:
        asks = (each for each in reaction.effects if not isinstance(each.effect, StartTimer) or reaction.transitions)
        release(self, name, replace(reaction, effects=tuple(asks)))

    monkeypatch.setattr(Runner, "_release", forgets)
    target = named("session")
    runs = (simulate(target.subject, seed=seed, environment=target.environment, limits=SOON) for seed in range(60))
    found = next(run.found for run in runs if run.found is not None)
    assert found.prop == Fault.STRANDED
