"""A fleet with all features keeps its properties: questions, task messages, conversations and limits meet crashes."""

from collections import Counter
from functools import lru_cache

import pytest

from fleet_worker import following, next_task, start
from lifefold.core import fleet
from lifefold.core.fleet.board import notifier
from lifefold.core.fleet.dispatch.task_messages import MAILBOX, OVER
from lifefold.core.fleet.worker import mailbox, output, question, stall_detector
from lifefold.core.kernel import Created, Event, Phase, TimerFired, replace
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.session_limits import limit_of
from lifefold.core.policy.ends import Trouble
from lifefold.effects import FollowOutput
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.simulate import Faults, Run, simulate
from lifefold.interpreters.simulate.choices import Choices
from lifefold.interpreters.simulate.environment import Chance
from lifefold.interpreters.targets.simulation_targets import followed, named

TARGET = named("fleet-mixed")

SEEDS = 25
"""How many are tried at a time."""


@lru_cache(SEEDS)
def ran(seed: int) -> Run:
    """Return the run of a seed; the first ones are of two tests."""
    return simulate(TARGET.subject, opening=TARGET.opening, seed=seed, environment=TARGET.environment)


@pytest.mark.parametrize(
    "first", [pytest.param(each, marks=() if not each else pytest.mark.campaign) for each in range(0, 200, SEEDS)]
)
def test_a_fleet_with_all_features_has_its_properties_under_faults(first: int) -> None:
    """In two hundred seeds, a virtual day each; a part of them is tried always."""
    for seed in range(first, first + SEEDS):
        run = ran(seed)
        assert run.ok, (seed, run.found)


def test_sessions_and_operators_do_all_that_the_fleet_has_rules_for() -> None:
    """Each feature is used in these seeds, so that a property about it can be broken."""
    wanted = {"asked", "answered", "expired", "limit told", "limit met", "conversation named", "conversation lost"}
    wanted |= {"notification delivered", "notification not delivered", "message taken", "urgent message posted"}
    wanted |= {"to a queued task", "to a running task", "to a closed task"}
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        if wanted <= seen.keys():
            break
        ledger = Ledger(fleet.system)
        for each in ran(seed).entries:
            board = ledger.aggregates.get("board")
            decided = ledger.decide(*each)
            if isinstance(decided, Decision):
                seen.update(_done(each.envelope.entity, each.envelope.event))
                if isinstance(each.envelope.event, mailbox.OperatorMessageArrived | Created) and board is not None:
                    name = each.envelope.entity.removeprefix(MAILBOX)
                    of = board.entities.get(f"task:{name}")
                    seen[_when(of.state) if of is not None else ""] += 1
    assert wanted <= seen.keys()


_NAMED: dict[type[Event], str] = {
    question.QuestionAsked: "asked",
    question.QuestionAnswered: "answered",
    output.LimitSeen: "limit told",
    output.ConversationSeen: "conversation named",
    output.MessageTaken: "message taken",
    notifier.Delivered: "notification delivered",
    notifier.DeliveryFailed: "notification not delivered",
}


def _done(entity: str, event: Event) -> set[str]:
    """Return what an input of a session or of an operator does, in a few words."""
    done = {
        _NAMED.get(type(event), ""): True,
        "expired": isinstance(event, TimerFired) and entity == question.REF,
        "urgent message posted": isinstance(event, mailbox.OperatorMessageArrived) and event.urgent,
        "limit met": limit_of(event) is not None,
        "conversation lost": _has_lost(event),
    }
    return {what for what, is_so in done.items() if what and is_so}


def _has_lost(event: Event) -> bool:
    diagnosis = event.diagnosis if isinstance(event, session.SessionExited) else None
    return diagnosis is not None and diagnosis.trouble is Trouble.LOST


def _when(state: object) -> str:
    """Return which task a message is for."""
    if state in OVER:
        return "to a closed task"
    return "to a running task" if state in task.OWNED else "to a queued task"


def positions(**what: int) -> list[int]:
    """Return the positions of the facts of a session in which something is done at these places."""
    worker = start(next_task(following())).aggregate
    entity = worker.entities[output.REF]
    (part,) = entity.running
    kinds = {"torn": "tears a line", "late": "tells it late", "twice": "tells it twice"}
    name = (worker.name, entity.ref, FollowOutput.__name__, part.generation)
    assert part.activity is not None
    choices = Choices(but={(kinds[kind], *name, place): 1 for kind, place in what.items()})
    return [getattr(each.event, "position", 0) for each in followed(worker, entity, part.activity, choices)]


def test_a_line_of_a_session_may_be_torn_told_late_or_told_twice() -> None:
    """A torn line has no fact, and the next one has its usual position. A late fact comes after a newer one."""
    assert positions() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert positions(torn=2) == [1, 2, 4, 5, 6, 7, 8]
    assert positions(late=2) == [1, 2, 3, 4, 3, 5, 6, 7, 8]
    assert positions(twice=2) == [1, 2, 3, 3, 4, 5, 6, 7, 8]
    assert positions(late=1, torn=2) == [1, 2, 4, 2, 5, 6, 7, 8]


def test_an_activity_that_its_own_step_has_ended_says_nothing() -> None:
    """A script speaks for a running activity only; a step can begin one and end it."""
    worker = start(next_task(following(stall=True))).aggregate
    entity = worker.entities[stall_detector.REF]
    (part,) = entity.running
    ending = replace(entity, running=(replace(part, phase=Phase.ENDING),))
    choices = Choices(0)
    chance = Chance(TARGET.environment, choices, Faults().of(choices))
    course = chance.course(stall_detector.machine, worker, ending, part.slot, part.generation)
    assert course == []
