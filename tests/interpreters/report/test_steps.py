"""A trace as plain steps: the cycle, the crash, the refused input and the opening are told."""

from collections.abc import Iterator

from lifefold.core.fleet.board import intake
from lifefold.core.kernel import (
    START_MS,
    Cause,
    Envelope,
    Input,
    PropertyKind,
    Record,
    SystemStep,
    World,
    alone,
    replace,
)
from lifefold.core.lifecycles import session
from lifefold.interpreters.check import check
from lifefold.interpreters.report.finding import Outcome, Verdict
from lifefold.interpreters.report.steps import MOST_CHARACTERS, TracedFinding, stepwise
from lifefold.interpreters.report.trace import Attempt, CrashTrace, Incident, Trace
from lifefold.interpreters.search.report import Report


def steps() -> Iterator[SystemStep]:
    """Yield the first steps of a session."""
    system, opening = alone(session.machine)
    world = World(system, now_ms=START_MS)
    given = Input("session", replace(opening["session"], at_ms=START_MS))
    for number in range(3):
        stepped = world.step(given)
        assert isinstance(stepped, tuple)
        world, step = stepped
        yield step
        wanted = session.WorktreeReady if number == 0 else session.OperatorStop
        given = next(each for each in world.choices(10) if isinstance(each.envelope.event, wanted))


def traced(trace: Trace) -> TracedFinding:
    """Return the finding of a report whose only broken property has this trace."""
    found = check(intake.machine)
    assert isinstance(found, Report)
    verdict = Verdict("intake", "it holds", PropertyKind.ALWAYS, Outcome.BROKEN, trace)
    report = stepwise(_with(found, verdict))
    (finding,) = report.traced
    assert not report.is_ok
    assert finding.words == "it holds: broken"
    return finding


def _with(report: Report, verdict: Verdict) -> Report:
    return replace(report, verdicts=(verdict,))


def test_a_cycle_is_marked_and_named() -> None:
    first, *cycle = steps()
    found = traced(Trace((first,), tuple(cycle)))
    assert [each.repeats for each in found.steps] == [False, True, True]
    assert found.end == "From step 2 on the steps repeat for ever."
    assert found.steps[0].said.startswith("session: from outside: Created(")
    assert len(found.steps[0].said) <= MOST_CHARACTERS
    assert [each.at_ms for each in found.steps] == [0, 10, 20]


def test_a_crash_is_told_stage_by_stage() -> None:
    first, second, _ = steps()
    trace = CrashTrace((first,), incidents=(Incident("decide", "the input", second), Incident("crash", "it dies")))
    found = traced(trace)
    assert [(each.stage, each.number) for each in found.steps] == [("", 1), ("decide", 2), ("crash", 3)]
    assert found.steps[1].said == "the input"
    assert found.steps[1].moved[0].after == "BuildingPrompt"
    assert found.steps[2].moved == ()


def test_an_input_that_cannot_be_answered_is_the_end() -> None:
    envelope = Envelope("session", session.OperatorStop(), START_MS, "operator")
    found = traced(Trace((), attempt=Attempt("the rules raise an error", "session", Cause.COMMAND, envelope)))
    assert found.end == "session: an operator gives OperatorStop(): the rules raise an error"
    assert traced(Trace((), attempt=Attempt("no judgement"))).end == "no judgement"


def test_a_trace_without_steps_has_the_records_of_the_opening() -> None:
    record: Record = session.Session()
    found = traced(Trace((), begins=(("session", record),)))
    assert [place for place, _ in found.begins] == ["session"]
    assert found.steps == ()
