"""Other agents than the document's: the earlier and the later versions of its system, and wishes of operators."""

from typing import Final, Never

from lifefold.core.kernel import (
    STAY,
    Event,
    Machine,
    Row,
    Step,
    Transition,
    accepts,
    after,
    always_step,
    leads_to,
    replace,
    row,
    sometimes,
)
from lifefold.core.lifecycles.property_forms import enters, follows_table, lasts_only
from lifefold.core.lifecycles.runtime import (
    BESIDE,
    CONDITIONS,
    DURING,
    INVARIANTS,
    ROWS,
    begin_recovery,
    forget,
    may_recover,
    task_failed,
)
from lifefold.core.lifecycles.runtime_model import (
    Complete,
    Ready,
    Recover,
    Resume,
    Run,
    Runtime,
    Shutdown,
    State,
    TimedOut,
)
from lifefold.core.lifecycles.runtime_properties import AT_ALL_TIMES, STEPS, USUAL, answers
from lifefold.effects import LogFatal, ReportStuck, ReportTaskFailed, StartTimer


class RecoveryDue(Event, frozen=True):
    """The delay before the next recovery is over (profile ``supervised``)."""


class Overdue(Event, frozen=True):
    """The agent has been in its state for very long (profile ``watched``)."""


def give_up(a: Runtime, _e: RecoveryDue) -> Step[Runtime, LogFatal | ReportTaskFailed]:
    """Leave the agent failed, alert an operator, and report its task as failed."""
    message = f"{a.agent_id} stays FAILED after {a.recoveries} recoveries: {a.failure_reason or a.error_code}"
    return Step(replace(a, task_id=None), (LogFatal(message), *task_failed(a)))


def report_stuck(a: Runtime, _e: Overdue) -> Step[Runtime, ReportStuck]:
    """Tell an operator; nothing else changes."""
    return Step(a, (ReportStuck(a.state, a.limits.stuck_after_ms),))


def complete_shutdown(a: Runtime, _e: Complete) -> Step[Runtime, Never]:
    """End without a failure: an aborted recovery is no failure any more, and no other task follows."""
    return Step(replace(a, recoveries=0, task_id=None, failure_reason=None, error_code="", is_over=True))


def takes_tasks(a: Runtime, _e: Ready) -> bool:
    """The agent has not been shut down."""
    return not a.is_over


def retry_delay_ms(a: Runtime) -> int:
    """Return the delay before the next recovery."""
    return a.limits.retry.delay_ms(a.recoveries + 1, a.agent_id)


def stuck_after_ms(a: Runtime) -> int:
    """Return the time after which an agent that cannot leave its state by itself is reported."""
    return a.limits.stuck_after_ms


def recovers_within_the_budget(t: Transition) -> bool:
    """An agent recovers within its budget only."""
    within = t.before is None or may_recover(t.before.record)
    return within or not enters(t, State.RECOVERING)


def reports_that_it_gives_up(t: Transition) -> bool:
    """An agent that is not going to recover is reported."""
    gave_up = isinstance(t.event, RecoveryDue) and t.entered is None
    return gave_up == any(isinstance(each, LogFatal) for each in t.effects)


def pauses_before_it_recovers(t: Transition) -> bool:
    """A failed agent has the pause of the retry policy before its recovery."""
    a: Runtime = t.after.record
    pauses = [each.delay_ms for each in t.effects if isinstance(each, StartTimer) and each.slot == RecoveryDue.__name__]
    return pauses == [a.limits.retry.delay_ms(a.recoveries + 1, a.agent_id)] * enters(t, State.FAILED)


def reports_a_stuck_agent(t: Transition) -> bool:
    """An agent that is overdue is reported, and nothing else happens."""
    report = (ReportStuck(t.after.state, t.after.record.limits.stuck_after_ms),)
    return not isinstance(t.event, Overdue) or (t.entered is None and t.effects == report)


def times_a_stuck_agent(t: Transition) -> bool:
    """A scheduled or waiting agent has a timer for the report."""
    begun = [each.delay_ms for each in t.effects if isinstance(each, StartTimer) and each.slot == Overdue.__name__]
    return begun == [t.after.record.limits.stuck_after_ms] * enters(t, *_MAY_BE_STUCK)


_MAY_BE_STUCK: Final = (State.SCHEDULED, State.WAITING)


def _in_agentpy(of: Row[Runtime]) -> bool:
    aborts = of.event is Shutdown and State.RECOVERING in (of.sources or ())
    return not (aborts or of.event is Ready or issubclass(of.event, TimedOut))


