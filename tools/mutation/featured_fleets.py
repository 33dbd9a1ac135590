"""Small fleets with the optional parts of a fleet, for mutants of their rules."""

from collections.abc import Mapping
from typing import Final

from lifefold.core.fleet import (
    AgentPlan,
    Budget,
    Caps,
    GatePlan,
    NotifierPlan,
    Plan,
    Preemption,
    ServicePlan,
    Talks,
    TaskPlan,
)
from lifefold.core.fleet.board import budget, intake, worker_slot
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.system.plan import fleet_task_of
from lifefold.core.fleet.worker import desired_state, mailbox, question, stall_detector
from lifefold.core.kernel import replace
from lifefold.core.lifecycles import approval, process, task
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.session import Limits
from lifefold.core.lifecycles.task import OnDeath
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.core.policy.standing import StandingAnswer
from lifefold.effects import Every, NotificationKind
from lifefold.interpreters.targets.bounded import (
    few_letters,
    few_posted,
    few_questions,
    few_uses,
    little_left,
    one_message,
    one_question,
)
from small_fleets import ONE_MESSAGE, Small

_NO_CAPS: Final = Caps()
_NO_RESTART: Final = Restart()
_LADDER: Final = stall_detector.Limits(warn_ms=2, nudge_ms=3, end_ms=4)
_APPROVAL: Final = (plan_approval.PlanApproved,)
_STOP: Final = (desired_state.StopWanted,)


def _agents(number: int, errors: int = 1) -> tuple[AgentPlan, ...]:
    return tuple(_agent(f"a{each}", errors) for each in range(number))


def _agent(name: str, errors: int = 1, caps: Caps = _NO_CAPS, restart: Restart = _NO_RESTART) -> AgentPlan:
    limits = Limits(max_consecutive_errors=errors, max_total_errors=errors)
    return AgentPlan(name, limits, caps=caps, restart=restart)


def _task(number: int, priority: int = 2, retries: int = 0, caps: Caps = _NO_CAPS) -> TaskPlan:
    return TaskPlan(f"T{number}", "do it", priority=priority, max_retries=retries, caps=caps)


_PREEMPTING: Final = Plan("small", _agents(1), (_task(0, 3),), preemption=Preemption(1))

PREEMPTING: Final[Mapping[str, Small]] = {
    "one agent that makes room for one of two tasks": Small(
        Plan("small", _agents(1), (_task(0), _task(1, 1)), approve_plan=True, preemption=Preemption(1)),
        {"task": (task.Approved, task.Cancelled), "plan": _APPROVAL, "desired_state": _STOP},
        commands=3,
    ),
    "one agent that makes room, three tasks": Small(
        _PREEMPTING,
        {"task": (task.Cancelled,), "plan": _APPROVAL},
        commands=2,
        tasks=tuple(replace(fleet_task_of(_task(n, n), n, _PREEMPTING), state=task.State.PLANNED) for n in (1, 2)),
        plan_is=plan_approval.State.PROPOSED,
    ),
}

ORPHANS: Final[Mapping[str, Small]] = {
    "one agent, what its dead session has left is verified": Small(
        Plan(
            "small",
            _agents(1, 2),
            (TaskPlan("T0", "do it", verify=(("true",),), max_retries=1, orphaned=OnDeath.VERIFY),),
        ),
        {"desired_state": _STOP, "task": (task.Cancelled,)},
        commands=1,
    ),
    "one agent, what its dead session has left is given back": Small(
        Plan("small", _agents(1, 2), (TaskPlan("T0", "do it", max_retries=0, orphaned=OnDeath.REQUEUE),)),
        {"desired_state": _STOP},
        commands=1,
    ),
    "one agent, whose session has stalled or died, and is verified": Small(
        Plan(
            "small",
            (AgentPlan("a0", _agents(1, 2)[0].limits, stall=stall_detector.Limits(2, None, 4)),),
            (TaskPlan("T0", "do it", verify=(("true",),), max_retries=0, orphaned=OnDeath.VERIFY),),
        ),
        {"desired_state": (desired_state.HoldWanted, desired_state.RunWanted)},
        commands=2,
    ),
}

WATCHED: Final[Mapping[str, Small]] = {
    "one agent that is watched": Small(
        Plan("small", (AgentPlan("a0", _agents(1, 2)[0].limits, stall=_LADDER),), (_task(0),)),
        {"desired_state": (desired_state.StopWanted, desired_state.HoldWanted, desired_state.RunWanted)},
        commands=2,
    ),
}

TURNS: Final[Mapping[str, Small]] = {
    "one agent whose claims are turns": Small(
        Plan(
            "small",
            (AgentPlan("a0", _agents(1, 2)[0].limits, follows=True),),
            (TaskPlan("T0", "do it", verify=(("true",),), max_retries=1, orphaned=OnDeath.VERIFY),),
        ),
        {"desired_state": (desired_state.StopWanted, desired_state.HoldWanted, desired_state.RunWanted)},
        commands=2,
    ),
}

