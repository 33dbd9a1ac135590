"""The fleet with witnesses. They remember facts that no rule needs, so no state of the fleet shows them.

A worker forgets its merges as soon as it has reported them, and which of its messages were urgent. The board forgets
the source of a failure. Only its view knows which worker has waited longest.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from board_ledger import Ledger, enter
from board_minutes import Minutes, take_down
from lifefold.core.fleet import service, system
from lifefold.core.fleet.board import budget, fleet_task, intake, worker_slot
from lifefold.core.fleet.dispatch.task_index import tasks_of, work_of
from lifefold.core.fleet.system import board, board_properties, fleet_properties, worker, worker_properties
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, orphans, steering, supervisor
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Event,
    Projection,
    Property,
    Rule,
    System,
    SystemState,
    Transition,
    View,
    always,
    always_step,
    projected,
    replace,
)
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.lifecycles.session_limits import LimitReached
from service_conduct import Runs, accompany
from talk_conduct import TalkConduct, is_fair, overhear
from worker_conduct import Conduct, observe

Claims = frozenset[tuple[str, int]]
"""Claims of tasks, each by the task and its number."""


def remember_merges(home: Claims, transition: Transition) -> Claims:
    """Take in a merge: its task and its claim."""
    if transition.before is None or not isinstance(transition.event, assignment.Merged):
        return home
    brief: task.Brief = transition.before.record.brief
    return home | {(brief.task, brief.epoch)}


class Diary(msgspec.Struct, frozen=True):
    """The past of a worker.

    - ``urgent``: an urgent message has come that no prompt has and no session has got.
    - ``patient``: the last input was a message that can wait. ``disturbed``: such a message has interrupted a session.
    - ``unplaced``: a worktree could not be made, which is no error yet.
    - ``stopped``: the agent was asked to stop. ``sent_home``: it was released.
    - ``failing``: its session has failed. ``unfair``: its task has not failed then, or has failed without that.
    """

    urgent: bool = False
    patient: bool = False
    disturbed: bool = False
    unplaced: bool = False
    stopped: bool = False
    failing: bool = False
    unfair: bool = False
    sent_home: bool = False


def remember(diary: Diary, transition: Transition) -> Diary:
    """Take in what has happened to a worker."""
    interrupted = transition.machine == worker.agent.name and transition.entered is session.State.INTERRUPTING
    now = replace(diary, patient=False, disturbed=diary.disturbed or (diary.patient and interrupted))
    match transition.event:
        case mailbox.OperatorMessageArrived(urgent=urgent):
            now = replace(now, urgent=now.urgent or urgent, patient=not urgent)
        case mailbox.MessagesTaken() | mailbox.MailboxClosed():
            now = replace(now, urgent=False)
        case steering.MessagePosted(urgent=urgent):
            now = replace(now, urgent=now.urgent and not urgent)
        case assignment.CheckoutFailed() | session_profiles.PromptFailed():
            now = replace(now, unplaced=transition.machine == assignment.machine.name)
        case desired_state.StopWanted():
            now = replace(now, sent_home=now.sent_home or transition.actor == board.NAME)
        case session.OperatorStop():
            now = replace(now, stopped=True, failing=False)
        case session.SessionExited():
            now = replace(now, failing=_has_failed(transition, transition.event))
        case session_profiles.Stalled():
            now = replace(now, failing=True)
        case assignment.WorkFailed() | assignment.SessionDied() | assignment.Dropped():
            wrong = now.failing is isinstance(transition.event, assignment.Dropped)
            now = replace(now, failing=False, unfair=now.unfair or wrong)
        case _:
            pass
    return now


def _has_failed(transition: Transition, exited: session.SessionExited) -> bool:
    before = transition.before
    over = transition.entered in {session.State.COOLING_DOWN, session.State.STOPPED}
    return over and before is not None and not session_profiles.may_go_on(before.record, exited)


Outcomes = frozenset[tuple[str, int, str]]
"""What came of claims, each by the task, its number, and a word."""

ORPHANED: Final = "given back as an orphan"
"""What came of a claim whose session has died, if its task is given back then."""

CAME: Final[Mapping[type[Event], str]] = {
    assignment.Merged: "merged",
    assignment.Parked: "parked",
    assignment.Rejected: "rejected",
    assignment.ParkingFailed: "rejected",
    assignment.Conflicted: "rejected",
    assignment.WorkFailed: "failed",
    assignment.CheckoutFailed: "given back",
    assignment.Dropped: "given back",
}
"""What each end of an assignment means for the task."""

TAKEN: Final[Mapping[type[Event], str]] = {
    task.Verified: "merged",
    fleet_task.Parked: "parked",
    task.Rejected: "rejected",
    task.Failed: "failed",
    task.Released: "given back",
    fleet_task.Returned: "given back",
}
"""And what a board takes it for."""


def remember_what_came(came: Outcomes, transition: Transition) -> Outcomes:
    """Take in what came of the claim in hand; of those before, the board has heard."""
    word = _word_of(transition)
    if transition.before is None or not word:
        return came
    brief: task.Brief = transition.before.record.brief
    return frozenset({(brief.task, brief.epoch, word)})


def _word_of(transition: Transition) -> str:
    """Return what came of a claim by this, if that is known by now: an orphan that is not the work has failed."""
    if transition.before is None:
        return ""
    match transition.event:
        case assignment.SessionDied() if transition.entered is assignment.State.IDLE:
            return ORPHANED
        case assignment.Inspected(differs=False):
            return "failed"
        case assignment.Rejected() if transition.before.record.is_orphan:
            return "failed"
        case _:
            return CAME.get(type(transition.event), "")


def remember_what_was_taken(taken: Outcomes, transition: Transition) -> Outcomes:
    """Take in what the board was told of the last claim of a task."""
    if transition.before is None or type(transition.event) not in TAKEN or transition.actor.startswith("rule:"):
        return taken
    record: task.Task = transition.before.record
    others = frozenset(each for each in taken if each[0] != record.id)
    word = TAKEN[type(transition.event)]
    is_orphan = record.state is task.State.ORPHANED and isinstance(transition.event, task.Released)
    return others | {(record.id, record.epoch, ORPHANED if is_orphan else word)}


def remember_who_waits(queue: tuple[str, ...], transition: Transition) -> tuple[str, ...]:
    """Take in the workers that begin to wait, and those that end it: the one with the longest wait is the first."""
    if transition.machine != worker_slot.machine.name or transition.entered is None:
        return queue
    others = tuple(each for each in queue if each != transition.entity)
    return (*others, transition.entity) if transition.entered is worker_slot.State.WAITING else others


class Run(msgspec.Struct, frozen=True):
    """The claim that was in hand last, and whether a session has run at it."""

    claim: tuple[str, int] = ("", 0)
    has_run: bool = False


def remember_runs(last: Run, transition: Transition) -> Run:
    """Take in what a session has run at. A claim that is given back without that is soon forgotten."""
    if isinstance(transition.event, assignment.Assigned):
        brief: task.Brief = transition.after.record.brief
        return Run((brief.task, brief.epoch))
    if transition.entered is assignment.State.IDLE and not last.has_run:
        return Run()
    return replace(last, has_run=last.has_run or transition.entered is session.State.RUNNING)


def runs(of: Aggregate) -> Claims:
    """Return the claim that a worker's session has run at, or those of the board that are in progress."""
    if of.kind == worker.KIND:
        last: Run = of.views["run"]
        return frozenset({last.claim} if last.has_run else ())
    return frozenset((each.id, each.epoch) for each in tasks_of(of) if each.state is task.State.IN_PROGRESS)


