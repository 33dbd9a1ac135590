"""What the fleet promises as a whole: of its board, its workers, and what is under way between them."""

from collections.abc import Iterable, Iterator

import msgspec

from lifefold.core import session, task
from lifefold.core.fleet import (
    assignment,
    board,
    claiming,
    departure,
    doors,
    duty,
    intent,
    job,
    orphans,
    preemption,
    proposal,
    restarts,
    seat,
    service,
    worker,
)
from lifefold.core.fleet.nearby import around, part
from lifefold.core.fleet.work import is_lost, tasks_of, work_of
from lifefold.core.kernel import (
    Aggregate,
    Overview,
    Property,
    Scene,
    Transition,
    always,
    leads_to,
    near,
    seeing,
    sometimes,
    strongly,
    weakly,
)
from lifefold.core.session.model import SUCCESS
from lifefold.effects import CheckOutWork, InspectWork, MergeWork, ParkWork, PrepareWorktree, RunSession, VerifyWork

WORK_ENDS = (
    *weakly(PrepareWorktree, CheckOutWork, RunSession, InspectWork, VerifyWork, ParkWork, MergeWork),
    *weakly(intent.RunWanted, intent.ResumeWanted, proposal.PlanApproved, doors.LastTaskIn),
    *strongly(SUCCESS),
)
"""What is relied on: everything that is begun ends, and people do what only they can.

They let go on whom they hold or pause, approve a plan, and say at last that no more tasks come. And a session may
succeed at last: sessions may suspend themselves as long as somebody asks them to (D28).
"""


class Hand(msgspec.Struct, frozen=True):
    """What is looked at of a worker: the claim in its hand, as task and epoch, and what is being done about it.

    While it is worked at, a session has run at it or has not (``was_begun``); then it is merged (``is_merging``).
    ``has_stopped`` is said of the agent, and ``known`` is what it knows of the task.
    """

    claim: tuple[str, int] | None
    has_stopped: bool
    was_begun: bool | None
    is_merging: bool
    known: "Known"


Known = tuple[bool, task.Stage, tuple[tuple[str, ...], ...]]
"""Whether a person has to agree to a task, what is left to be done of it, and by which commands it is verified."""


class Office(msgspec.Struct, frozen=True):
    """What is looked at of the board: the tasks' last claims, those that are begun and that are closed, who owns what.

    And who is gone, and what is to be known of the tasks.
    """

    epochs: tuple[tuple[str, int], ...]
    begun: frozenset[str]
    closed: frozenset[str]
    owners: tuple[tuple[str, str], ...]
    gone: frozenset[str]
    known: tuple[tuple[str, Known], ...]


def in_hand(of: Aggregate) -> Hand | Office | None:
    """Return what is looked at to see who has which task in hand: a service never has one."""
    if of.kind == service.KIND:
        return None
    if of.kind == worker.KIND:
        work: assignment.Assignment = of.record("assignment")
        holds = work.state not in {assignment.State.IDLE, assignment.State.WANTING}
        claim = (work.brief.task, work.brief.epoch) if holds else None
        agent = of.record("session").state
        is_first = work.sessions == 0 or (work.sessions == 1 and agent is session.State.SPAWNING)
        begun = agent is session.State.RUNNING or not is_first
        was_begun = begun if work.state is assignment.State.WORKING else None
        is_merging = work.state is assignment.State.MERGING
        return Hand(claim, agent is session.State.STOPPED, was_begun, is_merging, _known(work.brief))
    tasks = tasks_of(of)
    seats = (entity for ref, entity in of.entities.items() if ref.startswith("seat:"))
    return Office(
        tuple((each.id, each.epoch) for each in tasks),
        frozenset(each.id for each in tasks if each.state is task.State.IN_PROGRESS),
        frozenset(each.id for each in tasks if each.state is task.State.CLOSED),
        tuple((each.id, each.owner) for each in tasks if each.state in claiming.KEPT and each.owner),
        frozenset(each.ref.removeprefix("seat:") for each in seats if each.state is seat.State.GONE),
        tuple((each.id, _known(each)) for each in tasks),
    )


def _known(of: job.Job | task.Brief) -> Known:
    return of.asks, of.stage, of.verify


def _office(fleet: Overview) -> Office:
    found: Office = fleet.aggregates[board.NAME]
    return found


def _hands(fleet: Overview) -> dict[str, Hand]:
    return {name.partition("/")[2]: seen for name, seen in fleet.aggregates.items() if isinstance(seen, Hand)}


def claims_are_in_one_hand(fleet: Overview) -> bool:
    """No claim is in two hands (E12)."""
    claims = [each.claim for each in _hands(fleet).values() if each.claim is not None]
    return len(set(claims)) == len(claims)


