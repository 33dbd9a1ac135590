"""The fold of a log into spans: every span has its place in its trace, and the same log gives the same spans."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module

import pytest

from lifefold.core.fleet import system
from lifefold.core.kernel import Refusal
from lifefold.core.lifecycles import task
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.simulate import NONE, Faults, Limits, hours, simulate
from lifefold.interpreters.targets.simulation_targets import named
from lifefold.interpreters.telemetry import genai
from lifefold.interpreters.telemetry.fleet_spans import FleetSpans, in_words
from lifefold.interpreters.telemetry.identifiers import Begun, Place, identity_of, session_place, task_trace
from lifefold.interpreters.telemetry.metrics import Distribution, Metrics, Point
from lifefold.interpreters.telemetry.spans import UNFINISHED, Draft, Span
from lifefold.interpreters.telemetry.system_spans import SystemSpans
from lobby import RUN, entries_of
from lobby import system as lobby

SEEDS = range(4)


@cache
def simulated(seed: int, *, is_faulty: bool = True) -> list[Decision]:
    """Return the decisions of a simulated fleet, with the faults of a seed or without any."""
    target = named("fleet-2x3")
    run = simulate(
        target.subject,
        opening=target.opening,
        seed=seed,
        faults=Faults() if is_faulty else NONE,
        environment=target.environment,
        limits=Limits(until_ms=hours(2)),
    )
    ledger, found = Ledger(target.system), list[Decision]()
    for name, envelope in run.entries:
        decision = ledger.decide(name, envelope)
        assert not isinstance(decision, Refusal)
        found.append(decision)
    return found


def spans_of(fold: FleetSpans | SystemSpans, decisions: Iterable[Decision]) -> list[Span]:
    """Return all spans of a log, the unfinished ones last."""
    return [*(span for each in decisions for span in fold.take(each)), *fold.rest()]


def must_fit(spans: Sequence[Span]) -> None:
    """Check that identifiers are unique, and that parents and causes are spans, in the trace that they should be in."""
    known = {each.place: each for each in spans}
    assert len(known) == len(spans)
    for each in spans:
        assert each.start_ms <= each.end_ms
        assert {len(each.place.trace), len(each.place.span)} == {32, 16}
        assert not each.parent or Place(each.place.trace, each.parent) in known
        assert {link.to for link in each.links} <= known.keys()
        assert all(each.start_ms <= event.at_ms <= each.end_ms for event in each.events), each


@pytest.mark.parametrize("seed", SEEDS)
def test_every_span_of_a_fleet_has_its_place(seed: int) -> None:
    """With crashes, lost sessions and commands, too; and the same decisions give the same spans."""
    decisions = simulated(seed)
    spans = spans_of(FleetSpans("log"), decisions)
    must_fit(spans)
    assert spans == spans_of(FleetSpans("log"), decisions)
    roots = Counter(each.place.trace for each in spans if not each.parent and not each.links)
    assert set(roots.values()) == {1}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_span_of_any_system_has_its_place(seed: int) -> None:
    """A fleet as a system like any other: lives, activities, and links of messages."""
    spans = spans_of(SystemSpans(system, "log"), simulated(seed))
    must_fit(spans)


def test_a_task_has_its_attempts_and_they_have_their_sessions() -> None:
    """The tree of a run without faults: the task, the attempt, and what the worker has done in it."""
    spans = spans_of(FleetSpans("log"), simulated(1, is_faulty=False))
    must_fit(spans)
    by_id = {each.place.span: each for each in spans}
    tasks = [each for each in spans if not each.parent]
    assert all(each.place.trace == task_trace("log", str(each.attributes["lifefold.task"])) for each in tasks)
    sessions = [each for each in spans if genai.OPERATION in each.attributes]
    assert sessions
    for each in sessions:
        attempt = by_id[each.parent]
        assert attempt.name == f"attempt by {each.attributes[genai.AGENT]}"
        assert by_id[attempt.parent].name == f"task {attempt.attributes['lifefold.task']}"
    merged = [each for each in spans if each.attributes.get("lifefold.outcome") == "Merged"]
    assert {each.name.partition(" ")[0] for each in merged} == {"attempt", "merge"}


def test_the_identifiers_of_a_session_are_known_when_it_begins() -> None:
    """They follow from the activity alone, so the runner can give them to the session."""
    decisions = simulated(1, is_faulty=False)
    spans = spans_of(FleetSpans("log"), decisions)
    places = {each.place for each in spans if genai.OPERATION in each.attributes}
    begun: set[Place] = set()
    for each in decisions:
        worker = each.reaction.aggregate
        if worker.kind == "worker" and (running := worker.entities["session"].find("RunSession")) is not None:
            name = worker.record("assignment").brief.task
            begun.add(session_place("log", Begun(worker.name, "session", "RunSession", running.generation), name))
    assert begun == places


def test_the_value_of_traceparent_is_that_of_the_w3c() -> None:
    """Version, trace, parent, and the flag that the trace is recorded."""
    place = session_place("log", Begun("worker/ann", "session", "RunSession", 4), "T1")
    assert place.traceparent == f"00-{task_trace('log', 'T1')}-{place.span}-01"
    service = session_place("log", Begun("service/web", "invocation", "RunSession", 4), "")
    assert service.trace not in {place.trace, task_trace("log", "")}


def test_two_logs_have_other_identifiers() -> None:
    """Each log has a name of its own; one without a name is known by its first entry."""
    first, other = (entries_of(RUN)[0], entries_of(RUN)[1])
    assert identity_of(first) != identity_of(other)
    assert task_trace(identity_of(first), "T1") != task_trace(identity_of(other), "T1")


def test_a_life_that_has_not_ended_says_so() -> None:
    """The door of a small system stands open at the end of its log: its span ends with the last entry."""
    decisions = list(Ledger(lobby).fold(entries_of(RUN)))
    spans = spans_of(SystemSpans(lobby, "log"), decisions)
    must_fit(spans)
    open_ = [each for each in spans if each.attributes.get(UNFINISHED)]
    assert open_
    assert {each.end_ms for each in open_} == {decisions[-1].entry.at_ms}
    (door,) = (each for each in spans if each.name == "door")
    assert [each.attributes["lifefold.state"] for each in door.events][-1] == door.attributes["lifefold.state"]


def test_a_failed_task_has_the_reason_of_its_failure() -> None:
    """A span with an error has the reason in words; one without has none."""
    tasks = [each for seed in SEEDS for each in spans_of(FleetSpans("log"), simulated(seed)) if not each.parent]
    over = [each for each in tasks if UNFINISHED not in each.attributes]
    assert over
    for each in over:
        is_failed = each.attributes["lifefold.state"] in {task.State.FAILED, task.State.BLOCKED}
        assert (each.error is not None) == is_failed


def test_a_cause_is_linked_once_and_no_span_causes_itself() -> None:
    """The first word for a link stays."""
    draft, other = Draft(Place("a" * 32, "b" * 16), "one", 1), Place("c" * 32, "d" * 16)
    draft.link(other, "message")
    draft.link(other, "again")
    draft.link(draft.place, "itself")
    draft.link(None, "nothing")
    assert [(each.to, each.why) for each in draft.ended(2).links] == [(other, "message")]


def test_the_names_of_the_conventions_are_the_published_ones() -> None:
    """They are experimental: a version that renames one fails here."""
    attributes = import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    metrics = import_module("opentelemetry.semconv._incubating.metrics.gen_ai_metrics")
    published = {value for name, value in vars(attributes).items() if name.startswith("GEN_AI_")}
    used = {genai.OPERATION, genai.AGENT, genai.CONVERSATION, genai.INPUT_TOKENS, genai.OUTPUT_TOKENS, genai.TOKEN_TYPE}
    assert used <= published
    assert genai.INVOKE_AGENT in {each.value for each in attributes.GenAiOperationNameValues}
    assert {genai.INPUT, genai.OUTPUT} <= {each.value for each in attributes.GenAiTokenTypeValues}
    assert genai.TOKEN_USAGE == metrics.GEN_AI_CLIENT_TOKEN_USAGE


def test_metrics_count_tasks_and_waits() -> None:
    """Each task is in one state, each wait in one bucket."""
    decisions = simulated(1)
    counted = Metrics(is_fleet=True)
    for each in decisions:
        counted.take(each)
    found = {each.name: each.points for each in counted.metrics()}
    assert found["lifefold.entries"] == (Point((), len(decisions)),)
    assert sum(each.value for each in found["lifefold.tasks"] if isinstance(each, Point)) == 3
    (waits,) = found["lifefold.task.wait"]
    assert isinstance(waits, Distribution)
    assert 0 <= waits.least <= waits.most <= waits.total
    assert len(waits.counts) == len(waits.bounds) + 1


def test_metrics_of_any_system_have_its_states() -> None:
    """An entity counts in its present state only."""
    counted = Metrics(is_fleet=False)
    for each in Ledger(lobby).fold(entries_of(RUN)):
        counted.take(each)
    found = {each.name: each.points for each in counted.metrics()}
    assert sum(each.value for each in found["lifefold.entities"] if isinstance(each, Point)) == len(
        {step.entity for each in Ledger(lobby).fold(entries_of(RUN)) for step in each.reaction.transitions}
    )


def test_the_name_of_an_activity_in_words() -> None:
    """The type of an activity is one word, a span has several."""
    assert in_words("CheckOutWork") == "check out work"
