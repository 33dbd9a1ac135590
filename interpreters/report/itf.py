"""Traces in the Informal Trace Format of Apalache and Quint, which other tools for specifications read.

A trace has a state after each input. Its variables:

- ``aggregates``: a map of the aggregates, each a map of its entities; an entity has its ``state``, its ``record``, its
  ``version``, and the slots of what is ``running``;
- ``in_flight``: the messages that no receiver has accepted yet;
- ``input``: what has led to the state, an empty tuple in the first one;
- ``now_ms``: the time in Unix milliseconds.

A value of Python becomes the nearest one of the format: a struct a record, and an event a variant with its type as the
tag. A tuple becomes a list, a dictionary a map, and None the empty tuple. The format has no floating-point numbers, so
they are ``#unserializable`` texts. A lasso has its ``loop``, the index of the state to which the last one returns.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final, cast

import msgspec

from lifefold.core.kernel import Aggregate, Entity, Event, SystemStep, World, sent_in
from lifefold.effects import Tell
from lifefold.interpreters.report.trace import CrashTrace, Trace

Json = dict[str, Any]

VARIABLES: Final = ("aggregates", "in_flight", "input", "now_ms")

DESCRIPTION: Final = "https://apalache-mc.org/docs/adr/015adr-trace.html"

EXACT: Final = 1 << 53
"""A whole number of this size or more is written as text, because other readers of JSON would round it."""

NOTHING: Final[Json] = {"#tup": []}


def of_trace(title: str, trace: Trace, begin: World) -> Json:
    """Return the trace of a report from the world in which it begins.

    A crash has the decisions of its runners as steps.
    """
    steps = [*trace.steps, *(trace.cycle or ())]
    if isinstance(trace, CrashTrace):
        steps += [each.decision for each in trace.incidents if each.decision is not None]
    states = list(_states(steps, begin))
    # The cycle begins after the last step before it: the state with that number, since the first one has number 0.
    loop = None if trace.cycle is None else len(trace.steps) if trace.cycle else len(states) - 1
    return _trace(title, states, loop)


def of_steps(title: str, steps: Iterable[SystemStep], begin: World) -> Json:
    """Return the steps of a run or of a log from a world on."""
    return _trace(title, list(_states(steps, begin)))


def text(trace: Json) -> str:
    """Return a trace as a file has it: a line for each state."""
    head = {key: value for key, value in trace.items() if key != "states"}
    states = ",\n".join(_dumped(each) for each in trace["states"])
    return f'{_dumped(head)[:-1]},"states":[\n{states}\n]}}\n'


def is_written_here(file: bytes) -> bool:
    """Tell whether a file is such a trace, by its beginning."""
    return file.startswith(b'{"#meta":{"format":"ITF"')


def _dumped(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _trace(title: str, states: list[Json], loop: int | None = None) -> Json:
    meta = {"format": "ITF", "format-description": DESCRIPTION, "source": "lifefold", "description": title}
    numbered = [{"#meta": {"index": index}, **state} for index, state in enumerate(states)]
    return {
        "#meta": meta,
        "vars": list(VARIABLES),
        **({} if loop is None else {"loop": loop}),
        "states": numbered,
    }


def _states(steps: Iterable[SystemStep], begin: World) -> Iterator[Json]:
    """Yield the state before the first step, and the one after each."""
    aggregates = {name: _aggregate(of) for name, of in begin.aggregates.items()}
    in_flight: dict[tuple[str, str, int], Tell] = {**begin.in_flight}
    now_ms = begin.now_ms
    yield _state(aggregates, in_flight, NOTHING, now_ms)
    for step in steps:
        name, envelope = step.aggregate, step.envelope
        aggregates[name] = _aggregate(step.reaction.aggregate)
        in_flight.update(((name, each.aggregate, each.ordinal), each) for each in sent_in(step.reaction))
        if envelope.sender:
            in_flight.pop((envelope.sender, name, envelope.ordinal), None)
        now_ms = max(now_ms, envelope.at_ms)
        yield _state(aggregates, in_flight, _input(step), now_ms)


def _state(aggregates: Mapping[str, Json], in_flight: Mapping[Any, Tell], given: Json, now_ms: int) -> Json:
    messages = [
        {"sender": sender, "receiver": receiver, "entity": tell.entity, "event": value(tell.event)}
        for (sender, receiver, _), tell in in_flight.items()
    ]
    return {
        "aggregates": {"#map": [[name, of] for name, of in aggregates.items()]},
        "in_flight": messages,
        "input": given,
        "now_ms": value(now_ms),
    }


def _input(step: SystemStep) -> Json:
    envelope = step.envelope
    return {
        "aggregate": step.aggregate,
        "entity": envelope.entity,
        "event": value(envelope.event),
        "cause": str(step.cause),
        "actor": envelope.actor,
    }


def _aggregate(of: Aggregate) -> Json:
    return {"#map": [[ref, _entity(entity)] for ref, entity in of.entities.items()]}


def _entity(of: Entity[Any]) -> Json:
    return {
        "state": str(of.state),
        "record": value(of.record),
        "version": value(of.version),
        "running": [each.slot for each in of.running],
    }


def value(of: Any) -> Any:
    """Return a value of a record or an event in the format."""
    if of is None:
        return NOTHING
    if isinstance(of, Enum):
        return value(of.value)
    if isinstance(of, int) and not isinstance(of, bool):
        return of if abs(of) < EXACT else {"#bigint": str(of)}
    if isinstance(of, Event):
        return {"tag": type(of).__name__, "value": _fields(of)}
    return of if isinstance(of, bool | str) else _whole(of)


def _whole(of: Any) -> Any:
    if isinstance(of, msgspec.Struct):
        return _fields(of)
    if isinstance(of, Mapping):
        return {"#map": [[value(key), value(each)] for key, each in cast("Mapping[object, object]", of).items()]}
    if isinstance(of, list | tuple):
        return [value(each) for each in cast("Sequence[Any]", of)]
    if isinstance(of, set | frozenset):
        return {"#set": sorted((value(each) for each in cast("AbstractSet[Any]", of)), key=repr)}
    return {"#unserializable": repr(of)}


def _fields(of: msgspec.Struct) -> Json:
    return {name: value(getattr(of, name)) for name in of.__struct_fields__}
