"""The reducers of a machine as generated code: a function for every state and event, with its rows written out.

``Machine.plain_step`` defines their meaning, and a property test compares them with it. They save time: no row is
unpacked, no absent part is tested for, and no pattern is tested twice in a row. ``reduce`` makes its container where it
makes the step. A function is written at its first use, because most programs need a few of them only.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, cast

import msgspec
from returns.result import Success

from lifefold.core.kernel.record import Event, Record, State, replace
from lifefold.core.kernel.row import After, During, Row
from lifefold.core.kernel.step import Step
from lifefold.effects import Begin, Effect, StartTimer


class Arm(msgspec.Struct, frozen=True):
    """A row from one of its source states: pattern test, guard, action, target, ends, beginnings, the row."""

    test: Callable[[Any], bool] | None
    when: Callable[[Any, Any], bool] | None
    action: Callable[[Any, Any], Step[Any, Effect]] | None
    target: State
    ended: tuple[Effect, ...]
    begun: tuple[During[Any], ...]
    row: Row[Any]


def wrong_step(row: Row[Any], record: Record, done: object) -> TypeError:
    """Return the error for an action that returned something else than a step of its row."""
    if isinstance(done, Step):
        state = cast("Step[Record, Effect]", done).record.state
        return TypeError(f"{row}: its action sets state to {state}; accepted: {record.state}, only rows change it")
    return TypeError(f"{row}: its action returned {done!r}; accepted: Step(record, effects)")


Arms = Mapping[State, Mapping[type[Event], tuple[Arm, ...]]]
Reducer = Callable[[Any, Any], Any]


def start_timer(slot: str, delay_ms: int | None) -> tuple[StartTimer, ...]:
    """Return the effect that starts a timer; none for a timer without a duration."""
    return () if delay_ms is None else (StartTimer(slot, delay_ms),)


_NAMES: Mapping[str, object] = {
    "Begin": Begin,
    "StartTimer": StartTimer,
    "Step": Step,
    "Success": Success,
    "wrong_step": wrong_step,
    "replace": replace,
    "start_timer": start_timer,
}
_INDENT = "    "
_DOCSTRINGS = {
    False: """Take the transition as ``reduce`` does, without a container: a ``Step`` or an ``IllegalTransition``.""",
    True: """Take the transition: ``Success(Step)``, or ``Failure(IllegalTransition)`` with nothing changed.""",
}
"""The docstrings of the reducers, by whether they return a container."""
_BARE = ("return Step(became, {effects})",)
_CONTAINED = ("return Success(Step(became, {effects}))",)


def compiled(arms: Arms, refused: Reducer, *, contained: bool) -> Reducer:
    """Return a reducer; with ``contained`` its steps are in a ``Success``. ``refused`` answers if no row is taken."""
    answer = _CONTAINED if contained else _BARE
    functions: dict[State, dict[type[Event], Reducer]] = {state: {} for state in arms}

    def written(state: State, event: type[Event]) -> Reducer:
        rows = arms[state].get(event)
        take = refused if rows is None else _Writer(state, answer).function(rows, refused)
        functions[state][event] = take
        return take

    def reducer(record: Record, event: Event) -> Any:
        try:
            take = functions[record.state][type(event)]
        except KeyError:
            take = written(record.state, type(event))
        return take(record, event)

    reducer.__name__, reducer.__doc__ = "reduce" if contained else "step", _DOCSTRINGS[contained]
    reducer.__qualname__ = f"Machine.{reducer.__name__}"
    return reducer


class _Writer:
    """Writes the function for one state and event. The text contains no values, only names bound to them."""

    def __init__(self, state: State, answer: tuple[str, ...]) -> None:
        self._state = state
        self._answer = answer
        self._names: dict[str, Any] = dict(_NAMES)

    def function(self, arms: tuple[Arm, ...], refused: Reducer) -> Reducer:
        """Return the function."""
        lines = ["def take(record, event):", *_indented(self._rows(arms))]
        lines.append(f"{_INDENT}return {self._name(refused)}(record, event)")
        exec("\n".join(lines), self._names)  # noqa: S102 - made of our own words and names only
        take: Reducer = self._names["take"]
        return take

    def _name(self, value: object) -> str:
        name = f"value_{len(self._names)}"
        self._names[name] = value
        return name

    def _rows(self, arms: tuple[Arm, ...]) -> Iterator[str]:
        for test, group in groupby(arms, lambda arm: arm.test):
            lines = [line for arm in group for line in self._guarded(arm)]
            yield from lines if test is None else (f"if {self._name(test)}(event):", *_indented(lines))

    def _guarded(self, arm: Arm) -> Iterator[str]:
        lines = self._taken(arm)
        if arm.when is None:
            yield from lines
        else:
            yield f"if {self._name(arm.when)}(record, event):"
            yield from _indented(lines)

    def _taken(self, arm: Arm) -> Iterator[str]:
        target = self._name(arm.target)
        effects: list[str] = []
        if arm.action is None:
            yield f"became = replace(record, state={target})"
        else:
            yield f"done = {self._name(arm.action)}(record, event)"
            yield "if done.__class__ is not Step or done.record.state is not record.state:"
            yield f"{_INDENT}raise wrong_step({self._name(arm.row)}, record, done)"
            yield from self._moved(arm, target)
            effects.append("done.effects")
        if arm.ended:
            effects.append(self._name(arm.ended))
        if arm.begun:
            effects.append(f"({' '.join(f'{self._begin(during)},' for during in arm.begun)})")
        yield from (line.format(effects=" + ".join(effects) or "()") for line in self._answer)

    def _moved(self, arm: Arm, target: str) -> Iterator[str]:
        if arm.target is not self._state:
            yield f"became = replace(done.record, state={target})"
        else:
            yield "became = done.record"

    def _begin(self, during: During[Any]) -> str:
        if isinstance(during, After):
            start = "*start_timer" if during.is_optional else "StartTimer"
            return f"{start}({during.slot!r}, {self._name(during.duration_ms)}(became))"
        return f"Begin({during.slot!r}, {self._name(during.make)}(became))"


def _indented(lines: Iterator[str] | list[str]) -> Iterator[str]:
    return (_INDENT + line for line in lines)
