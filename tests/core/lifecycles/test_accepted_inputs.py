"""An input that should be accepted and is refused breaks a property, although no step is wrong."""

from typing import Any, Final

import pytest

from declared import rebuilt
from lifefold.core.fleet.board import budget
from lifefold.core.kernel import Machine
from lifefold.interpreters.targets.check_targets import named
from mutation_campaign import first_broken
from property_checks import changed

ROWS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "status": {"the end of an agent's task is accepted": ("row(RUNNING, TaskEnded",)},
    "mailbox": {
        "kept messages can be taken by a prompt, and delivered": (
            "row(Holding, MessagesTaken",
            "row(Holding, MessagesDelivered, Holding",
        ),
        "a running session can take the next message that is kept": ("row(Holding, MessagesReached",),
    },
    "stall_detector": {"a silence of the limit after an answer is accepted": ("row(Answered, Silent",)},
    "task-governed": {
        "a report of a claim that is over is accepted, to be kept": ("row(ANY, Completed", "row(ANY, Blocked"),
        "a lost subtask can block its parent": ("row(WAITING_FOR_SUBTASKS, Blocked",),
    },
    "runtime-sw4rm-agentpy": {
        "a section can begin in every state": ("SectionEntered",),
        "a section can end in every state": ("SectionLeft",),
        "a due deadline is accepted": ("row(RUNNING, DeadlinePassed, (same)",),
    },
    "runtime-supervised": {"a recovery is accepted before its pause is over": ("row(FAILED, Recover,",)},
    "process": {
        "a process that is up, or will be, can be suspended": ("row(starting | suspended, SuspendRequested",),
        "a suspension can be ended": ("row(starting, ResumeRequested",),
    },
    "lease": {
        "free money can be reserved": ("Reserve(",),
        "the cost of work can be settled, also when the lease is over": ("row(ANY, Settle",),
        "a reservation can be refunded, also when the lease is over": ("row(ANY, Refund",),
        "an expired lease can be refreshed with more": ("Refresh",),
        "a lease with something left can be refreshed as it is": ("Refresh",),
    },
}
"""By lifecycle and property: rows, each of which is necessary for it."""

CASES: Final = [(name, words, prop) for name, of in ROWS.items() for prop, rows in of.items() for words in rows]


LOWERED: Final = "an operator can raise a budget at any time, and a plan can change its caps"
"""The property of a budget that accepts lower caps also where no share is left with them."""


def never(_record: Any, _event: Any) -> bool:
    """Take nothing."""
    return False


@pytest.mark.no_cover
@pytest.mark.parametrize(("name", "words", "prop"), CASES)
def test_a_refused_input_breaks_a_property(name: str, words: str, prop: str) -> None:
    """Searched within the bounds of the shipped lifecycle, with the rows of these words never taken."""
    target = named(name)
    assert isinstance(target.subject, Machine)
    alone = tuple(each for each in target.subject.properties if each.name == prop)
    only = rebuilt(target.subject, properties=alone, invariants=())
    assert first_broken(changed(only, words, when=never), target.bounds) == prop


@pytest.mark.no_cover
@pytest.mark.parametrize("state", sorted(budget.ADMITS))
def test_caps_are_lowered_also_so_that_no_share_is_left(state: budget.State) -> None:
    """The other row for lower caps accepts only those that leave a share, so this one is necessary."""
    target = named("budget")
    assert isinstance(target.subject, Machine)
    of = tuple(each for each in target.subject.properties if each.name == LOWERED)
    only = rebuilt(target.subject, properties=of, invariants=())

    def elsewhere(share: Any, _event: Any) -> bool:
        return share.state is not state

    lost = changed(only, "row(Full | Held | Open | Spent, Recapped", when=elsewhere)
    assert first_broken(lost, target.bounds) == LOWERED