def claims_were_made(fleet: Overview) -> bool:
    """Every claim in somebody's hand is one that the board has made (E12)."""
    known = dict(_office(fleet).epochs)
    claims = (each.claim for each in _hands(fleet).values() if each.claim is not None)
    return all(1 <= epoch <= known[name] for name, epoch in claims)


def hands_agree(fleet: Overview) -> bool:
    """When nothing is under way, everybody has in hand what he owns, and nothing else but a merge that had begun."""
    office = _office(fleet)
    last = dict(office.epochs)
    owned = {name: (of, last[of]) for of, name in office.owners}
    return bool(fleet.under_way) or all(
        hand.claim == owned.get(name) or (hand.is_merging and name not in owned) for name, hand in _hands(fleet).items()
    )


def progress_agrees(fleet: Overview) -> bool:
    """When nothing is under way, a task that its owner works at is in progress if a session has run, and not before."""
    office = _office(fleet)
    owners = dict(office.owners)
    at_work = [(name, hand) for name, hand in _hands(fleet).items() if hand.claim and hand.was_begun is not None]
    return bool(fleet.under_way) or all(
        (hand.claim[0] in office.begun) is hand.was_begun
        for name, hand in at_work
        if hand.claim and owners.get(hand.claim[0]) == name
    )


def closed_is_left(fleet: Overview) -> bool:
    """Nobody works any more at a task that is closed, under the claim that has closed it."""
    office = _office(fleet)
    last = {(name, epoch) for name, epoch in office.epochs if name in office.closed}
    return not any(each.claim in last for each in _hands(fleet).values())


def owners_work(fleet: Overview) -> bool:
    """Nobody has the last claim of a task in hand that is another one's (E12)."""
    office = _office(fleet)
    last, owners = dict(office.epochs), dict(office.owners)
    claims = [(name, *each.claim) for name, each in _hands(fleet).items() if each.claim is not None]
    return all(owners.get(of, name) == name for name, of, epoch in claims if last[of] == epoch)


def owners_know_their_task(fleet: Overview) -> bool:
    """Whoever owns a task knows what is left to be done of it, how it is verified, and whether a person has a word."""
    office = _office(fleet)
    last, known, hands = dict(office.epochs), dict(office.known), _hands(fleet)
    owned = [(of, hands[name]) for of, name in office.owners if name in hands]
    return all(hand.known == known[of] for of, hand in owned if hand.claim == (of, last[of]))


def has_lost_work(fleet: Overview) -> bool:
    """Tell whether somebody has a task in hand that was taken from him (E20)."""
    office = _office(fleet)
    last, owners = dict(office.epochs), dict(office.owners)
    claims = [(name, *each.claim) for name, each in _hands(fleet).items() if each.claim is not None]
    return any((last[of], owners.get(of)) != (epoch, name) for name, of, epoch in claims)


def gone_is_gone(fleet: Overview) -> bool:
    """Whom the board takes for gone has stopped and has nothing in hand."""
    hands = _hands(fleet)
    gone = _office(fleet).gone & hands.keys()
    return all(hands[name].has_stopped and hands[name].claim is None for name in gone)


def awaits_what_may_come(of: Aggregate) -> bool:
    """Tell of a board whether everything that its open tasks wait for may still be closed (E19)."""
    if of.kind != board.NAME:
        return True
    tasks = {each.id: each for each in tasks_of(of)}
    awaited = {name for each in tasks.values() if each.state is task.State.OPEN for name in each.depends_on}
    return not any(name in awaited and is_lost(each) for name, each in tasks.items())


class Course(msgspec.Struct, frozen=True):
    """What is looked at, of a worker or the board, to see how far the fleet is.

    ``is_over``: everything of it is over. Of the board: every task is settled or nobody is left (``is_finished``), and
    every task is closed (``is_closed``). Of a worker: it is asked to hold.
    """

    is_over: bool
    is_finished: bool = False
    is_closed: bool = False
    is_held: bool = False


def course(of: Aggregate) -> Course:
    """Return what is looked at to see whether the fleet comes to its end."""
    if of.kind == worker.KIND:
        return Course(worker.settled(of), is_held=of.record("intent").state in intent.RESTS)
    if of.kind == service.KIND:
        return Course(service.settled(of))
    closed = all(each.state is task.State.CLOSED for each in tasks_of(of))
    gone = all(each.state is duty.State.GONE for _, each in duty.duties(of))
    return Course(work_of(of).present == 0 and gone, board.finished(of), closed)


def is_held(fleet: Overview) -> bool:
    """Tell whether a worker was asked to hold."""
    return any(each.is_held for each in fleet.aggregates.values())


