"""Which cases of campaigns a short campaign runs: of each test function the first, and each N-th after it.

``make campaigns-short``, which the continuous integration runs, has N = 4; ``make campaigns`` runs all cases.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from slow_tests import function_of

OPTION = "--campaign-share"


def left_out(cases: Iterable[str], share: int) -> Iterator[str]:
    """Yield the node identifiers of cases that are not in a share of 1 / N of each function."""
    seen = Counter[str]()
    for case in cases:
        if seen[function_of(case)] % share:
            yield case
        seen[function_of(case)] += 1


class CampaignShare:
    """Deselects the cases of campaigns that are not in the share."""

    def __init__(self, share: int) -> None:
        """Take N: all cases are in a share of 1 / 1."""
        self.share = share

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect; a case that is no campaign stays."""
        out = set(left_out((each.nodeid for each in items if each.get_closest_marker("campaign")), self.share))
        config.hook.pytest_deselected(items=[each for each in items if each.nodeid in out])
        items[:] = [each for each in items if each.nodeid not in out]
