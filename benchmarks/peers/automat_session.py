"""The session lifecycle with Automat: a protocol of inputs over a core that holds the counters.

Automat has no guards. For a conditional transition, its documentation recommends an output that sends a further input.
Here a failed session leads to CoolingDown. If a threshold is reached, ``give_up`` then leads to Stopped. So only the
rare case costs a second transition.
"""

from typing import Protocol

from automat import NoTransition, TypeMachineBuilder

from benchmarks.peers.ledger import UNLIMITED, Ledger
from benchmarks.peers.tape import compile_tape, run

__all__ = ["REJECTION", "Session", "compile_tape", "ledger_of", "make", "run", "state_of"]

REJECTION = NoTransition


class Session(Protocol):
    """The inputs."""

    def worktree_ready(self) -> None:
        """The worktree is ready."""

    def prompt_ready(self, prompt: str) -> None:
        """The prompt is ready."""

    def session_started(self, session_seq: int) -> None:
        """The process runs."""

    def session_succeeded(self) -> None:
        """The process has succeeded."""

    def session_failed(self, outcome: str) -> None:
        """The process has ended in an error or a timeout."""

    def give_up(self, outcome: str) -> None:
        """Stop because of too many errors; only the machine itself sends it."""

    def urgent_message(self) -> None:
        """An urgent message has arrived."""

    def grace_exceeded(self) -> None:
        """The interrupted process did not end in time."""

    def backoff_elapsed(self) -> None:
        """The pause is over."""

    def operator_stop(self) -> None:
        """Stop for good."""

    def fatal_error(self, message: str) -> None:
        """Stop because of an error that no retry can fix."""


builder = TypeMachineBuilder(Session, Ledger)

initializing = builder.state("Initializing")
building_prompt = builder.state("BuildingPrompt")
spawning = builder.state("Spawning")
running = builder.state("Running")
interrupting = builder.state("Interrupting")
session_complete = builder.state("SessionComplete")
cooling_down = builder.state("CoolingDown")
stopped = builder.state("Stopped")

initializing.upon(Session.worktree_ready).to(building_prompt).returns(None)
interrupting.upon(Session.session_succeeded).to(building_prompt).returns(None)
interrupting.upon(Session.session_failed).to(building_prompt).returns(None)
cooling_down.upon(Session.backoff_elapsed).to(building_prompt).returns(None)


@session_complete.upon(Session.worktree_ready).to(building_prompt)
def increment_session(_session: Session, ledger: Ledger) -> None:
    """Count the completed session."""
    ledger.increment_session()


@building_prompt.upon(Session.prompt_ready).to(spawning)
def store_prompt(_session: Session, ledger: Ledger, prompt: str) -> None:
    """Keep the prompt."""
    ledger.store_prompt(prompt)


@spawning.upon(Session.session_started).to(running)
def begin(_session: Session, ledger: Ledger, session_seq: int) -> None:
    """Note which session runs."""
    ledger.begin(session_seq)


@running.upon(Session.session_succeeded).to(session_complete)
def complete(_session: Session, ledger: Ledger) -> None:
    """Forget the errors in a row."""
    ledger.complete()


@spawning.upon(Session.session_failed).to(cooling_down)
@running.upon(Session.session_failed).to(cooling_down)
def count_error(session: Session, ledger: Ledger, outcome: str) -> None:
    """Count the error, unless it is one too many."""
    if ledger.threshold_reached(outcome):
        session.give_up(outcome)
    else:
        ledger.count_error(outcome)


@cooling_down.upon(Session.give_up).to(stopped)
def give_up(_session: Session, ledger: Ledger, outcome: str) -> None:
    """Count the last error and report it."""
    ledger.give_up(outcome)


@running.upon(Session.urgent_message).to(interrupting)
@running.upon(Session.operator_stop).to(stopped)
@interrupting.upon(Session.operator_stop).to(stopped)
def cancel_session(_session: Session, ledger: Ledger) -> None:
    """Ask the session to end."""
    ledger.cancel_session()


@interrupting.upon(Session.grace_exceeded).to(building_prompt)
def force_stop_session(_session: Session, ledger: Ledger) -> None:
    """Kill the session."""
    ledger.force_stop_session()


def log_fatal(_session: Session, ledger: Ledger, message: str) -> None:
    """Report the error."""
    ledger.log_fatal(message)


for state in (initializing, building_prompt, spawning, session_complete, cooling_down, stopped):
    state.upon(Session.operator_stop).to(stopped).returns(None)
for state in (initializing, building_prompt, spawning, running, interrupting, session_complete, cooling_down, stopped):
    state.upon(Session.fatal_error).to(stopped)(log_fatal)

new_session = builder.build()


def make(max_total_errors: int = UNLIMITED) -> Session:
    """Return a new machine in Initializing."""
    return new_session(Ledger(max_total_errors=max_total_errors))


def state_of(machine: Session) -> str:
    """Return the name of its state, which Automat keeps private; not for use while measuring."""
    return str(vars(machine)["__automat_transitioner__"]._state.name)  # noqa: SLF001


def ledger_of(machine: Session) -> Ledger:
    """Return its counters and effects."""
    ledger = vars(machine)["__automat_core__"]
    assert isinstance(ledger, Ledger)
    return ledger
