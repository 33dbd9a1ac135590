"""Zombies, ghosts, live agents taken for dead, and stops without effect: a mutant and a short trace of each."""

from typing import Any, Final

from declared import instead, rebuilt
from lifefold.core.kernel import STAY, Step, after, replace, row
from lifefold.core.lifecycles import agent, process, session, status, turn
from lifefold.core.lifecycles import process_actions as do
from lifefold.core.lifecycles.agent import Agent, Heartbeat, State, Watched, silent_ms
from lifefold.core.lifecycles.process import Process, StartRequested, StopRequested
from lifefold.core.lifecycles.session import complete
from lifefold.effects import CallHook
from mutated import ALL, STUCK, lasting, shipped, way_to
from property_checks import changed

WORKING, IDLE, DEAD = State.WORKING, State.IDLE, State.DEAD
FOR_EVER: Final = "     and from then on, for ever:"
PROCESS_ENDED: Final = "a working agent dies by the end of its process only"


def test_a_dead_agent_is_not_at_work() -> None:
    """Untrivial-ai/agent-orchestrator#1187: dead sessions stay "working"."""
    trace = way_to(
        "an agent that is reported dead is dead", instead(shipped("agent-supervised"), row(WORKING, agent.Died, STAY))
    )
    assert "Died(" in trace[-1]
    assert trace[-1].endswith("working")


def test_a_late_probe_ends_no_working_agent() -> None:
    """Untrivial-ai/agent-orchestrator#2501: a stale probe ends a living orchestrator."""
    probed = shipped("agent").with_rows(row(WORKING, agent.SpawnFailed, DEAD, agent.die))
    trace = way_to(PROCESS_ENDED, probed)
    assert "SpawnFailed(" in trace[-1]
    assert "working → dead" in trace[-1]


def test_a_waiting_agent_is_reaped_when_dead() -> None:
    """Untrivial-ai/agent-orchestrator#2745: a process that died while it waited cannot be removed."""
    deaf = shipped("agent-supervised").without_rows((IDLE, agent.Died))
    said = (Heartbeat, agent.TaskFinished, agent.TaskAssigned, agent.Died)
    trace = way_to("a death is accepted in every state", deaf, ALL, said)
    assert FOR_EVER in trace
    assert "working → idle" in trace[-2]
    assert "idle → working" in trace[-1]


def _at_once(_a: Agent) -> int:
    return 0


def test_a_launch_has_its_time() -> None:
    """Untrivial-ai/agent-orchestrator#989: a new session is marked as killed before its process exists."""
    hasty = shipped("agent-supervised").with_rows(during={State.STARTING: after(_at_once, agent.SpawnOverdue)})
    trace = way_to("a launch is given up after its time limit, or on request", hasty, said=())
    assert "SpawnOverdue elapses   starting → dead" in trace[-1]


def test_the_dead_do_not_come_back() -> None:
    """tomcounsell/ai#1113: killed sessions resurrect."""
    back = rebuilt(shipped("agent"), rows=(*agent.machine.rows, row(DEAD, Heartbeat, WORKING, agent.hear)), final=())
    trace = way_to("nothing happens to a dead agent", back)
    assert "dead → working" in trace[-1]


def _is_silent(a: Agent, _e: Watched) -> bool:
    return silent_ms(a, a.at_ms) >= a.limits.silence_ms[-1]


def test_silence_is_no_proof_of_death() -> None:
    """gastownhall/gastown#4468: an agent without signs of life is declared dead, and others with it."""
    taken = shipped("agent").with_rows(row(WORKING, Watched, DEAD, when=_is_silent))
    trace = way_to(PROCESS_ENDED, taken)
    assert "Watched()" in trace[-1]
    assert "working → dead" in trace[-1]


def test_the_dead_are_not_found_again_and_again() -> None:
    """gastownhall/gastown#2893: every patrol finds the zombies of the last one."""
    old = shipped("agent")
    again = rebuilt(old, rows=(*old.rows, row(DEAD, Watched, STAY, agent.watch)))
    trace = way_to("nothing happens to a dead agent", again)
    assert "dead  [EscalateSilence" in trace[-1]


def test_a_session_that_is_said_to_run_is_there() -> None:
    """BloopAI/vibe-kanban#1571: a session is shown as running without a process."""
    old = shipped("session")
    ghost = lasting(old, "RunSession", (session.State.SPAWNING, session.State.INTERRUPTING))
    trace = way_to("the session of this attempt runs in its states, and no other", ghost)
    assert "Spawning → Running  [End" in trace[-1]


def test_a_stop_is_taken_while_a_session_is_spawning() -> None:
    """BloopAI/vibe-kanban#2377: a running session cannot be stopped."""
    deaf = shipped("session-prompt-failures").without_rows((session.State.SPAWNING, session.OperatorStop))
    trace = way_to(
        "an operator's stop is accepted in every state, and nothing runs after it",
        deaf,
        ALL,
        (session.OperatorStop, session.UrgentMessage),
    )
    assert FOR_EVER in trace
    assert trace[-1].endswith("BuildingPrompt → Spawning  [StorePrompt, Begin]")


def test_a_stopped_session_is_no_success() -> None:
    """BloopAI/vibe-kanban#2547: a session that a user stopped is shown as done."""
    done = changed(
        shipped("session"), "row(Interrupting, SessionExited(*)", target=session.State.SESSION_COMPLETE, action=complete
    )
    trace = way_to("only a success completes a session", done)
    assert "Interrupting → SessionComplete" in trace[-1]


