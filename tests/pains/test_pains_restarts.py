"""Restart storms, and limits or pauses without effect: a mutant and a short trace of each."""

from typing import Any, Final

from lifefold.core.kernel import Machine, Step, after, does, replace
from lifefold.core.lifecycles import process, session
from lifefold.core.lifecycles import process_actions as do
from lifefold.core.lifecycles.process import Comeback, Limits, Process
from lifefold.effects import ServeTriggers
from mutated import lasting, shipped, way_to
from property_checks import changed

SAID: Final = (process.StartRequested,)
LIMITS: Final = Limits(restart_policy="on_failure", max_restarts=2, max_consecutive_failures=1)


def restarting(limits: Limits = LIMITS) -> Machine[Any]:
    """Return the shipped process with a restart policy, and nothing else that it does by itself."""
    return process.machine.starting(Process(limits=limits))


def test_a_crash_loop_has_a_pause_before_every_round() -> None:
    """gastownhall/gastown#649: a process that ends at once is restarted at once."""
    again = changed(
        shipped("session"), "row(Running, SessionExited(Error), CoolingDown)", target=session.State.BUILDING_PROMPT
    )
    trace = way_to("an error is followed by a pause or the end", again)
    assert "SessionExited(outcome=Error" in trace[-1]
    assert "Running → BuildingPrompt" in trace[-1]


def _always_the_same(s: session.Session) -> int:
    return s.limits.backoff_base_ms


def test_pauses_grow_with_every_error() -> None:
    """block/buzz#5327: a low cap stops pauses from growing, and a storm of attempts costs tokens."""
    during: dict[Any, Any] = {session.State.COOLING_DOWN: after(_always_the_same, session.BackoffElapsed)}
    trace = way_to(
        "a pause is as long as the errors before it require", shipped("session-windowed").with_rows(during=during)
    )
    assert [line for line in trace if "Spawning → CoolingDown  [StartTimer]" in line][1:] == [trace[-1]]


def _first(p: Process) -> int | None:
    return p.limits.restart_backoff_ms if p.comeback is Comeback.RESTART else None


def test_the_second_pause_is_longer_than_the_first() -> None:
    """Supervisor/supervisor#487, #323: all restarts have the same pause."""
    during: dict[Any, Any] = {process.DOWN: after(_first, process.BackoffElapsed)}
    trace = way_to("a restart has its pause before it", restarting().with_rows(during=during), said=SAID)
    assert [line for line in trace if "→ failed" in line][1:] == [trace[-1]]


def _without_cap(p: Process) -> int | None:
    return p.limits.restart_backoff_ms * 2**p.restart_count if p.comeback is Comeback.RESTART else None


def test_no_pause_is_longer_than_its_cap() -> None:
    """Supervisor/supervisor#1528: pauses have no upper bound."""
    at_most_a_second = replace(LIMITS, restart_backoff_cap_ms=1_000)
    during: dict[Any, Any] = {process.DOWN: after(_without_cap, process.BackoffElapsed)}
    trace = way_to(
        "a restart has its pause before it", restarting(at_most_a_second).with_rows(during=during), said=SAID
    )
    assert [line for line in trace if "→ failed" in line][1:] == [trace[-1]]


def _new_life(p: Process, e: Any) -> Step[Process, Any]:
    return do.begin(replace(p, restart_count=0), e)


def test_a_start_that_works_gives_no_new_restarts() -> None:
    """Supervisor/supervisor#1285: a process that starts and then ends is restarted for ever, despite the limit."""
    renewed = changed(restarting(), "StartSucceeded", action=_new_life)
    trace = way_to("every restart counts until a run succeeds", renewed, said=SAID)
    assert "StartProcess says StartSucceeded()   starting → running" in trace[-1]


def _forgets_all(a: session.Session, _e: session.SessionStarted) -> Step[session.Session, Any]:
    return Step(replace(a, consecutive_errors=0, total_errors=0))


def test_a_respawn_that_works_does_not_clear_all_errors() -> None:
    """bobmatnyc/trusty-tools#3631: each successful respawn clears the counter, so the restarts never stop."""
    forgiving = changed(shipped("session-prompt-failures"), "SessionStarted(seq)", action=_forgets_all)
    trace = way_to("an error counts once among all", forgiving)
    assert "Spawning → Running" in trace[-1]


def _cleared(p: Process, e: Any) -> Step[Process, Any]:
    return Step(replace(do.come_back(p, e).record, restart_count=0))


def test_a_restart_does_not_clear_its_own_count() -> None:
    """hivecommons/hive#6578: the cap is cleared by the restart that it counts."""
    cleared = changed(restarting(), "BackoffElapsed, starting when comes_back", action=_cleared)
    trace = way_to("every restart counts until a run succeeds", cleared, said=SAID)
    assert "BackoffElapsed elapses" in trace[-1]
    assert "failed → starting" in trace[-1]


def _still_restarting(p: Process, e: Any) -> Step[Process, Any]:
    done = do.begin(p, e)
    return Step(replace(done.record, comeback=p.comeback), done.effects)


def test_a_pending_restart_ends_when_the_process_is_up() -> None:
    """WallyDoodlez/SquidSquad#12293: the intent to restart survives the restart, and ends a healthy process."""
    still = changed(restarting(), "StartSucceeded", action=_still_restarting)
    trace = way_to("comes back from below", still, said=SAID)
    assert "starting → running" in trace[-1]


def _unpaused(p: Process) -> ServeTriggers:
    return ServeTriggers(p.limits.concurrency, p.limits.queue_limit, paused=False)


def test_a_pause_binds_on_every_way_to_work() -> None:
    """ever-works/ever-works#2459: one of four ways to begin work checks for a pause."""
    unpaused = does(_unpaused, yields=process.machine.spans["ServeTriggers"].during.yields)
    unbound = lasting(restarting(), "ServeTriggers", process.SERVING, part=unpaused)
    trace = way_to("triggers are served paused if the process is", unbound, said=(*SAID, process.SuspendRequested))
    assert any("SuspendRequested" in line for line in trace)
    assert "starting → running" in trace[-1]