ASKING: Final[Mapping[str, Small]] = {
    "one agent that asks, and is watched": Small(
        Plan(
            "small",
            (AgentPlan("a0", _agents(1, 2)[0].limits, stall=_LADDER),),
            (_task(0),),
            questions=question.Terms(1, (StandingAnswer("Read", "a", allows=True),)),
        ),
        {"desired_state": _STOP, question.REF: (question.QuestionAsked, question.QuestionAnswered)},
        commands=2,
        within={**ONE_MESSAGE, question.REF: few_questions},
    ),
}

_LIFE: Final = process.Limits(restart_policy="on_failure", max_restarts=1, max_consecutive_failures=1)
_EVERYTHING: Final = (NotifierPlan("all", tuple(NotificationKind), retries=0),)

TELLING: Final[Mapping[str, Small]] = {
    "one agent whose plan and work need approvals, and a notifier": Small(
        Plan(
            "small",
            _agents(1),
            (TaskPlan("T0", "do it", max_retries=1, needs_approval=True, caps=Caps(sessions=1)),),
            approve_plan=True,
            approval_ms=3_600_000,
            notify=_EVERYTHING,
        ),
        {"task": (approval.ApprovalGranted,), "plan": _APPROVAL, "desired_state": _STOP},
        commands=2,
    ),
    "one agent with an account, and a notifier": Small(
        Plan(
            "small",
            (AgentPlan("a0", _agents(1)[0].limits, account="left"),),
            (_task(0),),
            budget=Budget(Caps(sessions=1)),
            notify=(NotifierPlan("all", (NotificationKind.LIMIT, NotificationKind.OVER), retries=0),),
        ),
        {"desired_state": _STOP},
        commands=1,
        within={**ONE_MESSAGE, "budget": little_left},
    ),
    "one service that fails, and a notifier": Small(
        Plan(
            "small",
            (),
            (),
            watch=True,
            services=(ServicePlan("web", _LIFE, triggers=(Every(1),)),),
            notify=(NotifierPlan("all", (NotificationKind.SERVICE, NotificationKind.OVER), retries=0),),
        ),
        {"intake": (intake.LastTaskIn,), "desired_state": _STOP},
        commands=2,
    ),
}

ANNOUNCING: Final[Mapping[str, Small]] = {
    "one agent that asks, and a notifier": Small(
        Plan(
            "small",
            _agents(1),
            (_task(0),),
            questions=question.Terms(0, (StandingAnswer("Read", "a", allows=True),)),
            notify=(NotifierPlan("all", (NotificationKind.QUESTION,), retries=0),),
        ),
        {question.REF: (question.QuestionAsked,)},
        commands=1,
        within={**ONE_MESSAGE, question.REF: few_questions},
    ),
}

RESTARTED: Final[Mapping[str, Small]] = {
    "one agent that is restarted when its orphan is known": Small(
        Plan(
            "small",
            (_agent("a0", restart=Restart(max_restarts=1)),),
            (TaskPlan("T0", "do it", verify=(("true",),), max_retries=0, orphaned=OnDeath.VERIFY), _task(1)),
            restarts=Intensity(max_restarts=1),
        ),
        {"desired_state": _STOP},
        commands=1,
        within={**ONE_MESSAGE, "restart_permit": few_uses},
    ),
    "one agent that is restarted": Small(
        Plan(
            "small",
            (_agent("a0", restart=Restart(max_restarts=2)),),
            (_task(0, retries=1),),
            restarts=Intensity(max_restarts=2),
        ),
        {"desired_state": _STOP},
        commands=1,
        within={**ONE_MESSAGE, "restart_permit": few_uses},
    ),
    "two agents, of whom one may be restarted at a time": Small(
        Plan(
            "small",
            tuple(_agent(each, restart=Restart(max_restarts=1)) for each in ("a0", "a1")),
            (_task(0),),
            restarts=Intensity(max_restarts=1),
        ),
        {},
        within={**ONE_MESSAGE, "restart_permit": few_uses},
    ),
}