def is_finished(fleet: Overview) -> bool:
    """Tell whether every task is settled, or nobody is left."""
    finished: bool = fleet.aggregates[board.NAME].is_finished
    return finished


def is_over(fleet: Overview) -> bool:
    """Tell whether the fleet has come to its end: everybody is gone, nothing runs, nothing is under way."""
    return is_finished(fleet) and all(each.is_over for each in fleet.aggregates.values()) and not fleet.under_way


def is_done(fleet: Overview) -> bool:
    """Tell whether the fleet has come to its end with all of its tasks closed."""
    return is_over(fleet) and fleet.aggregates[board.NAME].is_closed


def _waits(fleet: Overview) -> bool:
    """Tell whether something is left to do, and nobody was asked to hold.

    That whoever holds is let go on at last is given, and then this is so again. So only people who ask him to hold
    again, and so on without end, keep a task from being settled.
    """
    return not is_finished(fleet) and not is_held(fleet)


_TELLING = frozenset({"assignment", "session"})
"""The entities of a worker that say what it has in hand."""


def nearby(fleet: Scene, name: str, transitions: Iterable[Transition]) -> Scene | None:
    """Return the workers that have to do with a step, and the part of the board that has to do with them.

    Whoever has a task in hand has to do with the one who owns it, too.
    """
    desk: Aggregate = fleet.aggregates[board.NAME]
    if name == board.NAME:
        refs = list(around(desk, transitions))
        people = [f"{worker.KIND}/{ref.removeprefix('seat:')}" for ref in refs if ref.startswith("seat:")]
    elif name.startswith(f"{worker.KIND}/") and any(each.machine in _TELLING for each in transitions):
        refs, people = [], [name]
    else:
        return None
    there = _workers(fleet, people)
    refs += [ref for each in there.values() for ref in _of_worker(desk, each)]
    owners = [desk.record(ref).owner for ref in refs if ref.startswith("task:") and ref in desk.entities]
    others = _workers(fleet, [f"{worker.KIND}/{each}" for each in owners if each])
    refs += [ref for name, each in others.items() if name not in there for ref in _of_worker(desk, each)]
    return Scene({board.NAME: part(desk, refs), **there, **others}, fleet.in_flight)


def _workers(fleet: Scene, names: Iterable[str]) -> dict[str, Aggregate]:
    return {each: fleet.aggregates[each] for each in dict.fromkeys(names) if each in fleet.aggregates}


def _of_worker(desk: Aggregate, of: Aggregate) -> Iterator[str]:
    """Yield the references of a worker's seat, of the task that was given to it, and of the one in its hand."""
    seat = f"seat:{of.key}"
    yield seat
    tasks = (desk.entities[seat].record.task if seat in desk.entities else "", of.record("assignment").brief.task)
    yield from (f"task:{each}" for each in tasks if each)


PROMISES: tuple[Property[Scene], ...] = (
    *near(
        nearby,
        *seeing(
            in_hand,
            always("no claim of a task is in two hands", claims_are_in_one_hand),
            always("nobody has a claim in hand that the board has not made", claims_were_made),
            always(
                "when every message has arrived, all have in hand what they own, or a merge that had begun",
                hands_agree,
            ),
            always(
                "when every message has arrived, what a session has run at is in progress, and nothing else",
                progress_agrees,
            ),
            always("whoever is gone has nothing in hand", gone_is_gone),
            always("nobody works at a closed task under the claim that has closed it", closed_is_left),
            always("nobody works at what another one has claimed", owners_work),
            always("whoever owns a task knows what is to be done of it", owners_know_their_task),
        ),
        *seeing(
            awaits_what_may_come,
            always("nobody waits for a task that is lost", lambda fleet: all(fleet.aggregates.values())),
        ),
    ),
    *seeing(
        in_hand,
        leads_to(
            "whoever works at what was taken from him hears of it, if what is begun is merged",
            has_lost_work,
            lambda fleet: not has_lost_work(fleet),
            given=weakly(MergeWork),
        ),
    ),
    *seeing(
        course,
        leads_to(
            "every task is settled at last, or nobody is left, if what is begun ends"
            " and nobody is held again and again",
            _waits,
            lambda fleet: not _waits(fleet),
            given=WORK_ENDS,
        ),
        leads_to(
            "when nothing is left to do everybody goes home, if what is begun ends",
            is_finished,
            is_over,
            given=WORK_ENDS,
        ),
        sometimes("a fleet closes all its tasks and goes home", is_done),
        leads_to("every message arrives", lambda fleet: fleet.under_way > 0, lambda fleet: not fleet.under_way),
    ),
    *departure.OF_FLEETS,
    *restarts.OF_FLEETS,
    *preemption.OF_FLEETS,
    *orphans.OF_FLEETS,
    *service.OF_FLEETS,
)
