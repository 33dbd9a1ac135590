"""The properties of a cooperative agent hold in every reachable state, and detect mistakes in its rules.

All times are near each other: only their order matters.
"""

from random import Random
from typing import Any, Final

import pytest

from canonical_form import in_form
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Created,
    Envelope,
    Machine,
    Reaction,
    Step,
    possible,
    react,
    replace,
)
from lifefold.core.lifecycles import runtime
from lifefold.core.lifecycles.runtime import (
    Limits,
    Runtime,
    State,
)
from lifefold.core.lifecycles.runtime_profiles import (
    agentpy,
    graceful,
    supervised,
    watched,
)
from lifefold.core.policy.recovery import Retry
from lifefold.interpreters.check import Bounds
from lifefold.interpreters.search.canonical import NOW_MS, Canonical
from property_checks import breaks, broken_by_birth, changed, keeps, without_timer

NEAR: Final = Limits(
    init_timeout_ms=1,
    resource_timeout_ms=1,
    suspend_timeout_ms=1,
    shutdown_timeout_ms=1,
    recovery_timeout_ms=1,
    stuck_after_ms=1,
    preemption_timeout_ms=2,
    preemption_grace_ms=1,
    max_recoveries=1,
    retry=Retry(base_ms=1, cap_ms=1, jitter=0),
)


def nearest(machine: Machine[Any]) -> Machine[Any]:
    """Return a machine with these limits."""
    return machine.starting(Runtime(limits=NEAR))


def has_one_section(a: Runtime) -> bool:
    """Only one section is executed at a time."""
    return len(a.preemption.sections) <= 1


def has_no_section(a: Runtime) -> bool:
    """No section is running."""
    return not a.preemption.sections


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(each, marks=pytest.mark.campaign if each is not runtime.machine else (), id=each.name)
        for each in (runtime.machine, agentpy, graceful, supervised, watched)
    ],
)
def test_an_agent_has_its_properties_in_every_state(machine: Machine[Any]) -> None:
    """Every row and guard of the rules is used."""
    bounds = Bounds(within={machine.name: has_one_section}, compared=50)
    assert keeps(nearest(machine), bounds=bounds) == ()


@pytest.mark.no_cover
@pytest.mark.parametrize("state", [State.SCHEDULED, State.RUNNING, State.WAITING])
def test_what_a_record_leaves_out_in_its_simplest_form_decides_nothing(state: State) -> None:
    """Every next input has the same result for the record and for its normal form; over many walks."""
    name, of = runtime.machine.name, AggregateType("agent", machines=[runtime.machine])
    created = Envelope(name, Created(Runtime(state, limits=NEAR, task_id="T1")), NOW_MS)
    form = Canonical(of)
    for seed in range(5):
        chance = Random(seed)  # noqa: S311 - chance decides where to look, and no secret
        aggregate = _after(of, of.start(name), created)
        for _ in range(12):
            now_ms = aggregate.entities[name].record.at_ms
            envelopes = [each.envelope for each in possible(of, aggregate, now_ms)]
            same = [each.envelope for each in possible(of, in_form(form, aggregate), NOW_MS)]
            assert len(envelopes) == len(same)
            came = [react(of, aggregate, each) for each in envelopes]
            likewise = [react(of, in_form(form, aggregate), each) for each in same]
            for one, other in zip(came, likewise, strict=True):
                assert type(one) is type(other)
                if isinstance(one, Reaction) and isinstance(other, Reaction):
                    assert in_form(form, one.aggregate) == in_form(form, other.aggregate)
            aggregate = chance.choice([each.aggregate for each in came if isinstance(each, Reaction)])


