"""What should be heard and is refused breaks a property, although nothing that is done is wrong."""

from typing import Any, Final

import pytest

from declared import rebuilt
from lifefold.core.kernel import Machine
from lifefold.interpreters.targets.check_targets import named
from mutation_campaign import first_broken
from property_ground import changed

ROWS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "status": {"the end of a task that an agent has is heard": ("row(RUNNING, TaskEnded",)},
    "mailbox": {
        "messages that are kept can be read, and delivered": (
            "row(Holding, MessagesTaken",
            "row(Holding, MessagesDelivered, Holding",
        )
    },
    "task-governed": {
        "what is reported of a claim that is over is taken, to be kept": ("row(ANY, Completed", "row(ANY, Blocked"),
        "a lost subtask can block whoever waits for it": ("row(WAITING_FOR_SUBTASKS, Blocked",),
    },
    "runtime-sw4rm-agentpy": {
        "whoever wants an agent to yield is heard, wherever it is": ("PreemptionRequested", "PreemptionForced"),
        "work that is not to be interrupted can begin wherever it is": ("SectionEntered",),
        "it can end wherever the agent is then": ("SectionLeft",),
        "who fails at his work, at ending or at recovering can say so": (
            "row(RUNNING, Fail(",
            "row(RECOVERING, Fail(",
            "row(RECOVERING, FailRecovery(",
        ),
        "what the document draws can be said of an agent": ("row(RUNNING, Shutdown", "row(WAITING_RESOURCES, Run"),
        "a deadline that is due is not missed": ("row(RUNNING, DeadlinePassed, (same)",),
    },
    "runtime": {"who recovers can be told to end": ("row(RECOVERING, Shutdown",)},
    "runtime-supervised": {"nobody has to wait for that pause": ("row(FAILED, Recover,",)},
    "process": {
        "what comes of serving triggers is heard, also when there is nothing to be done": (
            "row(awaiting | running | suspended, QueueEmptied",
            "RunSucceeded",
        ),
        "who is not up can be started": ("StartRequested",),
        "a stop can be asked for in every state": ("row(failed | stopped | stopping, StopRequested",),
        "who is up, or will be, can be suspended": ("row(starting | suspended, SuspendRequested",),
        "a suspension can be ended": ("row(starting, ResumeRequested",),
    },
    "lease": {
        "what is free can be reserved": ("Reserve(",),
        "what work has cost can be said, also when the lease is over": ("row(ANY, Settle",),
        "what is not needed can be given back, also then": ("row(ANY, Refund",),
        "a lease pays, is closed and is taken back as long as it is open": ("Charge(amount_microusd), (same)", "Close"),
        "an active lease can be granted more": ("AddBudget",),
        "an expired lease can be refreshed with more": ("Refresh",),
        "and with nothing, as long as something is left of it": ("Refresh",),
    },
}
"""By lifecycle and property: rows, each of which it is broken without."""

CASES: Final = [(name, words, prop) for name, of in ROWS.items() for prop, rows in of.items() for words in rows]


def never(_record: Any, _event: Any) -> bool:
    """Take nothing."""
    return False


@pytest.mark.no_cover
@pytest.mark.parametrize(("name", "words", "promise"), CASES)
def test_what_is_not_heard_breaks_a_property(name: str, words: str, prop: str) -> None:
    """Looked at within the bounds that the lifecycle is shipped with, the rows with these words taking nothing."""
    target = named(name)
    assert isinstance(target.subject, Machine)
    asked = tuple(each for each in target.subject.properties if each.name == prop)
    only = rebuilt(target.subject, properties=asked, invariants=())
    assert first_broken(changed(only, words, when=never), target.bounds) == prop