def in_progress_is_run(fleet: Projection) -> bool:
    """Tell whether a session has run at whatever is in progress."""
    ran: Claims = Claims().union(*(seen for name, seen in fleet.aggregates.items() if name != board.NAME))
    begun: Claims = fleet.aggregates[board.NAME]
    return begun <= ran


def outcomes(of: Aggregate) -> Outcomes:
    """Return what came of claims, or was taken for that; of a service nothing does."""
    found: Outcomes = of.views.get("outcomes", Outcomes())
    return found


def taken_for_what_came(fleet: Projection) -> bool:
    """Tell whether the board knows the outcome of a claim, as long as a witness knows it."""
    taken: Outcomes = fleet.aggregates[board.NAME]
    said = {(name, epoch): word for name, epoch, word in taken}
    known: Outcomes = Outcomes().union(*(seen for name, seen in fleet.aggregates.items() if name != board.NAME))
    return all(said.get((name, epoch), word) == word for name, epoch, word in known)


class Left(msgspec.Struct, frozen=True):
    """Whether something is left to do on a board, or may come; ``spent`` are those who have nothing left to spend.

    ``is_manned``: a worker is left that may do it.
    """

    is_much: bool
    spent: frozenset[str] = frozenset()
    is_manned: bool = True


def remember_dismissal(before: int, transition: Transition) -> int:
    """Take in that a service was told by the board to end: 1 if it was."""
    return int(
        bool(before) or (isinstance(transition.event, desired_state.DrainWanted) and transition.actor == board.NAME)
    )