def _after(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Aggregate:
    reaction = react(of, aggregate, envelope)
    assert isinstance(reaction, Reaction)
    return reaction.aggregate


def stays(a: Runtime, _e: Any) -> Step[Runtime, Any]:
    """Do nothing."""
    return Step(a)


def forces_at_once(a: Runtime, _e: Any) -> bool:
    """Fail a signalled agent."""
    return a.preemption.signalled_ms is not None


def signals_at_once(a: Runtime, _e: Any) -> bool:
    """Signal an agent with a request."""
    return a.preemption.requested and a.preemption.signalled_ms is None


def starts_anew(a: Runtime, e: Any) -> Step[Runtime, Any]:
    """Let the timeout count from the end of every section."""
    left = a.preemption.leave(e.key)
    return Step(replace(a, preemption=replace(left, since_ms=a.at_ms if left.requested else None)))


def spares_always(a: Runtime, _e: Any) -> Step[Runtime, Any]:
    """Take every signal back for a wait."""
    asked = a.preemption
    if asked.signalled_ms is not None:
        asked = replace(asked, signalled_ms=None, spared_ms=a.at_ms)
    return Step(replace(a, preemption=asked.answerable(a.at_ms)))


def requests_of_any(a: Runtime, e: Any) -> Step[Runtime, Any]:
    """Keep a request although there is no task."""
    return Step(replace(a, preemption=a.preemption.request(e.reason, a.at_ms)))


def forgets_the_task(a: Runtime, _e: Any) -> Step[Runtime, Any]:
    """Recover as if there had been nothing to do."""
    return Step(a.relieved())


def stays_signalled(a: Runtime, _e: Any) -> bool:
    """Fail no agent."""
    return a.at_ms < 0


M: Final = nearest(runtime.machine)
MISTAKES: Final[dict[str, tuple[Machine[Any], str]]] = {
    "a suspension leaves the request": (
        changed(M, "row(RUNNING, Suspend,", action=stays),
        "an answered request does not come back",
    ),
    "a signalled agent is failed at once": (
        changed(M, "row(RUNNING, DeadlinePassed, FAILED", when=forces_at_once),
        "no agent is failed before its signal and its grace",
    ),
    "an agent with a request is signalled at once": (
        changed(M, "row(RUNNING, DeadlinePassed, (same)", when=signals_at_once),
        "no agent is signalled before it is overdue",
    ),
    "no agent is ever failed": (
        changed(M, "row(RUNNING, DeadlinePassed, FAILED", when=stays_signalled),
        "an agent with a request yields or is failed, unless it is in a section without a limit",
    ),
    "every section restarts the timeout": (
        changed(M, "SectionLeft", action=starts_anew),
        "a running deadline is put off only once, for a wait",
    ),
    "every wait withdraws the signal": (
        changed(M, "row(WAITING, Run", action=spares_always),
        "a running deadline is put off only once, for a wait",
    ),
    "an agent without a task has a request": (
        changed(M, "PreemptionRequested", action=requests_of_any),
        "only an agent with a task has a request",
    ),
    "a lost task is not reported": (
        changed(M, "row(RECOVERING, CompleteRecovery", action=forgets_the_task),
        "a dropped task is completed or reported",
    ),
    "a recovery does not count": (
        changed(M, "row(FAILED, Recover,", action=stays),
        "every recovery counts until a task is completed",
    ),
    "a state that lasted too long is not logged": (
        changed(M, "SuspendTimedOut", action=stays),
        "a state that lasted too long is logged",
    ),
    "a shutdown is not announced": (
        changed(M, "row(RUNNING, Shutdown", action=stays),
        "hooks are called with their transitions",
    ),
    "the budget of recoveries does not bind": (
        changed(nearest(supervised), "row(FAILED, Recover,", when=None),
        "no agent recovers beyond the budget",
    ),
} | {
    f"nothing ends {state}": (without_timer(M, timer), f"{state} does not last for ever")
    for state, timer in {
        State.INITIALIZING: "InitTimedOut",
        State.WAITING_RESOURCES: "ResourceTimedOut",
        State.SUSPENDED: "SuspendTimedOut",
        State.SHUTTING_DOWN: "ShutdownTimedOut",
        State.RECOVERING: "RecoveryTimedOut",
    }.items()
}


def test_what_is_declared_of_every_step_holds_of_the_first() -> None:
    """The creation has no state before it, and satisfies the transition properties, too."""
    assert broken_by_birth(runtime.machine) == []


@pytest.mark.no_cover
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_rules_of_an_agent_breaks_a_property(mistake: str) -> None:
    """The named property is among the broken ones."""
    machine, prop = MISTAKES[mistake]
    near_enough = has_one_section if "section" in mistake else has_no_section
    assert breaks(machine, prop, within={machine.name: near_enough})
