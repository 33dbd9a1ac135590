"""The counterexamples of a check as a test file: it fails as long as the rules allow them.

Each trace is replayed before it is written, so the written test is known to fail.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from unittest import SkipTest

from lifefold.core.kernel import ActivityEnded, Aggregate, Cause, Envelope, Machine, SystemStep, TimerFired
from lifefold.interpreters.certificates.source import Names, Unwritable
from lifefold.interpreters.check.checking import NEVER_STUCK
from lifefold.interpreters.replay import Replay
from lifefold.interpreters.report.emitted_file import docstring, head, title
from lifefold.interpreters.report.finding import Outcome, Verdict
from lifefold.interpreters.report.trace import Attempt, CrashTrace, Trace
from lifefold.interpreters.search.report import Report
from lifefold.interpreters.search.rule_error import ADDRESSED
from lifefold.interpreters.targets.target import Target

WIDTH: Final = 110
BEGIN: Final = "BEGIN"
"""The name of the world in which the tests of a file begin."""

_RUN: Final = "run"

Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def emitted(checked: Sequence[tuple[Target, Report]], command: str = "check") -> tuple[str, tuple[str, ...]]:
    """Return the file for all broken properties, empty if there are none, and those without a test, with reasons.

    ``command`` is the one that writes the file. Raises ``Unwritable`` for a world in which a target begins.
    """
    names = Names(_RUN, BEGIN, "print", "range")
    tests: dict[str, str] = {}
    without: list[str] = []
    for target, report in checked:
        for verdict in report.verdicts:
            if verdict.outcome is Outcome.BROKEN and verdict.trace is not None:
                try:
                    name = title(target.name, verdict.name, tests)
                    tests[name] = "\n".join(_test(name, target, verdict, verdict.trace, names))
                except (Unwritable, SkipTest) as error:
                    without.append(f"{verdict.owner}: {verdict.name}: {error}")
    if not tests:
        return "", tuple(without)
    first = f'{head(command)}: traces on which a property is broken. Fails until they are fixed."""'
    begins = [line for target, _ in checked if target.begin is not None for line in begin_lines(target, names)]
    return "\n".join([first, "", *names.lines(), "", *begins, *([""] if begins else []), *tests.values(), ""]), tuple(
        without
    )


def emitted_run(target: Target, steps: Sequence[SystemStep], about: str, command: str) -> str:
    """Return a file whose test takes these steps from the world in which a target begins, and judges every property.

    A step that the rules refuse by now ends the test as skipped. Raises ``Unwritable``.
    """
    names = Names(_RUN, BEGIN, "print", "range")
    begins = [*begin_lines(target, names)]
    spelled, run = _begun(target, names)
    lines = [line for step in steps for line in _line(target, run, step, names)]
    outcome = "Fails" if run.broken() else "Passes"
    test = [
        f"def {title(target.name, about, ())}() -> None:",
        f"    {docstring(f'Every property holds on {about}.')}",
        f"    {_RUN} = {spelled}",
        *lines,
        f"    assert not {_RUN}.broken(), {_RUN}.story()",
    ]
    first = f'{head(command)}: recorded steps of a log. {outcome} with the rules that have written it."""'
    return "\n".join([first, "", *names.lines(), "", *begins, "", "", *test, ""])


def begin_lines(target: Target, names: Names) -> Iterator[str]:
    """Yield the lines of the world in which a target begins. Raises ``Unwritable``."""
    begin = target.begin
    if begin is None:
        return
    yield f"{BEGIN} = {names.of('lifefold.core.kernel', 'World')}("
    yield f"    {_system(target, names)},"
    yield "    {"
    for name, aggregate in begin.aggregates.items():
        yield from _aggregate(name, aggregate, names)
    yield "    },"
    in_flight = (f"{names.expression(key)}: {names.expression(each)}" for key, each in begin.in_flight.items())
    yield from ("    {", *(f"        {each}," for each in in_flight), "    },") if begin.in_flight else ("    {},",)
    yield f"    {begin.now_ms:_},"
    yield ")"