_AGENTPY: Final = (*(each for each in ROWS if _in_agentpy(each)), *BESIDE)

agentpy: Final[Machine[Runtime]] = Machine(
    "runtime-sw4rm-agentpy",
    Runtime(),
    about="runtime with the seventeen edges of the source that the document cites: no timeouts, COMPLETED is final",
    rows=_AGENTPY,
    final={State.COMPLETED},
    invariants=INVARIANTS,
    properties=(*AT_ALL_TIMES, answers(Run, Resume), *STEPS, *follows_table(_AGENTPY, but=CONDITIONS)),
)
"""The profile for what was written against that source (A1)."""

graceful: Final[Machine[Runtime]] = Machine(
    "runtime-graceful",
    Runtime(),
    about="runtime, but an agent that shuts down may complete, and is over then",
    rows=(
        *(each for each in ROWS if each.event is not Ready),
        row(State.COMPLETED, Ready, State.RUNNABLE, forget, when=takes_tasks),
        row(State.SHUTTING_DOWN, Complete, State.COMPLETED, complete_shutdown),
        *BESIDE,
    ),
    during=DURING,
    invariants=INVARIANTS,
    properties=(
        *USUAL,
        *follows_table((*ROWS, *BESIDE), but=(*CONDITIONS, Ready)),
        always_step(
            "an agent that is over accepts nothing more", lambda t: not t.was.is_over or t.entered is None, on=Event
        ),
        sometimes("an agent shuts down and completes", lambda e: e.record.is_over),
    ),
)
"""The profile in which a graceful shutdown need not end as a failure (A4)."""

supervised: Final[Machine[Runtime]] = Machine(
    "runtime-supervised",
    Runtime(),
    about="runtime, but it recovers by itself after a delay, and only so often",
    rows=(
        *(each for each in ROWS if each.event is not Recover),
        row(State.FAILED, Recover, State.RECOVERING, begin_recovery, when=may_recover),
        row(State.FAILED, RecoveryDue, State.RECOVERING, begin_recovery, when=may_recover),
        row(State.FAILED, RecoveryDue, STAY, give_up),
        *BESIDE,
    ),
    during={**DURING, State.FAILED: after(retry_delay_ms, RecoveryDue)},
    invariants=INVARIANTS,
    properties=(
        *USUAL,
        *follows_table((*ROWS, *BESIDE), but=(*CONDITIONS, Recover)),
        always_step("no agent recovers beyond the budget", recovers_within_the_budget),
        always_step("an agent that gives up is reported", reports_that_it_gives_up),
        always_step("a recovery has its pause before it", pauses_before_it_recovers),
        lasts_only(RecoveryDue.__name__, State.FAILED),
        accepts(
            "a recovery is accepted before its pause is over",
            {State.FAILED: (Recover,)},
            when=lambda e: e.record.recoveries < e.record.limits.max_recoveries,
        ),
        leads_to(
            "a failed agent recovers by itself, within the budget",
            lambda e: e.state is State.FAILED,
            lambda e: e.state is not State.FAILED or not may_recover(e.record),
        ),
        sometimes("an agent gives up", lambda e: e.state is State.FAILED and not e.running),
    ),
)
"""The profile with a recovery budget (A24)."""

watched: Final[Machine[Runtime]] = Machine(
    "runtime-watched",
    Runtime(),
    about="runtime, but an operator is told of an agent that is scheduled or waiting for very long",
    rows=(*ROWS, row(_MAY_BE_STUCK, Overdue, STAY, report_stuck), *BESIDE),
    during={**DURING, _MAY_BE_STUCK: after(stuck_after_ms, Overdue)},
    invariants=INVARIANTS,
    properties=(
        *USUAL,
        *follows_table((*ROWS, *BESIDE), but=CONDITIONS),
        always_step("a stuck agent is reported", reports_a_stuck_agent),
        always_step("a scheduled or waiting agent is reported in time", times_a_stuck_agent),
        lasts_only(Overdue.__name__, *_MAY_BE_STUCK),
    ),
)
"""The profile with a report from the states without a timeout and without an exit but the document's (A8, A26)."""


def auto_running(of: Machine[Runtime]) -> Machine[Runtime]:
    """Return a profile of any of these machines in which RESUMED becomes RUNNING by itself, at once (A10)."""
    return of.with_rows(during={State.RESUMED: after(0, Run)}, name=f"{of.name}-auto-run")
