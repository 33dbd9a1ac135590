"""The pages of a whole fleet: what waits and who works, and the board with a column a state."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import attention, awaited, host_lines
from lifefold.interpreters.explain import status, task_status
from lifefold.interpreters.explain.accounts import balances
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.explain.task_words import OF_TASKS
from lifefold.interpreters.fleet_runner import quarantines
from lifefold.interpreters.fleet_runner.hosts import waits_of
from lifefold.interpreters.web import plan_changes
from lifefold.interpreters.web.journal import Choice, Told
from lifefold.interpreters.web.moments import View, cost
from lifefold.interpreters.web.structs import Action, BoardPage, Column, FleetPage

MOST_LINES: Final = 12
"""The last sentences of the story on the page of a fleet."""

MOST_FAILED: Final = 20
"""The most failed and blocked tasks on the page of a fleet."""

_FAILED: Final = frozenset({State.FAILED, State.BLOCKED})

MOST_CARDS: Final = 100
"""The most tasks in a column of the board; the newest change is the first."""

ORDER: Final = (
    State.PENDING_APPROVAL,
    State.PLANNED,
    State.FAILED,
    State.BLOCKED,
    State.ORPHANED,
    State.IN_PROGRESS,
    State.CLAIMED,
    State.DONE,
    State.WAITING_FOR_SUBTASKS,
    State.OPEN,
    State.CLOSED,
    State.CANCELLED,
)
"""The columns of the board: first the states that need an operator, last the states that are over."""


def fleet_page(view: View) -> FleetPage:
    """Return the page of a fleet at a moment."""
    tasks = view.tasks
    counted = task_status.counted(tasks)
    failed = attention.tasks_first(each for each in counted if each.state in _FAILED)
    return FleetPage(
        view.at(),
        view.is_over,
        view.waits,
        plan_changes.waiting(view),
        tuple(_troubles(view)),
        tuple(_releases(view)),
        tuple(view.task(each) for each in failed[:MOST_FAILED]),
        dict(Counter(each.state for each in counted)),
        attention.in_words(each for each in counted if each.state != State.CLOSED),
        sum(each.state == State.CLOSED for each in counted),
        len(counted),
        view.agents(),
        balances(view.there),
        cost(view.moment.account.spending.total),
        _story(view),
        tuple(each.status for each in view.hosts),
    )


def _story(view: View) -> tuple[Told, ...]:
    """Return the last sentences of the story, the latest first, as far as the past is known."""
    return tuple(view.log.journal.told(Choice(), before=view.moment.seq + 1, most=MOST_LINES))[::-1]


def _troubles(view: View) -> Iterator[str]:
    """Yield what hinders the fleet beside the decisions of operators, as ``lifefold status`` says it."""
    if not view.moment.is_now or not view.has_board:
        return
    for each in quarantines.quarantined(view.there):
        yield f"{each.name}: its {each.entity} is quarantined: {each.reason}; lifefold release {each.name}"
    if view.runs:
        yield from awaited.stuck(status.agents(view.there), view.now_ms)
    if awaited.goes_on(view.there):
        yield from awaited.in_the_way(waits_of(view.folder, view.hosts), view.now_ms)
    yield from host_lines.refusals(each.status for each in view.hosts)
    yield from awaited.fallen(view.moment.account.stopped_by)


def _releases(view: View) -> Iterator[Action]:
    """Yield the ends of quarantines, one for each agent, service or task."""
    if view.moment.is_now:
        for name in dict.fromkeys(each.name for each in quarantines.quarantined(view.there)):
            about = "it continues in its state; the cause of its error has to be fixed before"
            yield Action(f"Release {name}", {"command": "release", "name": name}, about)


def board_page(view: View) -> BoardPage:
    """Return the board at a moment, with the evidence of every agent that has a task."""
    tasks = view.tasks
    counts = Counter(each.state for each in tasks)
    columns: list[Column] = []
    for state in ORDER:
        if counts[state]:
            newest = sorted((each for each in tasks if each.state == state), key=lambda each: -each.since_ms)
            shown = tuple(map(view.task, newest[:MOST_CARDS]))
            columns.append(Column(state, OF_TASKS[state], shown, counts[state] - len(shown)))
    evidence = {each.status.name: each.evident for each in view.agents() if each.status.task}
    return BoardPage(view.at(), tuple(columns), evidence, _waits_for(tasks, columns))


def _waits_for(tasks: Iterable[TaskStatus], columns: Iterable[Column]) -> dict[str, dict[str, str]]:
    """Return the open dependencies of the tasks on the cards, with their states."""
    states = {each.id: str(each.state) for each in tasks}
    cards = (card.status for column in columns if column.state in _WAITING for card in column.tasks)
    found = {
        card.id: {name: states[name] for name in card.depends_on if states.get(name, State.CLOSED) != State.CLOSED}
        for card in cards
    }
    return {name: open_ones for name, open_ones in found.items() if open_ones}


_WAITING: Final = frozenset({State.PLANNED, State.OPEN, State.BLOCKED})
"""The states in which a task waits for its dependencies."""