def _aggregate(name: str, of: Aggregate, names: Names) -> Iterator[str]:
    """Yield the lines of an aggregate: one for each entity, one for each other part that it has."""
    maps = names.of("lifefold.core.kernel", "PersistentMap")
    yield f"        {names.expression(name)}: {names.of('lifefold.core.kernel', 'Aggregate')}("
    yield f"            {names.expression(name)},"
    yield f"            {of.version},"
    yield f"            {maps}({{"
    for ref, entity in of.entities.items():
        yield f"                {names.expression(ref)}: {names.expression(entity)},"
    yield "            }),"
    for part in ("views", "sent", "received", "quarantined"):
        if value := getattr(of, part):
            yield f"            {part}={names.expression(value)},"
    yield "        ),"


def _system(target: Target, names: Names) -> str:
    """Return the expression of the system of a target."""
    spelled = target.spelled.replace(target.needs[1], names.of(*target.needs), 1)
    return f"{names.of('lifefold', 'alone')}({spelled})[0]" if isinstance(target.subject, Machine) else spelled


def _test(name: str, target: Target, verdict: Verdict, trace: Trace, names: Names) -> Iterator[str]:
    if isinstance(trace, CrashTrace):
        raise Unwritable("it is about a runner, and no test of the rules can show that")
    if verdict.name == ADDRESSED:
        raise Unwritable("the rules go on after it; the opening lacks an aggregate")
    spelled, replayed = _begun(target, names)
    lines = list(_body(target, replayed, trace, names))
    if trace.attempt is not None:
        lines.append(_attempted(target, replayed, trace.attempt, names))
    elif _is_kept(replayed, verdict):
        raise Unwritable("the property holds when its steps are taken alone")
    yield f"\ndef {name}() -> None:"
    yield f"    {docstring(f'{verdict.owner}: {verdict.name}.')}"
    yield f"    {_RUN} = {spelled}"
    yield from lines
    if trace.attempt is None:
        yield f"    assert {_question(verdict, names)}, {_RUN}.story()"
    yield ""


def _begun(target: Target, names: Names) -> tuple[str, Replay]:
    commands = target.bounds.commands
    more = "" if commands is None else f", commands={commands}"
    name = names.of(*target.needs)
    spelled = target.spelled.replace(target.needs[1], name, 1)
    made = f"{names.of('lifefold.interpreters.replay', 'Replay')}("
    besides = ", ".join(f"*{names.of(*each)}" for each in target.properties)
    with_properties = f".with_properties({besides})" if besides else ""
    if target.begin is not None:
        replayed = Replay(target.subject, begin=target.begin, commands=commands)
        return f"{made}{spelled}{with_properties}, begin={BEGIN}{more})", replayed
    if isinstance(target.subject, Machine):
        started = "" if target.record is None else f".starting({names.expression(target.record)})"
        return f"{made}{spelled}{started}{with_properties}{more})", Replay(target.subject, commands=commands)
    replayed = Replay(target.subject, target.opening, commands=commands)
    if target.opened_there:
        return f"{made}*{spelled}{more})", replayed
    opening = ",\n        ".join(names.expression(each) for each in target.opening)
    return f"{made}{spelled}{with_properties}, [\n        {opening},\n    ]{more})", replayed


def _body(target: Target, run: Replay, trace: Trace, names: Names) -> Iterator[str]:
    for happening in trace.steps:
        yield from _line(target, run, happening, names)
    if trace.cycle is None:
        return
    choices: list[int] = []
    run.goes_round()
    yield f"    {_RUN}.goes_round()"
    for happening in trace.cycle:
        choices.append(_choice(run, happening))
        yield from _line(target, run, happening, names)
    if not trace.cycle:
        return
    run.goes_round()
    yield f"    {_RUN}.goes_round()"
    for choice, happening in zip(choices, trace.cycle, strict=True):
        yield from _line(target, run, _chosen(run, choice, happening), names)