def waits_for_more(of: Aggregate) -> Left | bool:
    """Return what is left of a board's work, and of a worker whether it was not sent home.

    After all workers were released, a retried task has no worker.
    """
    if of.kind != board.NAME:
        return not (of.views["diary"].sent_home if of.kind == worker.KIND else of.views["dismissed"])
    is_left = work_of(of).unsettled > 0 and not of.views["minutes"].reopened
    all_budgets = ((ref.partition("budget:agent/")[2], each.record) for ref, each in of.entities.items())
    spent = frozenset(f"{worker.KIND}/{name}" for name, each in all_budgets if name and budget.is_spent_for_good(each))
    return Left(intake.are_open(of) or is_left, spent, work_of(of).present > 0)


def no_worker_stops_early(fleet: Projection) -> bool:
    """Tell whether all who have something left to spend are there as long as something is left to do, or may come."""
    left: Left = fleet.aggregates[board.NAME]
    serves = f"{service.KIND}/"
    others = (
        each
        for name, each in fleet.aggregates.items()
        if name != board.NAME and name not in left.spent and (left.is_manned or not name.startswith(serves))
    )
    return not left.is_much or all(others)


def brought_home(of: Aggregate) -> Claims:
    """Return the claims that a worker has merged, or those that have closed a task of the board."""
    if of.kind == worker.KIND:
        home: Claims = of.views["home"]
        return home
    return frozenset((each.id, each.epoch) for each in tasks_of(of) if each.state is task.State.CLOSED)


def closed_is_merged(fleet: Projection) -> bool:
    """Tell whether each closed task was merged, under the claim that has closed it."""
    merged: Claims = Claims().union(*(seen for name, seen in fleet.aggregates.items() if name != board.NAME))
    closed: Claims = fleet.aggregates[board.NAME]
    return closed <= merged


def urgency_interrupts(of: Aggregate) -> bool:
    """Tell whether no session goes on that does not know of an urgent message: it runs, or is to run, uninterrupted."""
    agent = of.entities["session"]
    goes_on = agent.state is session.State.SPAWNING and not agent.postponed
    return not of.views["diary"].urgent or not (goes_on or agent.state is session.State.RUNNING)


def stops_when_asked(of: Aggregate) -> bool:
    """Tell whether the agent was asked to stop only because that is desired."""
    return not of.views["diary"].stopped or of.record("desired_state").state is desired_state.State.STOP


