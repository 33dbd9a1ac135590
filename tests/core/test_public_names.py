"""What may be imported from the packages of the core."""

from lifefold.core import fleet, kernel

KERNEL = (
    "ANY STAY Advance After Aggregate AggregateType Asked Cause Codec Create Created DecisionError Dispatch Does"
    " TimerFired Ended Entity EntityQuarantined EntityReleased Envelope Event Fairness HandlerFailed"
    " IllegalTransition InvalidMachine LifecycleEvent Machine Opened Overview Pattern Phase Possible Property"
    " Reaction Record RunnerRecovered Refusal Row Rule Running Scene Span State Step System Temper Transition"
    " UnreadableEntry View advance after alone always always_step anywhere create decide describe digest does"
    " encode eventually journal late leads_to near possible possible_of react replace restarted row rule seeing"
    " sometimes strongly subject_of takes weakly"
).split()

FLEET = (
    "AgentPlan Budget Caps GatePlan Plan Preemption ServicePlan TaskPlan aborts assignment board budgets change"
    " changing departure difference doors duty inbox intent invocation job mailbox meter obstacles opening orphans pace"
    " permit preemption promises proposal pulse purse remainder restarts room seat service status supervision system"
    " trigger trusting work worker"
).split()


def test_the_kernel_exports_these_names_and_all_of_them_exist() -> None:
    """Nothing is exported by accident, and nothing that is listed is missing."""
    assert kernel.__all__ == KERNEL
    assert [name for name in KERNEL if not hasattr(kernel, name)] == []


def test_the_fleet_exports_these_names_and_all_of_them_exist() -> None:
    """Nothing is exported by accident, and nothing that is listed is missing."""
    assert fleet.__all__ == FLEET
    assert [name for name in FLEET if not hasattr(fleet, name)] == []


def test_the_system_that_is_shipped_has_a_board_workers_and_services() -> None:
    """The kinds of aggregates and their machines are part of every log that was ever written."""
    assert {kind: list(of.machines) for kind, of in fleet.system.aggregates.items()} == {
        "board": [
            "task",
            "worker_slot",
            "budget",
            "plan",
            "intake",
            "restart_permit",
            "preemption_request",
            "service_slot",
            "change",
        ],
        "worker": ["session", "assignment", "mailbox", "desired_state", "usage_meter", "stall_detector", "supervisor"],
        "service": ["process", "invocation", "inbox", "trigger", "desired_state"],
    }
