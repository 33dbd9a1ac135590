"""Plan changes of a changed fleet file: the change to accept, its obstacles, and the fleet that follows it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from lifefold.core.fleet import Caps, Plan, TaskPlan
from lifefold.core.fleet.system import plan_change, plan_obstacles
from lifefold.core.fleet.system.plan import MOST_RETRIES
from lifefold.core.fleet.system.plan_adoption import adopted, raised
from lifefold.core.fleet.system.plan_difference import difference, rules_of
from lifefold.core.fleet.system.plan_enforcement import failed_for_good, verified_before
from lifefold.core.fleet.system.plan_places import parts_of, place_of
from lifefold.core.fleet.system.rerun import FinishedFleet, remainder
from lifefold.core.fleet.system.rerun import ended as ended_with
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.fleet_file import Agent, Fleet, Service, describe_difference, former_text, in_force
from lifefold.interpreters.fleet_file.budget import KEYS
from lifefold.interpreters.fleet_runner.log_owner import CLAIM_KEY, before_of
from lifefold.interpreters.store import LogStore

T = TypeVar("T", Agent, Service)


class Proposed(msgspec.Struct, frozen=True):
    """A change of a fleet file: its differences as lines, the event for the board, and the obstacles.

    ``same`` are differences of the file that are in force already, because a command has made them. ``failed`` are
    changed tasks that have failed for good. ``verified`` are tasks with other commands whose work was verified before
    the change, and whether it is verified again. ``over`` are changed tasks without an effect, with the reason.
    ``raised`` are caps that a command has raised, by their place, as the file said them before. ``former`` is the text
    to put back for the obstacles.
    """

    lines: tuple[str, ...]
    number: int
    change: plan_change.PlanChange
    obstacles: tuple[plan_obstacles.Obstacle, ...]
    same: tuple[str, ...] = ()
    failed: frozenset[str] = frozenset()
    verified: Mapping[str, bool] = {}
    over: Mapping[str, str] = {}
    raised: Mapping[str, str] = {}
    former: tuple[str, ...] = ()

    @property
    def is_possible_in_part(self) -> bool:
        """Whether all obstacles are tasks that are over, so that the rest can be accepted."""
        return bool(self.obstacles) and all(each.instead == plan_obstacles.REST for each in self.obstacles)


def proposed(fleet: Fleet, store: LogStore, of: Aggregate, *, partial: bool = False) -> Proposed | None:
    """Return how a fleet file differs from the plan in force in its log; None without a difference.

    ``partial``: the operator accepts that tasks which are over stay as they are. Raises ``ValueError`` for a log
    without the plan it began with.
    """
    begun, said = store.meta("meaning") or "{}", store.meta("plan")
    meaning = plan_change.meaning_of(of, begun)
    if json.loads(meaning) == json.loads(fleet.meaning):
        return None
    if said is None:
        message = f"{store.path}: began with an older lifefold that did not record its plan, so it cannot be changed"
        raise ValueError(message)
    begun_with, ended = msgspec.json.decode(said, type=Plan), before_of(store).ended
    old, new = (
        replace(plan, key=store.meta(CLAIM_KEY) or "")
        for plan in (plan_change.in_force(begun_with, of), remainder(fleet.plan, ended))
    )
    added = adopted(of, old, new)
    accepted = plan_change.PlanChange(
        plan_change.State.ACCEPTED,
        difference(old, new, added),
        rules_of(new),
        plan_change.last_in_force(of),
        fleet.meaning,
        partial=partial,
    )
    number = 1 + max((number for number, _ in plan_change.changes_of(of)), default=0)
    earlier = _of_earlier_runs(meaning, fleet.meaning, ended.closed)
    found = [
        *_of_the_file(meaning, fleet.meaning),
        *(() if partial else earlier.values()),
        *(
            replace(each, why=in_plain_words(each.why))
            for each in plan_obstacles.obstacles(of, accepted, is_anything_left=bool(_left(new, of, ended).tasks))
        ),
    ]
    caps = raised(of, accepted)
    before = in_force(meaning, added.values(), {})
    here = in_force(before, (), {place: now for place, (_, now) in caps.items()})
    is_sure = all(each.instead == plan_obstacles.REST for each in found)
    return Proposed(
        describe_difference(here, fleet.meaning),
        number,
        accepted,
        tuple(sorted(found, key=lambda each: each.instead == plan_obstacles.REST)),
        tuple(_in_force_already(added, new, here, meaning, fleet.meaning)),
        failed_for_good(of, accepted) if is_sure else frozenset(),
        verified_before(of, accepted) if is_sure else {},
        _over(of, accepted, earlier),
        {f"{place}.budget.{key}": said for place, (was, _) in caps.items() for key, said in _said(was)},
        tuple(line for each in found for line in former_text(before, fleet.meaning, each.what)),
    )


def added_task(fleet: Fleet, of: Aggregate, name: str) -> tuple[str, ...]:
    """Return the lines of a fleet file for a task that a command has added to the board."""
    plan = replace(fleet.plan, tasks=(TaskPlan(name, "", max_retries=MOST_RETRIES),))
    terms = adopted(of, replace(plan, tasks=()), plan)
    return former_text(in_force(fleet.meaning, terms.values(), {}), fleet.meaning, place_of("tasks", name))


def _over(of: Aggregate, accepted: plan_change.PlanChange, earlier: Iterable[str]) -> dict[str, str]:
    """Return the changed tasks that are over, each with the reason."""
    over = {name: f"the task {is_in(state)}" for name, state in plan_obstacles.over(of, accepted).items()}
    return over | dict.fromkeys(earlier, "an earlier run has closed the task")


def _in_force_already(added: Mapping[str, TaskPlan], new: Plan, here: str, old: str, now: str) -> Iterator[str]:
    """Yield the differences of a file that commands have brought into force before it."""
    yield from (
        f"{place_of('tasks', each.id)}: is in the file now, as lifefold task add has added it"
        for each in new.tasks
        if added.get(each.id) == each
    )
    left = {line.partition(": ")[0] for line in describe_difference(here, now)}
    for line in describe_difference(old, now):
        place = line.partition(": ")[0]
        if parts_of(place)[2].startswith("budget.") and place not in left:
            yield f"{line}, which is in force already: lifefold budget has raised it"


def _said(caps: Caps) -> Iterator[tuple[str, str]]:
    """Yield the limits as a file writes them, by key."""
    for resource, key in KEYS.items():
        cap = caps.of(resource)
        if cap is not None:
            yield key.name, str(key.form.write(cap))


def _left(plan: Plan, of: Aggregate, before: FinishedFleet) -> Plan:
    """Return the part of a plan that another run of the fleet would do."""
    return remainder(plan, ended_with(of, before))


def _of_the_file(old: str, new: str) -> Iterable[plan_obstacles.Obstacle]:
    """Yield the obstacle that only the interpreter knows: another repository."""
    was, now = (json.loads(each)["fleet"].get("repository") for each in (old, new))
    if was != now:
        why = "is fixed when a log begins; restore it, or begin a new log"
        yield plan_obstacles.Obstacle("fleet.repository", why, plan_obstacles.FRESH)


def _of_earlier_runs(old: str, new: str, closed: Iterable[str]) -> dict[str, plan_obstacles.Obstacle]:
    """Return the obstacles of changed tasks that an earlier run has closed, and that are not on the board."""
    was, now = (json.loads(each)["tasks"] for each in (old, new))
    why = "was closed by an earlier run, so a change of it has no effect; the rest of the change is possible without it"
    names = (each for each in sorted(set(closed)) if was.get(each) != now.get(each))
    return {name: plan_obstacles.Obstacle(place_of("tasks", name), why, plan_obstacles.REST) for name in names}


def joined(before: Fleet, now: Fleet) -> Fleet:
    """Return the fleet that a runner follows after a change of its file.

    Removed agents and services stay known until they finish their task or run. The lease stays that of the start of the
    runner, because its renewal has begun with it.
    """
    return replace(
        now,
        lease_ms=before.lease_ms,
        agents=(*now.agents, *_missing(before.agents, now.agents)),
        services=(*now.services, *_missing(before.services, now.services)),
    )


def _missing(before: Iterable[T], now: Iterable[T]) -> Iterable[T]:
    there = {each.name for each in now}
    return (each for each in before if each.name not in there)
