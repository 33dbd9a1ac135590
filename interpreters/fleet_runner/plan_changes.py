"""What a changed fleet file means for a log: the change that may be accepted, and the fleet that goes on by it."""

import json
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from lifefold.core.fleet import Plan
from lifefold.core.fleet.system import plan_change, plan_obstacles
from lifefold.core.fleet.system.plan_difference import difference, rules_of
from lifefold.core.fleet.system.rerun import FinishedFleet, remainder
from lifefold.core.fleet.system.rerun import ended as ended_with
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.fleet_file import Agent, Fleet, Service, describe_difference
from lifefold.interpreters.fleet_runner.log_owner import CLAIM_KEY, before_of
from lifefold.interpreters.store import SqliteStore

T = TypeVar("T", Agent, Service)


class Proposed(msgspec.Struct, frozen=True):
    """A change of a fleet file: what differs, line by line, the change as the board takes it, what is in the way."""

    lines: tuple[str, ...]
    number: int
    change: plan_change.PlanChange
    obstacles: tuple[plan_obstacles.Obstacle, ...]


def proposed(fleet: Fleet, store: SqliteStore, desk: Aggregate) -> Proposed | None:
    """Return how a fleet file differs from what is in force in its log; None if it means the same.

    Raises ``ValueError`` for a log that does not say with which plan it began.
    """
    begun, said = store.meta("meaning") or "{}", store.meta("plan")
    meaning = plan_change.meaning_of(desk, begun)
    if json.loads(meaning) == json.loads(fleet.meaning):
        return None
    if said is None:
        message = f"{store.path}: was begun by a lifefold that did not write its plan down; it cannot be changed"
        raise ValueError(message)
    ended = before_of(store).ended
    begun_with = msgspec.json.decode(said, type=Plan)
    old, new = (
        replace(plan, key=store.meta(CLAIM_KEY) or "")
        for plan in (plan_change.in_force(begun_with, desk), remainder(fleet.plan, ended))
    )
    accepted = plan_change.PlanChange(
        plan_change.State.ACCEPTED, difference(old, new), rules_of(new), plan_change.last_in_force(desk), fleet.meaning
    )
    number = 1 + max((number for number, _ in plan_change.changes_of(desk)), default=0)
    found = (*_of_the_file(meaning, fleet.meaning), *_of_earlier_runs(meaning, fleet.meaning, ended.closed))
    lines = describe_difference(meaning, fleet.meaning)
    in_the_way = plan_obstacles.obstacles(desk, accepted, is_anything_left=bool(_left(new, desk, ended).tasks))
    return Proposed(lines, number, accepted, (*found, *in_the_way))


def _left(plan: Plan, desk: Aggregate, before: FinishedFleet) -> Plan:
    """Return what of a plan another run of the fleet would have to do."""
    return remainder(plan, ended_with(desk, before))


def _of_the_file(old: str, new: str) -> Iterable[plan_obstacles.Obstacle]:
    """Yield what only the interpreter knows to be in the way: where the work goes."""
    was, now = (json.loads(each)["fleet"].get("repository") for each in (old, new))
    if was != now:
        why = "is settled when a log begins; put that back, or begin a new log"
        yield plan_obstacles.Obstacle("fleet.repository", why, plan_obstacles.FRESH)


def _of_earlier_runs(old: str, new: str, closed: Iterable[str]) -> Iterable[plan_obstacles.Obstacle]:
    """Yield the tasks that an earlier run has closed, which are not on the board, and are another in the file now."""
    was, now = (json.loads(each)["tasks"] for each in (old, new))
    for name in sorted(set(closed)):
        if was.get(name) != now.get(name):
            why = "was CLOSED by an earlier run; put it back, or do all of it again in a new log"
            yield plan_obstacles.Obstacle(f"tasks.{name}", why, plan_obstacles.FRESH)


def joined(before: Fleet, now: Fleet) -> Fleet:
    """Return the fleet that a runner goes on with when its file has changed.

    Agents and services that were removed are still known, because they finish what they have in hand. The lease stays
    as it is for the runner: what keeps it alive has begun with it.
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
