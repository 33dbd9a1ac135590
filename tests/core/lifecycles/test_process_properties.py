"""The properties of a process hold in every reachable state, and detect mistakes in its rules."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from lifefold.core.kernel import Machine, Step, replace
from lifefold.core.lifecycles import process
from lifefold.core.lifecycles.process import Comeback, Limits, Process, State, SuspendReason
from lifefold.effects import NotifyProcess, ResumeTriggers
from property_checks import breaks, broken_by_birth, changed, keeps, without_timer

CERTIFICATES: Final = Path(__file__).parents[3] / "docs" / "certificates"

EVER: Final = Limits(
    restart_policy="always", max_restarts=1, max_consecutive_failures=2, idle_timeout_ms=1, max_lifetime_ms=1
)
RESTARTING: Final = replace(EVER, restart_policy="on_failure", idle_timeout_ms=0, max_lifetime_ms=0)


def of(limits: Limits, machine: Machine[Any] = process.machine) -> Machine[Any]:
    """Return a machine with these limits."""
    return machine.starting(Process(limits=limits))


def is_not_to_be_suspended(p: Process) -> bool:
    """No suspension is planned."""
    return p.suspended_for is None


def without(machine: Machine[Any], *words: str) -> list[str]:
    """Return the unused parts of a machine, without those with these words."""
    return [line for line in keeps(machine) if not any(word in line for word in words)]


@pytest.mark.parametrize("name", ["process", "process-promptise-1.5"])
def test_the_certificate_of_a_process_that_does_everything_by_itself_uses_every_row_and_guard(name: str) -> None:
    """It idles, ages, fails and restarts (C3: also in the profile of later releases); campaigns repeat the search."""
    assert json.loads((CERTIFICATES / f"{name}.json").read_text())["unused"] == []


def test_a_process_as_it_is_without_any_limits_set_has_its_properties_in_every_state() -> None:
    """It never restarts, idles or ages by itself: those rows are not used, and all others are."""
    unused = ("SuspendRequested", "ResumeRequested", "BackoffElapsed", "LifetimeElapsed", "IdleElapsed")
    assert without(process.machine, *unused) == []


@pytest.mark.parametrize("machine", [process.by_hand, process.by_hand_1_5], ids=lambda machine: machine.name)
def test_a_process_by_hand_has_its_properties_in_every_state(machine: Machine[Any]) -> None:
    """It moves on request only."""
    assert without(machine) == []


def forgets_the_stop(p: Process, e: Any) -> Step[Process, Any]:
    """Stop without keeping the intent."""
    return Step(replace(p, stop_reason=e.reason, comeback=Comeback.NONE))


def comes_back_anyway(p: Process, _e: Any) -> Step[Process, Any]:
    """Plan a restart whatever was asked for."""
    return Step(replace(p, comeback=Comeback.RESTART), (NotifyProcess("failed", "", p.restart_count),))


def one_too_many(p: Process, _e: Any) -> Step[Process, Any]:
    """Plan a restart beyond the limit."""
    more = p.limits.restart_policy != "never" and not p.stop_requested and p.restart_count <= p.limits.max_restarts
    back = Comeback.RESTART if more else Comeback.NONE
    return Step(replace(p, comeback=back), (NotifyProcess("failed", "", p.restart_count),))


def counts_nothing(p: Process, _e: Any) -> Step[Process, Any]:
    """Come back without counting it."""
    return Step(replace(p, consecutive_failures=0))


def clears_everything(p: Process, _e: Any) -> Step[Process, Any]:
    """Come up as if there had been no failure."""
    return Step(replace(p, restart_count=0, comeback=Comeback.NONE), (NotifyProcess("started"),))


def stays(p: Process, _e: Any) -> Step[Process, Any]:
    """Do nothing."""
    return Step(p)


def pauses_silently(p: Process, _e: Any) -> Step[Process, Any]:
    """Plan a suspension and go on with the triggers."""
    return Step(replace(p, suspended_for=SuspendReason.MANUAL))


def any_reason(p: Process, e: Any) -> Step[Process, Any]:
    """Let the last reason win."""
    return Step(replace(p, suspended_for=e.why))


def stays_paused(p: Process, _e: Any) -> Step[Process, Any]:
    """Go on, and leave the reason."""
    return Step(p, (ResumeTriggers(), NotifyProcess("resumed")))


def two_more(p: Process, _e: Any) -> bool:
    """Fail one run too late."""
    return p.consecutive_failures >= p.limits.max_consecutive_failures


def unless_asked_to_stop(p: Process, _e: Any) -> bool:
    """Come back although nothing is planned."""
    return not p.stop_requested


M: Final = of(replace(RESTARTING, max_consecutive_failures=1))
MISTAKES: Final[dict[str, tuple[Machine[Any], str]]] = {
    "a stop is forgotten at once": (
        changed(M, "row(awaiting | running | starting | suspended, StopRequested", action=forgets_the_stop),
        "a stop stands until a start is requested",
    ),
    "a stop is not taken while the process starts": (
        M.without_rows((State.STARTING, process.StopRequested)),
        "a stop is accepted in every state",
    ),
    "a stop does not cancel the restart": (
        changed(M, "Crashed", action=comes_back_anyway),
        "stays stopped",
    ),
    "a crash plans one restart too many": (
        changed(M, "Crashed", action=one_too_many),
        "a failed process restarts as the policy says, or reports that it does not",
    ),
    "a restart does not count": (
        changed(M, "BackoffElapsed, starting", action=counts_nothing),
        "every restart counts until a run succeeds",
    ),
    "a start that works clears the count": (
        changed(M, "row(starting, StartSucceeded", action=clears_everything),
        "every restart counts until a run succeeds",
    ),
    "a run that succeeds clears nothing": (
        changed(M, "RunSucceeded", action=stays),
        "every restart counts until a run succeeds",
    ),
    "who is not to come back does": (
        changed(M, "BackoffElapsed, starting", when=unless_asked_to_stop),
        "a process starts on request or for a restart only",
    ),
    "nothing ends the drain": (
        without_timer(M, "DrainElapsed"),
        "stopping does not last for ever",
    ),
    "nothing ends the pause before a restart": (
        without_timer(M, "BackoffElapsed"),
        "a restart has its pause before it",
    ),
    "nothing ends the way to a suspension": (
        without_timer(process.machine, "SuspendDue"),
        "a running process with a planned suspension is suspended",
    ),
    "every trigger wakes": (
        changed(M, "row(suspended, TriggerArrived", when=None),
        "a trigger ends no suspension but that for idleness",
    ),
    "what waits is suspended without a pause of its triggers": (
        changed(M, "row(awaiting, SuspendRequested", action=pauses_silently),
        "a pause binds as soon as it stands",
    ),
    "idleness replaces what was asked for": (
        changed(M, "row(starting | suspended, SuspendRequested", action=any_reason),
        "idleness replaces no other reason",
    ),
    "a resumption leaves the reason": (
        changed(M, "row(suspended, ResumeRequested", action=stays_paused),
        "a pause binds as soon as it stands",
    ),
    "a process fails one run too late": (
        changed(M, "RunFailed(reason), failed", when=two_more),
        "fails within the limit",
    ),
    "a failure is not told": (
        changed(M, "row(awaiting | running | stopping | suspended, Crashed", action=stays),
        "the state of the process is reported",
    ),
}


def test_what_is_declared_of_every_step_holds_of_the_first() -> None:
    """The creation has no state before it, and satisfies the transition properties, too."""
    assert broken_by_birth(process.machine) == []


@pytest.mark.no_cover
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_rules_of_a_process_breaks_a_property(mistake: str) -> None:
    """The named property is among the broken ones."""
    machine, prop = MISTAKES[mistake]
    about_pauses = any(word in prop for word in ("pause binds", "suspended", "idleness", "wakes"))
    assert breaks(machine, prop, within={} if about_pauses else {machine.name: is_not_to_be_suspended})