def is_made_before_it_is_used(step: Transition) -> bool:
    """Tell whether no rule reports an agent's first worktree as ready: its handler does."""
    first = step.before is not None and step.before.state is session.State.INITIALIZING
    return not (first and isinstance(step.event, session.WorktreeReady) and step.actor.startswith("rule:"))


def is_interrupted_once(of: Aggregate) -> bool:
    """Tell whether no second interruption waits for a session that does not run yet; its own limit is none."""
    waits = [each for each in of.entities["session"].postponed if not isinstance(each.event, LimitReached)]
    return len(waits) <= 1


OUTCOME: Final = "a claim is taken for what came of it"


class Told(msgspec.Struct, frozen=True):
    """What a board has told workers, or a worker has heard.

    Which claims had to make room, and within how many milliseconds, or which one was recalled; and for the how many-th
    time each, or this one, is restarted.
    """

    within_ms: int
    claims: frozenset[tuple[str, int]]
    granted: tuple[tuple[str, int], ...]


def told(of: Aggregate) -> Told | None:
    """Return what a board has told, or a worker has heard; a service is told nothing of that."""
    if of.kind == worker.KIND:
        conduct: Conduct = of.views["conduct"]
        name, epoch, within_ms = conduct.recalled
        found = of.entities.get(supervisor.REF)
        rests = found is not None and found.state is supervisor.State.RESTING
        granted = ((of.key, conduct.granted),) if rests else ()
        return Told(within_ms, frozenset({(name, epoch)} if name else ()), granted)
    if of.kind != board.NAME:
        return None
    preemption_requests = [
        each.record.within_ms for ref, each in of.entities.items() if ref.startswith("preemption_request:")
    ]
    ledger: Ledger = of.views["ledger"]
    return Told(preemption_requests[0] if preemption_requests else 0, frozenset(ledger.made_room), ledger.granted)


def _heard(fleet: Projection) -> Iterable[Told]:
    return (each for name, each in fleet.aggregates.items() if name != board.NAME and isinstance(each, Told))


def has_its_time(fleet: Projection) -> bool:
    """Tell whether the preempted workers of the last claims got their time limit, and no other worker did."""
    said: Told = fleet.aggregates[board.NAME]
    made = dict(said.claims)
    return all(
        each.within_ms == (said.within_ms if made.get(name) == epoch else 0)
        for each in _heard(fleet)
        for name, epoch in each.claims
        if epoch >= made.get(name, 0)
    )


def knows_how_often(fleet: Projection) -> bool:
    """Tell whether each worker that waits for its restart knows the number of the restart."""
    said: Told = fleet.aggregates[board.NAME]
    return all(set(each.granted) <= set(said.granted) for each in _heard(fleet))


MERGED: Final = "a task is closed when its owner has merged it, and not otherwise"

