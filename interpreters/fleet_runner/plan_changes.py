"""Plan changes of a changed fleet file: the change to accept, its obstacles, and the fleet that follows it."""

import json
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from lifefold.core.fleet import Plan
from lifefold.core.fleet.system import plan_change, plan_obstacles
from lifefold.core.fleet.system.plan_difference import difference, rules_of
from lifefold.core.fleet.system.plan_enforcement import failed_for_good, verified_before
from lifefold.core.fleet.system.rerun import FinishedFleet, remainder
from lifefold.core.fleet.system.rerun import ended as ended_with
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.fleet_file import Agent, Fleet, Service, describe_difference
from lifefold.interpreters.fleet_runner.log_owner import CLAIM_KEY, before_of
from lifefold.interpreters.store import SqliteStore

T = TypeVar("T", Agent, Service)


class Proposed(msgspec.Struct, frozen=True):
    """A change of a fleet file: its differences as lines, the event for the board, and the obstacles.

    ``failed`` are changed tasks that have failed for good. ``verified`` are tasks with other commands whose work was
    verified before the change, and is not verified again.
    """

    lines: tuple[str, ...]
    number: int
    change: plan_change.PlanChange
    obstacles: tuple[plan_obstacles.Obstacle, ...]
    failed: frozenset[str] = frozenset()
    verified: frozenset[str] = frozenset()


def proposed(fleet: Fleet, store: SqliteStore, of: Aggregate) -> Proposed | None:
    """Return how a fleet file differs from the plan in force in its log; None without a difference.

    Raises ``ValueError`` for a log without the plan it began with.
    """
    begun, said = store.meta("meaning") or "{}", store.meta("plan")
    meaning = plan_change.meaning_of(of, begun)
    if json.loads(meaning) == json.loads(fleet.meaning):
        return None
    if said is None:
        message = f"{store.path}: began with an older lifefold that did not record its plan, so it cannot be changed"
        raise ValueError(message)
    ended = before_of(store).ended
    begun_with = msgspec.json.decode(said, type=Plan)
    old, new = (
        replace(plan, key=store.meta(CLAIM_KEY) or "")
        for plan in (plan_change.in_force(begun_with, of), remainder(fleet.plan, ended))
    )
    accepted = plan_change.PlanChange(
        plan_change.State.ACCEPTED, difference(old, new), rules_of(new), plan_change.last_in_force(of), fleet.meaning
    )
    number = 1 + max((number for number, _ in plan_change.changes_of(of)), default=0)
    found = (*_of_the_file(meaning, fleet.meaning), *_of_earlier_runs(meaning, fleet.meaning, ended.closed))
    lines = describe_difference(meaning, fleet.meaning)
    in_the_way = plan_obstacles.obstacles(of, accepted, is_anything_left=bool(_left(new, of, ended).tasks))
    if found or in_the_way:
        return Proposed(lines, number, accepted, (*found, *in_the_way))
    failed, verified = (each(of, accepted) for each in (failed_for_good, verified_before))
    return Proposed(lines, number, accepted, (), failed, verified)


def _left(plan: Plan, of: Aggregate, before: FinishedFleet) -> Plan:
    """Return the part of a plan that another run of the fleet would do."""
    return remainder(plan, ended_with(of, before))


def _of_the_file(old: str, new: str) -> Iterable[plan_obstacles.Obstacle]:
    """Yield the obstacle that only the interpreter knows: another repository."""
    was, now = (json.loads(each)["fleet"].get("repository") for each in (old, new))
    if was != now:
        why = "is fixed when a log begins; restore it, or begin a new log"
        yield plan_obstacles.Obstacle("fleet.repository", why, plan_obstacles.FRESH)


def _of_earlier_runs(old: str, new: str, closed: Iterable[str]) -> Iterable[plan_obstacles.Obstacle]:
    """Yield the changed tasks that an earlier run has closed, and that are not on the board."""
    was, now = (json.loads(each)["tasks"] for each in (old, new))
    for name in sorted(set(closed)):
        if was.get(name) != now.get(name):
            why = "was CLOSED by an earlier run; restore it, or repeat all tasks in a new log"
            yield plan_obstacles.Obstacle(f"tasks.{name}", why, plan_obstacles.FRESH)


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
