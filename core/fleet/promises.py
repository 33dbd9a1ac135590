"""What the fleet promises as a whole: of its board, its workers, and what is under way between them."""

from lifefold.core import session, task
from lifefold.core.fleet import assignment, board, intent, seat, worker
from lifefold.core.kernel import Aggregate, Property, Scene, always, leads_to, sometimes, strongly, weakly
from lifefold.core.session.table import SUCCESS
from lifefold.effects import CheckOutWork, MergeWork, PrepareWorktree, RunSession, VerifyWork

WORK_ENDS = (
    *weakly(PrepareWorktree, CheckOutWork, RunSession, VerifyWork, MergeWork, intent.RunWanted),
    *strongly(SUCCESS),
)
"""That everything which is begun ends, that who is held is let go on, and that a session may succeed at last.

The last is needed as long as sessions may suspend themselves because somebody has asked them to (D28).
"""

_IN_HAND = frozenset(assignment.State) - {assignment.State.IDLE, assignment.State.WANTING}


def _board(scene: Scene) -> Aggregate:
    found: Aggregate = scene.aggregates[board.NAME]
    return found


def _workers(scene: Scene) -> list[Aggregate]:
    return [each for each in scene.aggregates.values() if each.kind == worker.KIND]


def one_worker_for_each_claim(scene: Scene) -> bool:
    """No claim is in two hands, and none in a hand that it was not given to (E12)."""
    held = [each.record("assignment") for each in _workers(scene)]
    claims = [(each.brief.task, each.brief.epoch) for each in held if each.state in _IN_HAND]
    known = {each.id: each.epoch for each in board.tasks_of(_board(scene))}
    return len(set(claims)) == len(claims) and all(1 <= epoch <= known[name] for name, epoch in claims)


def closed_is_home(scene: Scene) -> bool:
    """Nobody works any more at a task that is closed."""
    closed = {each.id for each in board.tasks_of(_board(scene)) if each.state is task.State.CLOSED}
    held = [each.record("assignment") for each in _workers(scene)]
    present = {(each.id, each.epoch) for each in board.tasks_of(_board(scene))}
    return not any(
        each.state in _IN_HAND and each.brief.task in closed and (each.brief.task, each.brief.epoch) in present
        for each in held
    )


def gone_is_gone(scene: Scene) -> bool:
    """Whom the board takes for gone has stopped and has nothing in hand."""
    seats = _board(scene).entities
    gone = [each for each in _workers(scene) if seats[f"seat:{each.key}"].state is seat.State.GONE]
    return all(
        each.record("session").state is session.State.STOPPED
        and each.record("assignment").state is assignment.State.IDLE
        for each in gone
    )


def is_held(scene: Scene) -> bool:
    """Tell whether a worker was asked to hold."""
    return any(each.record("intent").state is intent.State.HOLD for each in _workers(scene))


def is_finished(scene: Scene) -> bool:
    """Tell whether every task is settled, or nobody is left."""
    return board.finished(_board(scene))


def is_over(scene: Scene) -> bool:
    """Tell whether the fleet has come to its end: everybody is gone, nothing runs, nothing is under way."""
    gone = all(worker.settled(each) for each in _workers(scene)) and board.work_of(_board(scene)).present == 0
    return is_finished(scene) and gone and not scene.in_flight


PROMISES: tuple[Property[Scene], ...] = (
    always("no claim of a task is in two hands", one_worker_for_each_claim),
    always("whoever is gone has nothing in hand", gone_is_gone),
    always("a task is closed when its owner has brought it home", closed_is_home),
    leads_to(
        "every task is settled at last, or nobody is left, if what is begun ends",
        lambda scene: not is_finished(scene) and not is_held(scene),
        lambda scene: is_finished(scene) or is_held(scene),
        given=WORK_ENDS,
    ),
    leads_to(
        "when nothing is left to do everybody goes home, if what is begun ends",
        is_finished,
        is_over,
        given=WORK_ENDS,
    ),
    leads_to("every message arrives", lambda scene: bool(scene.in_flight), lambda scene: not scene.in_flight),
    sometimes("a fleet closes all its tasks and goes home", lambda scene: is_over(scene) and _all_closed(scene)),
)


def _all_closed(scene: Scene) -> bool:
    return all(each.state is task.State.CLOSED for each in board.tasks_of(_board(scene)))