OF_ALL: Final[tuple[Property[SystemState], ...]] = (
    *fleet_properties.PROPERTIES,
    *orphans.AT_LAST,
    *projected(
        told,
        always("whoever has to make room is told how long that may take", has_its_time),
        always("whoever is restarted is told for the how many-th time", knows_how_often),
    ),
    *projected(brought_home, always(MERGED, closed_is_merged)),
    *projected(runs, always("nothing is in progress that no session has run at", in_progress_is_run)),
    *projected(waits_for_more, always("no worker is stopped while something is left to do", no_worker_stops_early)),
    *projected(outcomes, always(OUTCOME, taken_for_what_came)),
)
OF: Final[Mapping[str, tuple[Property[Aggregate], ...]]] = {
    worker.KIND: (
        *worker_properties.PROPERTIES,
        always("no session goes on without the urgent message that has come", urgency_interrupts),
        always("a message that can wait interrupts nobody", lambda w: not w.views["diary"].disturbed),
        always("a place that cannot be made is an error of the agent's", lambda w: not w.views["diary"].unplaced),
        always("work fails when its session has failed, and not otherwise", lambda w: not w.views["diary"].unfair),
        always(
            "what becomes of work whose session dies is what its task says", lambda w: not w.views["conduct"].astray
        ),
        always("a conversation hears of the end of each session", lambda w: w.views["talk"].untold is None),
        always(
            "the first loss of a conversation fails no work, and any other error does",
            lambda w: is_fair(w.views["talk"]),
        ),
        always("no session is ended for its silence that has not stalled", lambda w: not w.views["conduct"].hasty),
        always(
            "a turn completes with merged or parked work, and fails otherwise",
            lambda w: not w.views["conduct"].misjudged,
        ),
        always("whoever stops by errors may come back, and nobody else", lambda w: not w.views["conduct"].mistaken),
        always_step("an agent waits until its first place is made", is_made_before_it_is_used),
        always("whoever does not run yet is interrupted once", is_interrupted_once),
        always("nobody is stopped whom nobody wants to stop", stops_when_asked),
    ),
    service.KIND: (
        *service.PROPERTIES,
        always(
            "no run is begun that people do not want, or that nobody is up for", lambda s: not s.views["runs"].hasty
        ),
        always("the process hears how a run went", lambda s: not s.views["runs"].mistold),
    ),
    board.NAME: (
        *board_properties.PROPERTIES,
        always("nobody is given a part of what is cancelled", lambda b: not b.views["minutes"].unwanted),
        always("nothing is tried again at once that nobody has granted", lambda b: not b.views["minutes"].hasty),
        always("a part is what whoever split the task has described", lambda b: not b.views["minutes"].changed),
        always("of an approved plan the most urgent task is given out first", lambda b: not b.views["minutes"].early),
        always("what is said of a plan is said of its tasks", lambda b: not b.views["minutes"].contrary),
        always("nothing is taken from whoever is trusted far enough", lambda b: not b.views["ledger"].robbed),
        always("a claim is charged what it has cost, or its share", lambda b: not b.views["ledger"].mischarged),
        always("whoever asks for a restart is given what is there", lambda b: not b.views["ledger"].owed),
        always("permits are spent by restarts, and given back otherwise", lambda b: not b.views["ledger"].misspent),
        always("whoever has waited longest is the next", lambda b: work_of(b).waiting == b.views["queue"]),
    ),
}
WITNESSES: Final[Mapping[str, Mapping[str, View]]] = {
    worker.KIND: {
        "home": View(frozenset(), remember_merges),
        "outcomes": View(frozenset(), remember_what_came),
        "run": View(Run(), remember_runs),
        "diary": View(Diary(), remember),
        "conduct": View(Conduct(), observe),
        "talk": View(TalkConduct(), overhear),
    },
    service.KIND: {"dismissed": View(0, remember_dismissal), "runs": View(Runs(), accompany)},
    board.NAME: {
        "outcomes": View(frozenset(), remember_what_was_taken),
        "queue": View((), remember_who_waits),
        "minutes": View(Minutes(), take_down),
        "ledger": View(Ledger(), enter),
    },
}


def witnessed(
    people: Mapping[str, tuple[type[Event], ...]],
    rules: Mapping[str, Iterable[Rule]] | None = None,
    fold: Any = None,
) -> System:
    """Return the fleet with a witness, in which people say only this; with other rules for some types, and fold."""
    others = rules or {}
    return System(
        "fleet",
        *(
            AggregateType(
                kind,
                machines=of.machines.values(),
                rules=others.get(kind, of.rules),
                views=_views(of, fold) | dict(WITNESSES.get(kind, {})),
                commands=dict.fromkeys(of.machines, ())
                | {each: people[each] for each in of.machines if each in people},
                properties=OF.get(kind, ()),
            )
            for kind, of in system.aggregates.items()
        ),
        properties=OF_ALL,
    )


def _views(of: AggregateType, fold: Any) -> dict[str, View]:
    """Return the views, with another fold of the board's work."""
    changed = {"work": View(of.views["work"].initial, fold)} if fold is not None and "work" in of.views else {}
    return of.views | changed
