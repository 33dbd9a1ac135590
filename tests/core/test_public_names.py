"""The public names of the core's packages."""

from lifefold.core import fleet, kernel

KERNEL = (
    "ANY ENGINE LATE_OR_REPEATED START_MS STAY ActivityEnded ActivityScope After Aggregate AggregateType Cause"
    " Codec Create Created DecisionError Dispatch Does Entity EntityQuarantined EntityReleased EntityStep"
    " Envelope Event Evolved Fairness HandlerFailed IllegalTransition Input InvalidMachine LifecycleEvent"
    " Machine Opened Outcomes Pattern PersistentMap Phase Possible Projection Property PropertyKind Reaction"
    " Record Refusal RequestedEffect Row Rule RulesChanged RunnerRecovered Running State Step System"
    " SystemState SystemStep TimerFired Transition UnreadableEntry View World accepts advance after alone"
    " always always_step anywhere broken cause_of create decide delivery describe does encode eventually"
    " journal late leads_to localized misfits possible possible_of projected react removed removed_field"
    " renamed renamed_field replace restarted row rule sent_in sometimes strongly subject_of upcast weakly"
    " written"
).split()

FLEET = (
    "AgentPlan Budget Caps GatePlan NotifierPlan Plan Preemption ServicePlan Talks TaskPlan opening system"
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
            "account",
            "mailbox",
            "notifier",
        ],
        "worker": [
            "session",
            "assignment",
            "mailbox",
            "desired_state",
            "usage_meter",
            "stall_detector",
            "supervisor",
            "conversation",
            "quota",
            "output",
            "turn",
            "questions",
            "announcer",
            "steering",
        ],
        "service": ["process", "invocation", "inbox", "trigger", "desired_state"],
    }
