"""The session lifecycle with transitions: a ``Machine`` for a model whose methods are the callbacks."""

from transitions import Machine, MachineError

from benchmarks.peers.ledger import UNLIMITED, Ledger
from benchmarks.peers.tape import compile_tape, run

__all__ = ["REJECTION", "Session", "compile_tape", "ledger_of", "make", "run", "state_of"]

REJECTION = MachineError

STATES = [
    "Initializing",
    "BuildingPrompt",
    "Spawning",
    "Running",
    "Interrupting",
    "SessionComplete",
    "CoolingDown",
    "Stopped",
]

# fmt: off
TRANSITIONS: list[dict[str, str | list[str]]] = [
    {"trigger": "worktree_ready", "source": "Initializing", "dest": "BuildingPrompt"},
    {"trigger": "worktree_ready", "source": "SessionComplete", "dest": "BuildingPrompt", "before": "increment_session"},
    {"trigger": "prompt_ready", "source": "BuildingPrompt", "dest": "Spawning", "before": "store_prompt"},
    {"trigger": "session_started", "source": "Spawning", "dest": "Running", "before": "begin"},
    {"trigger": "session_succeeded", "source": "Running", "dest": "SessionComplete", "before": "complete"},
    {"trigger": "session_succeeded", "source": "Interrupting", "dest": "BuildingPrompt"},
    {"trigger": "session_failed", "source": ["Spawning", "Running"], "dest": "Stopped",
     "conditions": "threshold_reached", "before": "give_up"},
    {"trigger": "session_failed", "source": ["Spawning", "Running"], "dest": "CoolingDown", "before": "count_error"},
    {"trigger": "session_failed", "source": "Interrupting", "dest": "BuildingPrompt"},
    {"trigger": "urgent_message", "source": "Running", "dest": "Interrupting", "before": "cancel_session"},
    {"trigger": "grace_exceeded", "source": "Interrupting", "dest": "BuildingPrompt", "before": "force_stop_session"},
    {"trigger": "backoff_elapsed", "source": "CoolingDown", "dest": "BuildingPrompt"},
    {"trigger": "operator_stop", "source": ["Running", "Interrupting"], "dest": "Stopped", "before": "cancel_session"},
    {"trigger": "operator_stop", "source": "*", "dest": "Stopped"},
    {"trigger": "fatal_error", "source": "*", "dest": "Stopped", "before": "log_fatal"},
]
# fmt: on


class Session(Ledger):
    """The model; ``Machine`` adds to it its ``state`` and a method for each trigger."""

    state: str

    def __init__(self, max_total_errors: int) -> None:
        super().__init__(max_total_errors=max_total_errors)
        Machine(self, states=STATES, transitions=TRANSITIONS, initial="Initializing", auto_transitions=False)


def make(max_total_errors: int = UNLIMITED) -> Session:
    """Return a new machine in Initializing."""
    return Session(max_total_errors)


def state_of(machine: Session) -> str:
    """Return the name of its state."""
    return machine.state


def ledger_of(machine: Session) -> Ledger:
    """Return its counters and effects."""
    return machine
