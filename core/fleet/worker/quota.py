"""What a worker knows of its account: it is open, or it rests. The worker begins no session while it rests.

The board decides about accounts (``dispatch.accounts``) and tells the workers. A worker reports each limit that its
session meets, before it gives its task back. The task was not tried in vain: no retry is counted, and an agent of
another account can take it. A session that goes on meanwhile may end; its worker begins no other one before the account
is open. It gives its task back instead.
"""

from collections.abc import Iterator
from typing import Any, Final, Never

from lifefold.core.fleet.board import account
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.kernel import (
    STAY,
    Aggregate,
    Dispatch,
    Event,
    Machine,
    Property,
    Record,
    Rule,
    Step,
    Transition,
    accepts,
    always,
    always_step,
    anywhere,
    replace,
    row,
    rule,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.property_forms import exits_on, leads_where
from lifefold.core.lifecycles.session_limits import LimitReached, limit_of
from lifefold.effects import Tell

REF: Final = "quota"


class State(AnyLifecycleState):
    """The two states of an account, as its workers know them."""

    OPEN = "Open"
    RESTING = "Resting"


class AccountRests(Event, frozen=True):
    """The account rests, or is tried again with a session of another worker."""


class AccountOpens(Event, frozen=True):
    """The account is open, at least for this worker."""


class LimitMet(Event, frozen=True):
    """A session of the worker has met a limit: the account rests, before the board has said so."""


class SessionBegan(Event, frozen=True):
    """A session of the worker begins."""


class SessionOver(Event, frozen=True):
    """The session of the worker is over."""


class Quota(Record, frozen=True):
    """What the worker knows of its account. ``lives``: a session has begun while the account was open."""

    state: State = State.OPEN
    lives: bool = False


def begin(q: Quota, _e: SessionBegan) -> Step[Quota, Never]:
    """Record the session."""
    return Step(replace(q, lives=True))


def finish(q: Quota, _e: SessionOver) -> Step[Quota, Never]:
    """Clear the session."""
    return Step(replace(q, lives=False))


def begins_on_an_open_account(step: Transition) -> bool:
    """A session begins only while the account is open, and lives until it is over."""
    was = step.before is not None and step.before.record.lives
    match step.event:
        case SessionBegan():
            return step.after.record.lives and step.after.state is State.OPEN and step.entered is None
        case SessionOver():
            return not step.after.record.lives and step.entered is None
        case _:
            return step.before is None or step.after.record.lives is was


_BOTH: Final = (State.OPEN, State.RESTING)

machine: Machine[Any] = Machine(
    REF,
    Quota(),
    about="what a worker knows of its account: open, or resting after a limit",
    rows=(
        row(_BOTH, AccountRests, State.RESTING),
        row(_BOTH, LimitMet, State.RESTING),
        row(_BOTH, AccountOpens, State.OPEN),
        row(State.OPEN, SessionBegan, STAY, begin),
        row(_BOTH, SessionOver, STAY, finish),
    ),
    properties=(
        always_step("a session begins while its account is open", begins_on_an_open_account),
        leads_where(
            "a worker knows what the board and its sessions have told of its account",
            {AccountRests: (State.RESTING,), LimitMet: (State.RESTING,), AccountOpens: (State.OPEN,)},
        ),
        accepts(
            "news of an account and ends of sessions are accepted", {_BOTH: (AccountRests, AccountOpens, LimitMet)}
        ),
        accepts("the end of a session is accepted", {_BOTH: (SessionOver,)}),
        accepts("a session may begin while the account is open", {State.OPEN: (SessionBegan,)}),
        *exits_on(State.OPEN, AccountRests, LimitMet),
        *exits_on(State.RESTING, AccountOpens),
    ),
    rests=anywhere,
)


# The rules


def counting(agent: Machine[Any]) -> Rule:
    """Return the rule that asks the account for each session of this lifecycle."""

    @rule(on=agent, beside=REF)
    def ask_account(_worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
        """Record the beginning and the end of a session, and its limit, with what is known of its account."""
        if transition.before is None:
            return
        lived = transition.before.state in session.SESSION_LIVES
        lives = transition.after.state in session.SESSION_LIVES
        if lives and not lived:
            yield Dispatch(REF, SessionBegan())
        elif lived and not lives:
            yield Dispatch(REF, SessionOver())
        if limit_of(transition.event) is not None and transition.entered is not None:
            yield Dispatch(REF, LimitMet())

    return ask_account


def reporting(agent: Machine[Any]) -> Rule:
    """Return the rule that reports the limits of this lifecycle's sessions."""

    @rule(on=agent, event=(session.SessionExited, LimitReached), beside=REF)
    def report_limit(worker: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
        """Report a limit to the account, and give the task back: another account may be open.

        The account learns of it first, so that the task is not given to another agent of the account.
        """
        limit = limit_of(transition.event)
        if limit is None or transition.entered is None:
            return
        to = f"{account.REF}:{account_of(worker)}"
        rest_ms = account.reported_rest_ms(limit.until_ms, transition.at_ms)
        until_ms = 0 if rest_ms is None else limit.until_ms or 0
        yield Tell("board", to, account.LimitReported(rest_ms, until_ms, limit.scope, limit.message))
        if is_given_back(worker, transition):
            yield Dispatch("assignment", assignment.Dropped(reason_of(worker, limit.scope)))

    return report_limit


def is_given_back(worker: Aggregate, transition: Transition) -> bool:
    """Tell whether the worker gives its task back because of this limit of its account."""
    has_task = worker.record("assignment").state is assignment.State.WORKING
    return has_task and REF in worker.entities and limit_of(transition.event) is not None


def account_of(worker: Aggregate) -> str:
    """Return the name of a worker's account; empty for none."""
    name: str = worker.record("session").account
    return name


def rests(worker: Aggregate) -> bool:
    """Tell whether the worker knows that its account rests, so that it begins no session."""
    found = worker.entities.get(REF)
    return found is not None and found.state is State.RESTING


def reason_of(worker: Aggregate, scope: str = "") -> str:
    """Return the reason why a worker gives its task back."""
    return f"account {account_of(worker)} rests{f' ({scope} limit)' if scope else ''}"


def every_session_is_asked_for(worker: Aggregate) -> bool:
    """Each session has begun while the worker knew its account to be open."""
    found = worker.entities.get(REF)
    return found is None or found.record.lives is (worker.record("session").state in session.SESSION_LIVES)


def gives_its_task_back(worker: Aggregate) -> bool:
    """A worker whose account rests keeps no task that it would begin a session for."""
    waits = worker.record("session").state is session.State.BUILDING_PROMPT
    works = worker.record("desired_state").state in desired_state.WORKS
    return not (rests(worker) and waits and works) or worker.record("assignment").state is not assignment.State.WORKING


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("a worker whose account rests has given its task back", gives_its_task_back),
    always("no session begins while its worker knows that the account rests", every_session_is_asked_for),
)
