"""An account of a model service: it is open, rests after a limit, or is tried again with one session.

Agents of one account share its limits, so they rest together. A limit is no error: it is a time to wait for. The
account rests until the end that a session has reported, the latest of several. If no session has told an end, or only
one that is past, the rest is a guess. It grows with every limit in a row, and ends with a *probe*: one session alone is
let through. Its success opens the account; another limit lets it rest longer. A told end needs no probe.

Each claim of a task is admitted by the account of its worker, before the worker learns of the task. ``users`` are the
agents that were admitted and have not reported back. An agent that was admitted before a limit may still work.
"""

from typing import Any, ClassVar, Final, Never, Self

from lifefold.core.kernel import (
    STAY,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    accepts,
    after,
    always,
    always_step,
    anywhere,
    replace,
    row,
    sometimes,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import is_transient, keeps_time
from lifefold.core.lifecycles.session_model import FAR_MS
from lifefold.core.policy.backoff import exponential_ms

REF: Final = "account"

LEAST_MS: Final = 10_000
"""The shortest rest in milliseconds, so that an end which is always near starts no session every moment."""

LONGEST_MS: Final = 8 * 86_400_000
"""The longest rest that is believed: limits of a week, and a day."""

FIRST_MS: Final = 60_000
"""The rest after the first limit without a told end."""

MOST_MS: Final = 3_600_000
"""The longest rest after a limit without a told end."""

MOST_LIMITS: Final = 7
"""More limits in a row change nothing: the rest is the longest one."""

FIRST: Final = "A1"
"""An agent of the account, for examples."""


class State(AnyLifecycleState):
    """The three states of an account."""

    OPEN = "Open"
    RESTING = "Resting"
    PROBING = "Probing"


class LimitReported(Event, frozen=True):
    """A session of the account has met a limit that ends at ``until_ms``, in ``rest_ms``; None: no session can tell.

    ``until_ms`` is in Unix milliseconds, as the session has told it; it only tells which of two ends is the later one.
    """

    opaque: ClassVar[tuple[str, ...]] = ("scope", "message")

    rest_ms: int | None = None
    until_ms: int = 0
    scope: str = ""
    message: str = ""

    @classmethod
    def examples(cls) -> tuple["LimitReported", ...]:
        """Return a limit without a known end, one that is soon over, and one for as long as is believed."""
        return cls(), cls(LEAST_MS, 1), cls(LONGEST_MS, FAR_MS)


class RestOver(Event, frozen=True):
    """The rest of the account is over."""


class RestLifted(Event, frozen=True):
    """An operator ends the rest: the account is tried again with one session."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class _OfAgent(Event, frozen=True):
    """Base of the reports about an agent of the account."""

    agent: str = FIRST

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return two agents."""
        return cls(), cls("A2")


class Admitted(_OfAgent, frozen=True):
    """An agent of the account begins with a task."""


class Succeeded(_OfAgent, frozen=True):
    """A session of the agent has completed."""


class Left(_OfAgent, frozen=True):
    """The agent has no task any more."""


class GaveUp(_OfAgent, frozen=True):
    """The agent with the probe has no task any more, and its session has not completed."""


class Account(Record, frozen=True):
    """An account: how long it rests, and how many limits in a row had no told end.

    ``until_ms`` is the told end of the rest in Unix milliseconds; 0 if no session has told it. ``scope`` and
    ``message`` are the agent's words of the limit. ``probe`` is the agent with the one session of a PROBING account;
    empty for none.
    """

    opaque: ClassVar[tuple[str, ...]] = ("rest_ms", "limits", "scope", "message")

    state: State = State.OPEN
    rest_ms: int = 0
    until_ms: int = 0
    limits: int = 0
    scope: str = ""
    message: str = ""
    probe: str = ""
    users: tuple[str, ...] = ()

    def normal_form(self) -> "Account":
        """Return the record without the times of a rest that is over."""
        if self.state is State.RESTING:
            return self
        return replace(self, rest_ms=0, until_ms=0)


def reported_rest_ms(until_ms: int | None, now_ms: int) -> int | None:
    """Return the rest until a told end, within its bounds; None without an end, or for one that is past."""
    if until_ms is None or until_ms <= now_ms:
        return None
    return min(max(until_ms - now_ms, LEAST_MS), LONGEST_MS)


# Guards


def is_later(a: Account, e: LimitReported) -> bool:
    """The session has told a later end, or the first one."""
    return e.rest_ms is not None and e.until_ms > a.until_ms


def has_reported_end(a: Account, _e: RestOver) -> bool:
    """A session has told the end of the rest."""
    return a.until_ms > 0


def is_free(a: Account, _e: Admitted) -> bool:
    """No agent has the probe."""
    return not a.probe


def is_the_probe(a: Account, e: Succeeded | GaveUp) -> bool:
    """The agent has the probe."""
    return a.probe == e.agent


def is_a_user(a: Account, e: Left) -> bool:
    """The agent was admitted, and has not the probe."""
    return e.agent in a.users and a.probe != e.agent


# Actions


def rest(a: Account, e: LimitReported) -> Step[Account, Never]:
    """Record the limit, and how long the account rests: as told, or by the number of limits in a row."""
    noted = replace(a, scope=e.scope, message=e.message, probe="")
    if e.rest_ms is not None:
        return Step(replace(noted, rest_ms=e.rest_ms, until_ms=e.until_ms, limits=0))
    limits = min(a.limits + 1, MOST_LIMITS)
    return Step(replace(noted, rest_ms=guessed_rest_ms(limits), until_ms=0, limits=limits))


def open_up(a: Account, _e: Event) -> Step[Account, Never]:
    """Forget the limits in a row, and the probe."""
    return Step(replace(a, limits=0, probe="", scope="", message=""))


def admit(a: Account, e: Admitted) -> Step[Account, Never]:
    """Record the agent."""
    return Step(replace(a, users=tuple(sorted({*a.users, e.agent}))))


def try_with(a: Account, e: Admitted) -> Step[Account, Never]:
    """Record the agent, and that it has the probe."""
    return Step(replace(admit(a, e).record, probe=e.agent))


def let_go(a: Account, e: Left | GaveUp) -> Step[Account, Never]:
    """Forget the agent."""
    return Step(replace(a, users=tuple(each for each in a.users if each != e.agent)))


def end_probe(a: Account, e: GaveUp) -> Step[Account, Never]:
    """Forget the agent; another one may have the probe."""
    return Step(replace(let_go(a, e).record, probe=""))


# Timers


def guessed_rest_ms(limits: int) -> int:
    """Return the rest after so many limits in a row without a told end, in milliseconds."""
    return exponential_ms(limits, base_ms=FIRST_MS, cap_ms=MOST_MS)


def rest_ms(a: Account) -> int:
    """Return how long the account rests, in milliseconds."""
    return a.rest_ms


# Properties


def rests_until_its_time(step: Transition) -> bool:
    """Only time, or an operator, ends a rest."""
    rested = step.before is not None and step.before.state is State.RESTING and step.entered is not None
    return not rested or isinstance(step.event, RestOver | RestLifted)


def rests_until_the_reported_end(step: Transition) -> bool:
    """A told end is kept. Without one the rest grows with every limit in a row.

    A report during a rest counts only if it tells a later end.
    """
    if not isinstance(step.event, LimitReported):
        return True
    was, now, reported_ms = step.was, step.after.record, step.event.rest_ms
    if step.was.state is State.RESTING and (reported_ms is None or step.event.until_ms <= was.until_ms):
        return bool(now == was)
    if reported_ms is not None:
        return bool((now.rest_ms, now.limits) == (reported_ms, 0))
    in_a_row = min(was.limits + 1, MOST_LIMITS)
    return bool((now.rest_ms, now.limits) == (guessed_rest_ms(in_a_row), in_a_row))


def opens_after_a_reported_end(step: Transition) -> bool:
    """A told end opens the account, and a guess lets it be tried. Agents come and go without changing its state."""
    match step.event:
        case RestOver():
            return step.entered is (State.OPEN if step.was.until_ms else State.PROBING)
        case RestLifted():
            return step.entered is State.PROBING
        case Admitted() | Left() | GaveUp():
            return step.entered is None
        case _:
            return True


def has_the_latest_end(step: Transition) -> bool:
    """Of several told ends the latest counts."""
    if not isinstance(step.event, LimitReported) or step.event.rest_ms is None:
        return True
    known_ms = step.was.until_ms if step.was.state is State.RESTING else 0
    return bool(step.after.record.until_ms == max(known_ms, step.event.until_ms))


def tries_with_one(step: Transition) -> bool:
    """A probing account admits one agent, until that one has left or a limit is met; its success opens the account."""
    if step.was.state is not State.PROBING:
        return True
    was, now = step.was, step.after.record
    match step.event:
        case Admitted(agent=agent):
            return not was.probe and bool(now.probe == agent)
        case Succeeded(agent=agent):
            return bool(was.probe == agent) and step.entered is State.OPEN
        case GaveUp(agent=agent):
            return bool(was.probe == agent) and not now.probe
        case Left(agent=agent):
            return bool(was.probe == now.probe != agent)
        case _:
            return step.entered is State.RESTING


def knows_its_users(step: Transition) -> bool:
    """The users are the agents that were admitted and have not left."""
    was: frozenset[str] = frozenset(step.before.record.users if step.before else step.after.record.users)
    match step.event:
        case Admitted(agent=agent):
            expected = was | {agent}
        case Left(agent=agent) | GaveUp(agent=agent):
            expected = was - {agent}
        case _:
            expected = was
    return frozenset(step.after.record.users) == expected


def is_consistent(a: Account) -> bool:
    """Only a probing account has a probe, one of its users; an open account counts no limits."""
    if a.probe:
        return a.state is State.PROBING and a.probe in a.users
    return a.state is not State.OPEN or not a.limits


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step(
        "nothing begins on an account before its time",
        lambda step: step.was.state is not State.RESTING or not isinstance(step.event, Admitted),
        on=Event,
    ),
    always_step("only time or an operator ends the rest of an account", rests_until_its_time),
    always_step(
        "an account rests as long as it was told, or longer with every limit in a row",
        rests_until_the_reported_end,
        on=Event,
    ),
    always_step(
        "a told end opens an account, and a guess lets it be tried again", opens_after_a_reported_end, on=Event
    ),
    always_step("of several told ends of a limit the latest counts", has_the_latest_end, on=Event),
    always_step("a probing account has one session at most", tries_with_one, on=Event),
    always_step("an account knows the agents that use it", knows_its_users),
    always("a probe is a session of a probing account", lambda e: is_consistent(e.record)),
    *keeps_time({RestOver: ((State.RESTING,), rest_ms)}),
    accepts("a limit is accepted at any time", {tuple(State): (LimitReported,)}),
    accepts("an open account admits its agents", {State.OPEN: (Admitted,)}),
    accepts(
        "a probing account without a probe admits an agent",
        {State.PROBING: (Admitted,)},
        when=lambda e: not e.record.probe,
    ),
    accepts(
        "an agent can leave at any time",
        {tuple(State): (Left,)},
        when=lambda e: FIRST in e.record.users and e.record.probe != FIRST,
    ),
    accepts("the agent with the probe can leave", {State.PROBING: (GaveUp,)}, when=lambda e: e.record.probe == FIRST),
    accepts(
        "the success of the agent with the probe is accepted",
        {State.PROBING: (Succeeded,)},
        when=lambda e: e.record.probe == FIRST,
    ),
    accepts("an operator can end a rest", {State.RESTING: (RestLifted,)}),
    is_transient(State.RESTING),
    sometimes("an account is tried again with one session", lambda e: bool(e.record.probe)),
)

ADMITS_MORE: Final = (RestOver, RestLifted, Succeeded, GaveUp)
"""After these events an account may admit an agent that it did not admit before."""

machine: Machine[Any] = Machine(
    REF,
    Account(),
    about="an account of a model service: open, resting after a limit, or tried again with one session",
    rows=(
        row((State.OPEN, State.PROBING), LimitReported, State.RESTING, rest),
        row(State.RESTING, LimitReported, State.RESTING, rest, when=is_later, restart=True),
        row(State.RESTING, LimitReported, STAY),
        row(State.RESTING, RestOver, State.OPEN, open_up, when=has_reported_end),
        row(State.RESTING, RestOver, State.PROBING),
        row(State.RESTING, RestLifted, State.PROBING),
        row(State.OPEN, Admitted, STAY, admit),
        row(State.PROBING, Admitted, STAY, try_with, when=is_free),
        row(State.PROBING, Succeeded, State.OPEN, open_up, when=is_the_probe),
        row(State.PROBING, GaveUp, STAY, end_probe, when=is_the_probe),
        row(tuple(State), Left, STAY, let_go, when=is_a_user),
    ),
    during={State.RESTING: after(rest_ms, RestOver)},
    properties=PROPERTIES,
    rests=anywhere,
)
