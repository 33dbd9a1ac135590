"""The whole fleet under operators, agents, time, messages and crashes, in any order: it keeps all its properties."""

from typing import Any, Final

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from fleet_life import Fleet
from lifefold.core.kernel import System
from lost_rules import without


@pytest.mark.parametrize(
    "course",
    [
        settings(max_examples=25, stateful_step_count=40),
        pytest.param(settings(max_examples=150, stateful_step_count=120), marks=pytest.mark.campaign),
    ],
    ids=["short", "long"],
)
@pytest.mark.cover
def test_a_fleet_has_its_properties_whatever_happens_to_it(course: Any) -> None:
    """Those of every machine, of the board and the workers, of all together; and what people expect of any fleet."""
    run_state_machine_as_test(Fleet, settings=course)


LOST: Final = {
    "obey": "stop and hold take effect at once|a service follows its desired state",
    "hand_over": "no task has two owners, and every owner is at its task",
    "settle": "every holder of a reservation is at a task",
    "match": "no worker waits beside a ready task that it may take",
    "work_ends": "a stopped agent has no work to do",
    "look_again": "no task waits for (a role or a trust level that no worker has|a task that is lost)",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", LOST)
def test_a_fleet_without_a_rule_breaks_a_property_soon(name: str) -> None:
    """Errors of a step are found here. Missing progress is found by simulations, and by the check."""

    class Lost(Fleet):
        subject: System = without(name)

    course = settings(
        max_examples=200, stateful_step_count=60, database=None, derandomize=True, phases=[Phase.generate]
    )
    with pytest.raises(AssertionError, match=LOST[name]):
        run_state_machine_as_test(Lost, settings=course)
