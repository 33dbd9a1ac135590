"""Whether a fleet is over, as its board has it."""

from lifefold.core.fleet import doors, duty
from lifefold.core.fleet.work import work_of
from lifefold.core.kernel import Aggregate


def finished(board: Aggregate) -> bool:
    """Nothing is left to do and no more will come, or nobody is left to do it; where there never was, no service."""
    work = work_of(board)
    if work.unsettled == 0 and not doors.are_open(board):
        return True
    return work.present == 0 and not duty.is_kept(board)
