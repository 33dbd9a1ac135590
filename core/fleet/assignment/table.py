"""The table of an assignment."""

from typing import Any, Final

from lifefold.core.fleet.assignment.model import (
    Asked,
    Assigned,
    Assignment,
    Buried,
    CheckedOut,
    CheckoutFailed,
    Conflicted,
    Dropped,
    Inspected,
    Merged,
    Parked,
    ParkingFailed,
    Prompted,
    Rebriefed,
    Recalled,
    Rejected,
    SessionDied,
    State,
    Verified,
    VerifyTimeoutChanged,
    WorkFailed,
    WorkFinished,
)
from lifefold.core.fleet.assignment.promises import PROMISES
from lifefold.core.fleet.assignment.rules import (
    adopt,
    check_out,
    count,
    differs,
    has_to_ask,
    in_hand,
    inspect,
    is_to_be_proven,
    is_to_be_requeued,
    is_to_be_verified,
    limit_verification,
    merge,
    only_merges,
    only_verifies,
    orphan,
    park,
    rebrief,
    rests,
    take,
    verify,
)
from lifefold.core.kernel import STAY, Machine, does, row

RECALLABLE: Final = (
    State.PREPARING,
    State.WORKING,
    State.ORPHANED,
    State.INSPECTING,
    State.VERIFYING,
    State.PARKING,
)
"""In these what is taken from its owner is dropped; only a merge that has begun is finished."""

HOLDING: Final = (*RECALLABLE, State.MERGING)
"""In these a task is in hand."""

machine: Machine[Any] = Machine(
    "assignment",
    Assignment(),
    about="what a worker does with the task in its hands: prepare, work, verify, park or merge",
    rows=(
        row(State.IDLE, Asked, State.WANTING),
        row(State.WANTING, Assigned, State.MERGING, take, when=only_merges),
        row(State.WANTING, Assigned, State.PREPARING, take),
        row(State.PREPARING, CheckedOut, State.VERIFYING, when=only_verifies),
        row(State.PREPARING, CheckedOut, State.WORKING),
        row(State.PREPARING, CheckoutFailed, State.IDLE),
        row(State.WORKING, Prompted, State.WORKING, count),
        row(State.WORKING, WorkFinished, State.VERIFYING),
        row(State.WORKING, WorkFailed, State.IDLE),
        row(State.WORKING, SessionDied, State.ORPHANED, orphan, when=is_to_be_verified),
        row(State.WORKING, SessionDied, State.IDLE, when=is_to_be_requeued),
        row(State.ORPHANED, Buried, State.INSPECTING),
        row(State.INSPECTING, Inspected, State.VERIFYING, when=differs),
        row(State.INSPECTING, Inspected, State.IDLE),
        row(State.VERIFYING, Verified, State.PARKING, adopt, when=has_to_ask),
        row(State.VERIFYING, Verified, State.MERGING, adopt),
        row(State.VERIFYING, Rejected, State.IDLE),
        row(State.PARKING, Parked, State.IDLE),
        row(State.PARKING, ParkingFailed, State.IDLE),
        row(State.MERGING, Merged, State.IDLE),
        row(State.MERGING, Conflicted, State.IDLE),
        row((State.WANTING, State.PREPARING, State.WORKING), Dropped, State.IDLE),
        row(RECALLABLE, Recalled, State.IDLE, when=in_hand),
        row(HOLDING, Rebriefed, STAY, rebrief, when=is_to_be_proven),
        row(tuple(State), VerifyTimeoutChanged, STAY, limit_verification),
    ),
    during={
        State.PREPARING: does(check_out, last=(CheckedOut, CheckoutFailed)),
        State.INSPECTING: does(inspect, last=Inspected),
        State.VERIFYING: does(verify, last=(Verified, Rejected)),
        State.PARKING: does(park, last=(Parked, ParkingFailed)),
        State.MERGING: does(merge, last=(Merged, Conflicted)),
    },
    properties=PROMISES,
    rests=rests,
)
