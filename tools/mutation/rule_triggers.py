"""Mutants of the triggers of a rule, for ``rule_mutation``: ``event=``, ``leaves=`` and ``enters=`` of ``rule``.

A trigger is lost, so that it narrows nothing. One of several events or states is missing. A state is replaced by
another of the same machine.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from lifefold.core.kernel import Machine, Rule, State, replace

Variant = tuple[str, str, Rule]
"""The kind of a mutant, its description, and its rule."""

_STATES: Final = ("leaves", "enters")


def other_triggers(of: Rule, machine: Machine[Any]) -> Iterator[Variant]:
    """Yield the rules that another trigger makes of a rule on a machine."""
    if of.events:
        yield "trigger lost", "is triggered without event=", replace(of, events=())
    for event in of.events if len(of.events) > 1 else ():
        less = tuple(each for each in of.events if each is not event)
        yield "trigger event lost", f"is not triggered by {event.__name__}", replace(of, events=less)
    states = tuple(machine.states)
    for trigger in _STATES:
        given: frozenset[State] = getattr(of, trigger)
        if given:
            yield "trigger lost", f"is triggered without {trigger}=", _with(of, trigger, frozenset())
        for state in (each for each in states if each in given):
            left = given - {state}
            if left:
                yield "trigger state lost", f"is not triggered if it {trigger} {state.name}", _with(of, trigger, left)
            for other in _next(state, given, states):
                what = f"is triggered if it {trigger} {other.name} instead of {state.name}"
                yield "another trigger state", what, _with(of, trigger, left | {other})


def _with(of: Rule, trigger: str, states: frozenset[State]) -> Rule:
    return replace(of, leaves=states) if trigger == "leaves" else replace(of, enters=states)


def _next(state: State, given: frozenset[State], states: Sequence[State]) -> Sequence[State]:
    """Return the next state of the machine that does not trigger the rule; nothing if every state does."""
    at = states.index(state)
    return [each for each in (*states[at + 1 :], *states[:at]) if each not in given][:1]
