"""Every shipped machine keeps what it promises near its beginning; of what is farther there are certificates."""

import pytest

from lifefold.core.kernel import replace
from lifefold.interpreters import views
from lifefold.interpreters.check import check
from lifefold.interpreters.targets.check_targets import named

NEAREST_STATES = 200


@pytest.mark.parametrize("name", views.machines())
def test_a_shipped_machine_has_its_properties_in_the_nearest_states(name: str) -> None:
    """From where the question about it begins, of which all of a small machine is near."""
    target = named(name)
    report = check(target.subject, bounds=replace(target.bounds, states=NEAREST_STATES, compared=0))
    assert report.broken() == (), report
