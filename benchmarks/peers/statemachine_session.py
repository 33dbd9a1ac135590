"""The session lifecycle with python-statemachine: a declarative ``StateChart`` with a domain model."""

from statemachine import State, StateChart
from statemachine.exceptions import TransitionNotAllowed

from benchmarks.peers.ledger import UNLIMITED, Ledger
from benchmarks.peers.tape import compile_tape, run

__all__ = ["REJECTION", "SessionChart", "compile_tape", "ledger_of", "make", "run", "state_of"]

REJECTION = TransitionNotAllowed


class SessionChart(StateChart[Ledger]):
    """The chart; its guards and actions are methods of the model.

    As in the other libraries an event that no row is for is refused, and an error in an action is raised.
    """

    allow_event_without_transition = False
    catch_errors_as_events = False

    initializing = State("Initializing", initial=True)
    building_prompt = State("BuildingPrompt")
    spawning = State("Spawning")
    running = State("Running")
    interrupting = State("Interrupting")
    session_complete = State("SessionComplete")
    cooling_down = State("CoolingDown")
    stopped = State("Stopped")

    worktree_ready = initializing.to(building_prompt) | session_complete.to(building_prompt, on="increment_session")
    prompt_ready = building_prompt.to(spawning, on="store_prompt")
    session_started = spawning.to(running, on="begin")
    session_succeeded = running.to(session_complete, on="complete") | interrupting.to(building_prompt)
    session_failed = (
        stopped.from_(spawning, running, cond="threshold_reached", on="give_up")
        | cooling_down.from_(spawning, running, on="count_error")
        | interrupting.to(building_prompt)
    )
    urgent_message = running.to(interrupting, on="cancel_session")
    grace_exceeded = interrupting.to(building_prompt, on="force_stop_session")
    backoff_elapsed = cooling_down.to(building_prompt)
    operator_stop = stopped.from_(running, interrupting, on="cancel_session") | stopped.from_.any()  # type: ignore[no-untyped-call]
    fatal_error = stopped.from_.any(on="log_fatal")  # type: ignore[no-untyped-call]


def make(max_total_errors: int = UNLIMITED) -> SessionChart:
    """Return a new machine in Initializing."""
    return SessionChart(Ledger(max_total_errors=max_total_errors))


def state_of(machine: SessionChart) -> str:
    """Return the name of its state."""
    (state,) = machine.configuration
    return state.name


def ledger_of(machine: SessionChart) -> Ledger:
    """Return its counters and effects."""
    return machine.model