def test_a_session_is_asked_to_end_before_it_is_killed() -> None:
    """gastownhall/gastown#513: sessions are ended without time to finish."""
    at_once = changed(shipped("session"), "row(Interrupting | Running, OperatorStop", action=None)
    trace = way_to("a running session is asked to end before it is killed", at_once)
    assert "OperatorStop()   Running → Stopped  [End]" in trace[-1]


def _left_behind(a: status.Status, e: status.FatalError) -> Step[status.Status, Any]:
    done = status.fail(a, e)
    return Step(done.record, tuple(each for each in done.effects if not isinstance(each, CallHook)))


def test_nothing_is_left_behind_an_agent_that_has_failed() -> None:
    """gastownhall/gastown#611: unowned agents accumulate until the machine stops."""
    trace = way_to(
        "every end releases it, once", changed(shipped("status"), "row(RUNNING, FatalError", action=_left_behind)
    )
    assert "RUNNING → FAILED  [SaveState, EmitTelemetry]" in trace[-1]


def test_every_turn_is_cleaned_up() -> None:
    """gastownhall/gastown#700: sessions are never cleaned up."""
    stuck = shipped("turn").without_rows((turn.State.COMPACTING, turn.TaskFailed))
    said = (turn.TaskClaimed, turn.AgentSpawned, turn.CompactNeeded, turn.TaskFailed, turn.AgentReaped)
    trace = way_to("every turn that began is reaped", stuck, ALL, said)
    assert "RUNNING → COMPACTING" in trace[-2]
    assert trace[-1] == STUCK


def _still_coming_back(p: Process, e: Any) -> Step[Process, Any]:
    return Step(replace(do.want_stop(p, e).record, comeback=p.comeback))


def test_a_stop_is_stronger_than_a_restart() -> None:
    """gastownhall/gascity#76: a session cannot be stopped without a restart."""
    back = changed(shipped("process"), "row(failed | stopped | stopping, StopRequested", action=_still_coming_back)
    trace = way_to("a process starts on request or for a restart only", back)
    assert any("StopRequested" in line for line in trace)
    assert "BackoffElapsed" in trace[-1]


def test_a_failed_process_can_be_stopped() -> None:
    """mostlygeek/llama-swap#137: a failed process cannot be stopped."""
    deaf = shipped("process").without_rows((process.State.FAILED, StopRequested))
    trace = way_to("a stop is accepted in every state", deaf, ALL, (StartRequested, StopRequested))
    assert "starting → failed" in trace[-2]
    assert "failed → starting" in trace[-1]


def test_a_stop_is_heard_at_once() -> None:
    """NousResearch/hermes-agent#99425: no stop is immediate."""
    deaf = shipped("process").without_rows((process.State.RUNNING, StopRequested))
    trace = way_to("a stop is accepted in every state", deaf, ALL, (StartRequested, StopRequested))
    rounds = trace[trace.index(FOR_EVER) :]
    assert any("starting → running" in line for line in rounds)
    assert not any("StopRequested" in line for line in rounds)


def test_a_service_without_a_runner_is_not_shown_as_up() -> None:
    """smtg-ai/claude-squad#322, #276, #216: after a reboot sessions are lost and still shown as running."""
    stuck = process.machine.without_rows((process.State.RUNNING, process.Orphaned))
    said = (StartRequested, process.Orphaned)
    trace = way_to("a process without a runner is not shown as up", stuck, ALL, said)
    rounds = trace[trace.index(FOR_EVER) :]
    assert not any("Orphaned" in line or "→ failed" in line for line in rounds)


def _says_why(_a: status.Status, e: status.FatalError) -> bool:
    return bool(e.reason)


def test_an_agent_reported_as_failed_is_not_running() -> None:
    """swapnildahiphale/OpenSRE#57: the host of a run is restarted silently, and the run stays "running"."""
    old = changed(shipped("status"), "row(RUNNING, FatalError", when=_says_why)
    stuck = rebuilt(old, rows=(*old.rows, row(status.State.RUNNING, status.FatalError, STAY, status.record_late)))
    trace = way_to("a fatal error fails a running agent", stuck)
    assert "FatalError(reason=''" in trace[-1]
    assert trace[-1].endswith("RUNNING  [SaveState]")


def _only_counted(p: Process, _e: process.Crashed) -> Step[Process, Any]:
    return Step(replace(p, restart_count=p.restart_count + 1))


def test_a_crash_is_not_written_down_as_running() -> None:
    """openonion/connectonion#545: an append-only status says "running" for ever."""
    added = changed(shipped("process"), "Crashed", target=None, action=_only_counted)
    trace = way_to("a crashed process has failed", added, said=(StartRequested,))
    assert "Crashed(" in trace[-1]
    assert trace[-1].endswith("running")


def test_a_failure_stays_as_it_is() -> None:
    """GoogleCloudPlatform/scion#354: a later write replaces a failure, and its exit code is lost."""
    old = shipped("status")
    rows = (row(status.State.FAILED, status.Stop, status.State.STOPPED, status.stop), *old.rows)
    kept = [each for each in rows if str(each) != "row(FAILED, Stop(drain, force), FAILED)"]
    trace = way_to("a failed agent does not change", rebuilt(old, rows=kept, final=()))
    assert "FAILED → STOPPED" in trace[-1]


def test_a_trigger_wakes_no_process_that_waits_for_its_quota() -> None:
    """smtg-ai/claude-squad#114: work queued until the quota is renewed begins at once."""
    awake = changed(shipped("process"), "row(suspended, TriggerArrived", when=None)
    trace = way_to(
        "a trigger ends no suspension but that for idleness", awake, said=(StartRequested, process.SuspendRequested)
    )
    assert "TriggerArrived" in trace[-1]
    assert "suspended → running" in trace[-1]
