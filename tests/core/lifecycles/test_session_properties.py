"""The properties of an agent's session hold in every reachable state, and detect mistakes in its rules."""

from typing import Any, Final

import pytest

from lifefold.core.kernel import InvalidMachine, Machine, Step, after, does, replace
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.property_forms import ACCEPTS
from lifefold.core.lifecycles.session import BackoffElapsed, Limits, Session, State, count_error, run_session
from lifefold.core.lifecycles.session_profiles import in_fleet, prompt_failures
from lifefold.core.lifecycles.session_windowed import WindowedSession, windowed
from property_checks import breaks, broken_by_birth, changed, keeps, never_postponing, without_timer

NEAR: Final = Limits(max_consecutive_errors=2, max_total_errors=3)
SOON: Final = replace(
    NEAR, total_errors_window_ms=2, backoff_base_ms=1, backoff_cap_ms=2, grace_ms=1, max_consecutive_errors=3
)
"""Times that are near each other, for the profile that needs the time."""


def nearest(machine: Machine[Any]) -> Machine[Any]:
    """Return a machine whose thresholds are near."""
    return machine.starting(Session(limits=NEAR))


@pytest.mark.parametrize(
    "machine",
    [
        session.machine,
        session.machine.starting(Session(limits=replace(NEAR, reset_errors_on="success"))),
        session.machine.starting(Session(limits=replace(NEAR, jitter=0.5))),
        nearest(prompt_failures),
        nearest(in_fleet),
        windowed.starting(WindowedSession(limits=SOON)),
    ],
    ids=["session", "reset-on-success", "jitter", "prompt-failures", "in-fleet", "windowed"],
)
def test_a_session_has_its_properties_in_every_state(machine: Machine[Any]) -> None:
    """Every row and guard of the rules is used."""
    assert keeps(machine) == ()


def off_by_one(s: Session, _e: Any) -> bool:
    """Give up after one error too many."""
    consecutive, total = s.counted()
    return consecutive > s.limits.max_consecutive_errors or total > s.limits.max_total_errors


def counts_twice(s: Session, _e: Any) -> Step[Session, Any]:
    """Count an error as two."""
    return Step(replace(s, consecutive_errors=s.consecutive_errors + 2, total_errors=s.total_errors + 2))


def keeps_attempt(s: Session, e: Any) -> Step[Session, Any]:
    """Do not count the attempt."""
    return Step(replace(s, prompt=e.prompt))


def stays(s: Session, _e: Any) -> Step[Session, Any]:
    """Do nothing."""
    return Step(s)


M: Final = nearest(session.machine)
MISTAKES: Final[dict[str, tuple[Machine[Any], str]]] = {
    "a start of another session counts": (
        changed(M, "SessionStarted(seq)", when=None),
        "a start counts for the spawned session",
    ),
    "an error is followed by the next try at once": (
        changed(M, "row(Running, SessionExited(Error), CoolingDown)", target=State.BUILDING_PROMPT),
        "an error is followed by a pause or the end",
    ),
    "an urgent message is not postponed": (
        never_postponing(M),
        "a message waits for a session to start",
    ),
    "the threshold is one error too high": (
        changed(M, "threshold_reached", when=off_by_one),
        "counts within thresholds",
    ),
    "an interrupted session counts as an error": (
        changed(M, "row(Interrupting, SessionExited(*)", action=count_error),
        "an interrupted session is no error",
    ),
    "an error counts twice": (
        changed(M, "row(Spawning, SessionExited(Timeout), CoolingDown)", action=counts_twice),
        "an error counts once",
    ),
    "an error does not count": (
        changed(M, "row(Spawning, SessionExited(Error), CoolingDown)", action=stays),
        "an error counts once",
    ),
    "a success forgets no errors": (
        changed(
            M.starting(Session(limits=replace(NEAR, reset_errors_on="success"))),
            "row(Running, SessionExited(Success)",
            action=stays,
        ),
        "errors in a row are forgotten with a reason only",
    ),
    "a start forgets no errors": (
        changed(M, "SessionStarted(seq)", action=stays),
        "errors in a row are forgotten with a reason only",
    ),
    "nothing ends an interrupted session that does not end": (
        without_timer(M, "GraceExceeded"),
        "Interrupting does not last for ever",
    ),
    "nothing ends the pause": (
        without_timer(M, "BackoffElapsed"),
        "CoolingDown does not last for ever",
    ),
    "the pause is always the same": (
        M.with_rows(during={State.COOLING_DOWN: after(1, BackoffElapsed)}),
        "a pause is as long as the errors before it require",
    ),
    "a stop is not taken while spawning": (
        M.without_rows((State.SPAWNING, session.OperatorStop)),
        "an operator's stop is accepted in every state, and nothing runs after it",
    ),
    "a fatal error is not taken while a session runs": (
        M.without_rows((State.RUNNING, session.FatalError)),
        "a fatal error stops the agent in every state",
    ),
    "a session that runs is not asked to end": (
        changed(M, "row(Interrupting | Running, OperatorStop", action=stays),
        "a running session is asked to end before it is killed",
    ),
    "the agent gives up in silence": (
        changed(M, "row(Running, SessionExited(Error), Stopped", action=count_error),
        "an agent that stops without a request reports the reason",
    ),
    "a fatal error is not told": (
        changed(M, "FatalError", action=stays),
        "an agent that stops without a request reports the reason",
    ),
    "a time-out completes a session": (
        changed(M, "row(Running, SessionExited(Timeout), CoolingDown)", target=State.SESSION_COMPLETE, action=stays),
        "only a success completes a session",
    ),
    "a completed session does not count": (
        changed(M, "row(SessionComplete, WorktreeReady", action=stays),
        "a completed session counts once",
    ),
    "attempts have no numbers": (
        changed(M, "PromptReady(prompt)", action=keeps_attempt),
        "every attempt has its own number",
    ),
    "the process is begun only when it has started": (
        without_timer(M, "RunSession").with_rows(
            during={(State.RUNNING, State.INTERRUPTING): does(run_session, last=session.SessionExited)}
        ),
        "Spawning does not last for ever",
    ),
    "the next worktree stops the agent": (
        changed(M, "row(SessionComplete, WorktreeReady", target=State.STOPPED),
        "a completed session counts once",
    ),
}


def test_what_is_declared_of_every_step_holds_of_the_first() -> None:
    """The creation has no state before it, and satisfies the transition properties, too."""
    assert broken_by_birth(session.machine) == []


@pytest.mark.no_cover
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_rules_of_a_session_breaks_a_property(mistake: str) -> None:
    """The named property is among the broken ones."""
    machine, prop = MISTAKES[mistake]
    assert breaks(machine, prop)


def test_that_a_process_lives_on_while_the_next_prompt_is_written_is_refused_before_it_is_looked_at() -> None:
    """An invalid machine needs no property: an activity needs a row for its last event in each of its states."""
    longer: dict[Any, Any] = {
        (*session.SESSION_LIVES, State.BUILDING_PROMPT): does(run_session, last=session.SessionExited)
    }
    with pytest.raises(InvalidMachine, match="RunSession ends with SessionExited"):
        without_timer(M, "RunSession").with_rows(during=longer)


@pytest.mark.no_cover
@pytest.mark.parametrize("state", [State.INITIALIZING, State.BUILDING_PROMPT, State.RUNNING, State.COOLING_DOWN])
def test_a_stop_that_is_not_taken_in_a_state_breaks_a_property(state: State) -> None:
    """Also in a state that ends by itself soon: a refusal is no step, but ``accepts`` covers it."""
    assert breaks(M.without_rows((state, session.OperatorStop)), ACCEPTS)
