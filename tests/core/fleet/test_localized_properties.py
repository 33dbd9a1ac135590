"""Every shipped machine has its properties in the states near its initial one; certificates cover the others."""

import pytest

from lifefold.core.kernel import replace
from lifefold.interpreters import views
from lifefold.interpreters.check import check
from lifefold.interpreters.targets.check_targets import named

NEAREST_STATES = 200


@pytest.mark.parametrize("name", views.machines())
def test_a_shipped_machine_has_its_properties_in_the_nearest_states(name: str) -> None:
    """From the record of its check configuration; for a small machine these are all states."""
    target = named(name)
    report = check(target.subject, bounds=replace(target.bounds, states=NEAREST_STATES, compared=0))
    assert report.broken() == (), report
