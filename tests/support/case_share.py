"""Which cases of long tests the continuous integration runs: of each function the first, and each N-th after it.

``--campaign-share N`` is for tests with the marker ``campaign``, ``--slow-share N`` for those of ``tests/slow.txt``.
``make campaigns`` and ``make test-all`` run all cases.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import pytest

from slow_tests import function_of

SHARED: Final = ("campaign", "slow")
"""The markers whose cases can be shared, each with an option of its name."""


def left_out(cases: Iterable[str], share: int) -> Iterator[str]:
    """Yield the node identifiers of cases that are not in a share of 1 / N of each function."""
    seen = Counter[str]()
    for case in cases:
        if seen[function_of(case)] % share:
            yield case
        seen[function_of(case)] += 1


class CaseShare:
    """Deselects the cases with a marker that are not in the share."""

    def __init__(self, marker: str, share: int) -> None:
        """Take N: all cases are in a share of 1 / 1."""
        self.marker: Final = marker
        self.share: Final = share

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect; a case without the marker stays."""
        out = set(left_out((each.nodeid for each in items if each.get_closest_marker(self.marker)), self.share))
        config.hook.pytest_deselected(items=[each for each in items if each.nodeid in out])
        items[:] = [each for each in items if each.nodeid not in out]