def _choice(run: Replay, happening: SystemStep) -> int:
    """Return the number of a step among the possible ones; -1 for a message."""
    if happening.cause is Cause.MESSAGE:
        return -1
    return [*run.world.choices_of(happening.aggregate)].index(happening.given)


def _chosen(run: Replay, choice: int, happening: SystemStep) -> SystemStep:
    """Return the same step in this run: the numbers in it may differ."""
    if choice < 0:
        return happening
    return happening._replace(envelope=[*run.world.choices_of(happening.aggregate)][choice].envelope)


def _attempted(target: Target, run: Replay, attempt: Attempt, names: Names) -> str:
    """Return the text of the step that raises an error now. Raises ``Unwritable`` if it is no step and no property."""
    if attempt.prop is not None:
        owner, prop = attempt.prop
        asked = f"keeps({names.expression(prop)}, of={names.expression(owner)})"
    elif attempt.envelope is not None and not attempt.envelope.generation < 0:
        method, arguments, options = _call(target, run, attempt.aggregate, attempt.cause, attempt.envelope)
        asked = f"{method}({', '.join(_words(arguments, options, names))})"
    else:
        raise Unwritable(attempt.said)
    return f"    {_RUN}.{asked}"


def _line(target: Target, run: Replay, happening: SystemStep, names: Names) -> Iterator[str]:
    """Take a step, and yield its text."""
    method, arguments, options = _call(target, run, happening.aggregate, happening.cause, happening.envelope)
    before = len(run.taken)
    getattr(run, method)(*arguments, **options)
    if len(run.taken) == before:
        raise Unwritable(f"a step of it is refused: {run.story()}")
    words = _words(arguments, options, names)
    line = f"    {_RUN}.{method}({', '.join(words)})"
    moved = run.moved()
    if len(line) + len(moved) + 4 <= WIDTH:
        yield f"{line}  # {moved}" if moved else line
        return
    if moved:
        yield f"    # {moved}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"    {_RUN}.{method}("
    yield from (f"        {each}," for each in words)
    yield "    )"


def _words(arguments: tuple[Any, ...], options: dict[str, Any], names: Names) -> list[str]:
    return [*map(names.expression, arguments), *(f"{key}={names.expression(each)}" for key, each in options.items())]


def _call(target: Target, run: Replay, aggregate: str, cause: Cause, envelope: Envelope) -> Call:
    place = () if isinstance(target.subject, Machine) else (aggregate, envelope.entity)
    later = envelope.at_ms - run.world.now_ms
    options = {"after_ms": later} if later > 0 else {}
    match cause, envelope.event:
        case Cause.COMMAND, event:
            return "command", (event, *place), options
        case Cause.REPORT, event:
            return "report", (envelope.slot, event, *place), options
        case Cause.TIMER, TimerFired(slot=slot):
            return "timer", (slot, *place), {} if envelope.at_ms == _due_ms(run, aggregate, envelope, slot) else options
        case Cause.CONFIRMATION, ActivityEnded(slot=slot):
            return "confirmation", (slot, *place), options
        case Cause.MESSAGE, event:
            return "message", (event, envelope.sender, aggregate), {}
        case _:
            return "recovery", place[:1], {}


def _due_ms(run: Replay, aggregate: str, envelope: Envelope, slot: str) -> int:
    entity = run.world.aggregates[aggregate].entities[envelope.entity]
    timer = entity.find(slot)
    return max(run.world.now_ms, 0 if timer is None else timer.deadline_ms)


def _is_kept(run: Replay, verdict: Verdict) -> bool:
    return run.can_go_on() if verdict.name == NEVER_STUCK else run.keeps(verdict.name, verdict.owner)


def _question(verdict: Verdict, names: Names) -> str:
    if verdict.name == NEVER_STUCK:
        return f"{_RUN}.can_go_on()"
    return f"{_RUN}.keeps({names.expression(verdict.name)}, of={names.expression(verdict.owner)})"