LIMITED: Final[Mapping[str, Small]] = {
    "one agent, a budget for two sessions": Small(
        Plan("small", _agents(1, 2), (_task(0, retries=1), _task(1)), budget=Budget(Caps(sessions=2))),
        {"budget": (budget.Raise,)},
        commands=1,
        within={**ONE_MESSAGE, "budget": little_left},
    ),
    "two agents, one of whom may begin one session": Small(
        Plan("small", (_agent("a0", caps=Caps(sessions=1)), _agent("a1")), (_task(0), _task(1))),
        {},
        within={**ONE_MESSAGE, "budget": little_left},
    ),
    "one agent, a task that may take one session": Small(
        Plan("small", _agents(1, 2), (_task(0, retries=1, caps=Caps(sessions=1)), _task(1))),
        {"budget": (budget.Raise,), "task": (task.Cancelled,)},
        commands=1,
        within={**ONE_MESSAGE, "budget": little_left},
    ),
    "one agent, a session in every period": Small(
        Plan("small", _agents(1, 2), (_task(0, retries=1),), budget=Budget(Caps(sessions=1), period_ms=1)),
        {"desired_state": _STOP},
        commands=1,
        within={**ONE_MESSAGE, "budget": little_left},
    ),
    "one agent, a little money": Small(
        Plan(
            "small",
            _agents(1, 2),
            (_task(0, retries=1),),
            budget=Budget(Caps(microusd=2), share=Amounts(microusd=1), charges_the_silent=True),
        ),
        {"desired_state": (desired_state.HoldWanted, desired_state.RunWanted)},
        commands=2,
        within={**ONE_MESSAGE, "budget": little_left},
    ),
}

TALKING: Final[Mapping[str, Small]] = {
    "one agent that resumes its conversations": Small(
        Plan(
            "small",
            (AgentPlan("a0", _agents(1, 2)[0].limits, talks=Talks(chooses=False, resumes=True)),),
            (_task(0, retries=1),),
        ),
        {"desired_state": (desired_state.HoldWanted, desired_state.RunWanted), "task": (task.Cancelled,)},
        commands=2,
    ),
    "one agent that chooses its conversations": Small(
        Plan(
            "small",
            (AgentPlan("a0", _agents(1, 2)[0].limits, talks=Talks(chooses=True, resumes=True)),),
            (_task(0),),
        ),
        {"desired_state": (desired_state.HoldWanted, desired_state.RunWanted)},
        commands=2,
    ),
}

STEERING: Final[Mapping[str, Small]] = {
    "one agent whose running session takes messages": Small(
        Plan(
            "small",
            (AgentPlan("a0", _agents(1, 2)[0].limits, follows=True, steers=True),),
            (_task(0),),
            questions=question.Terms(),
        ),
        {"mailbox": (mailbox.OperatorMessageArrived,), "questions": (question.QuestionAsked,)},
        commands=3,
        within={"mailbox": few_letters, "questions": one_question, "steering": few_posted},
    ),
}

TRUSTED: Final[Mapping[str, Small]] = {
    "one agent that is not trusted": Small(
        Plan(
            "small",
            _agents(1),
            (_task(0), TaskPlan("T1", "do it", max_retries=0, trust=AccessLevel.PROBATIONARY)),
            gates=GatePlan(),
        ),
        {"worker_slot": (worker_slot.Promoted, worker_slot.Demoted, worker_slot.Violated)},
        commands=2,
    ),
    "two agents, of whom one is trusted to merge": Small(
        Plan(
            "small",
            (_agent("a0"), AgentPlan("a1", _agents(1)[0].limits, trust=AccessLevel.PROBATIONARY)),
            (_task(0),),
            gates=GatePlan(merge=AccessLevel.PROBATIONARY),
            approval_ms=3_600_000,
        ),
        {"worker_slot": (worker_slot.Demoted,)},
        commands=1,
    ),
}

_SERVICE: Final = ServicePlan("web", _LIFE, triggers=(Every(1),), takes_messages=True)

SERVING: Final[Mapping[str, Small]] = {
    "one service that is kept": Small(
        Plan("small", (), (), watch=True, services=(_SERVICE,)),
        {
            "inbox": (inbox.MessageArrived,),
            "intake": (intake.LastTaskIn,),
            "desired_state": (
                desired_state.StopWanted,
                desired_state.DrainWanted,
                desired_state.PauseWanted,
                desired_state.ResumeWanted,
                desired_state.HoldWanted,
                desired_state.RunWanted,
            ),
        },
        commands=2,
        within={**ONE_MESSAGE, "inbox": one_message},
    ),
    "one agent, one task, and one service": Small(
        Plan("small", _agents(1), (_task(0),), services=(_SERVICE,)),
        {"inbox": (inbox.MessageArrived,)},
        commands=1,
        within={**ONE_MESSAGE, "inbox": one_message},
    ),
}

FEATURED: Final[Mapping[str, Small]] = {
    **PREEMPTING,
    **ORPHANS,
    **WATCHED,
    **TURNS,
    **ASKING,
    **TELLING,
    **ANNOUNCING,
    **RESTARTED,
    **LIMITED,
    **TALKING,
    **STEERING,
    **TRUSTED,
    **SERVING,
}
"""All of them, by description."""
