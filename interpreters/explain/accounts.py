"""The balances of a fleet's budgets: a projection for displays."""

from collections.abc import Iterator, Mapping

import msgspec

from lifefold.core.fleet.board import budget
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate, Entity
from lifefold.core.lifecycles.budget.amounts import Resource


class Balance(msgspec.Struct, frozen=True):
    """The balance of one limit of one budget.

    ``whose`` is ``fleet``, ``agent`` or ``task``, and ``name`` the agent or the task. ``spent`` and ``set_aside`` are
    parts of ``cap``; ``share`` is the reservation of a claim. ``overrun`` is spent beyond the cap. The budget is
    refilled at ``refilled_ms``, Unix time in milliseconds; 0 is never, or not before the first reservation.
    """

    whose: str
    name: str
    resource: Resource
    cap: int
    spent: int
    set_aside: int
    share: int
    overrun: int
    is_spent: bool
    refilled_ms: int

    def in_words(self) -> str:
        """Return the spent part of the cap, for operators."""
        return budgets.in_words(self.resource, self.spent + self.overrun, self.cap)


def balances(aggregates: Mapping[str, Aggregate]) -> tuple[Balance, ...]:
    """Return the balances of all limits: those of the fleet, then those of agents and tasks by name."""
    if board.NAME not in aggregates:
        return ()
    entities = aggregates[board.NAME].entities
    others = sorted(ref for ref in entities if ref.startswith("budget:") and ref != budgets.FLEET)
    all_budgets = (entities[ref] for ref in (budgets.FLEET, *others) if ref in entities)
    return tuple(each for entity in all_budgets for each in _balances(entity))


def _balances(entity: Entity[budget.Budget]) -> Iterator[Balance]:
    whose, _, name = entity.ref.removeprefix("budget:").partition("/")
    refilled = entity.find(budget.Refilled.__name__)
    for line in entity.record.lines:
        yield Balance(
            whose,
            name,
            line.resource,
            line.account.cap,
            line.account.spent,
            line.account.reserved,
            line.share,
            line.account.overrun,
            entity.state is budget.State.SPENT and not line.suffices,
            refilled.deadline_ms if refilled is not None and refilled.deadline_ms else 0,
        )
