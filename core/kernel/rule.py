"""Rules: what follows for other entities of an aggregate from a transition of one of its machines.

A *rule* is a pure function of an aggregate and a transition (``reaction`` runs it). It declares which transitions
trigger it: ``@rule(on=task.machine, event=Completed, leaves=..., enters=...)``. The kernel looks rules up by machine,
event and states, and runs those that a transition triggers in their declared order.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec

from lifefold.core.kernel.aggregate import Aggregate
from lifefold.core.kernel.entity import ActivityEnded, Created, Transition
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.record import Event, Record, State
from lifefold.core.kernel.shown import shown
from lifefold.effects import Tell


class Dispatch(msgspec.Struct, frozen=True, gc=False):
    """A rule action: an event for an entity of the same aggregate."""

    entity: str
    event: Event


class Create(msgspec.Struct, frozen=True, gc=False):
    """A rule action: a new entity of the same aggregate."""

    entity: str
    record: Record


RuleAction = Dispatch | Create | Tell


Follow: TypeAlias = Callable[[Aggregate, Transition], Iterable[RuleAction]]
"""The function of a rule: what follows from a transition."""


class Rule(msgspec.Struct, frozen=True, gc=False):
    """What follows, inside the aggregate, from transitions of the machine it is ``on``. Made by ``rule``.

    ``events``, ``leaves`` and ``enters`` are its triggers. An empty one does not narrow them. ``beside`` is an entity
    without which the rule does not exist. ``follow`` is the bare function, which relies on them; a call of the rule
    itself asks for nothing where it is not triggered.
    """

    name: str
    on: str
    follow: Follow
    events: tuple[type[Event], ...] = ()
    leaves: frozenset[State] = frozenset()
    enters: frozenset[State] = frozenset()
    beside: str = ""

    def __repr__(self) -> str:
        """Return its name, its machine and its triggers."""
        parts = ["event " + "/".join(each.__name__ for each in self.events)] if self.events else []
        parts += ["leaves " + "/".join(sorted(self.leaves))] if self.leaves else []
        parts += ["enters " + "/".join(sorted(self.enters))] if self.enters else []
        parts += [f"beside {self.beside}"] if self.beside else []
        return shown(f"Rule {self.name} on {self.on}: {', '.join(parts) or 'every transition'}")

    def __call__(self, aggregate: Aggregate, transition: Transition) -> Iterable[RuleAction]:
        """Return what follows from a transition; nothing from one that does not trigger the rule."""
        return self.follow(aggregate, transition) if self.is_in(aggregate) and self.is_triggered(transition) else ()

    def is_in(self, aggregate: Aggregate) -> bool:
        """Tell whether the aggregate has the entity that the rule needs."""
        return not self.beside or self.beside in aggregate.entities

    def is_triggered(self, transition: Transition) -> bool:
        """Tell whether a transition triggers the rule: by its machine, the type of its event, and both states."""
        if transition.machine != self.on or (self.events and not isinstance(transition.event, self.events)):
            return False
        return (not self.leaves or transition.left in self.leaves) and (
            not self.enters or transition.entered in self.enters
        )


def rule(
    on: Machine[Any],
    *,
    event: type[Event] | tuple[type[Event], ...] | None = None,
    leaves: State | Iterable[State] | None = None,
    enters: State | Iterable[State] | None = None,
    beside: str = "",
) -> Callable[[Follow], Rule]:
    """Make a rule of a function ``(aggregate, transition) -> rule actions``, with what triggers it.

    Without triggers, every transition of the machine ``on`` does. Each trigger narrows them:

    - ``event``: the type of the event, or one of several. A base class stands for all events derived from it.
      ``Created`` stands for the first transition of an entity, ``ActivityEnded`` for the confirmed end of an activity.
    - ``leaves``: a change of state out of this state, or out of one of several.
    - ``enters``: a change of state into this state, or into one of several. A new entity enters its first state.

    A transition that stays in its state neither leaves nor enters it.

    ``beside`` is the reference of an optional entity: an aggregate without it does not have the rule.

    Raises ``ValueError``, with the name of the rule, for an event or a state that the machine does not have, and for an
    empty trigger.

    >>> from lifefold import rule
    >>> from lifefold.core.fleet.board import intake
    >>> @rule(on=intake.machine, enters=intake.State.CLOSED)
    ... def report(board, transition):
    ...     return ()
    >>> report
    <Rule report on intake: enters Closed>
    """
    events = event if isinstance(event, tuple) else () if event is None else (event,)
    known_events: tuple[type[Event], ...] = (*on.events, *_OF_ENTITIES)

    def made(follow: Follow) -> Rule:
        name = f"rule {follow.__name__} on {on.name}"
        for each in events:
            if not any(issubclass(known, each) for known in known_events):
                raise ValueError(f"{name}: {each.__name__} is no event of {on.name}; it has {_names(on.events)}")
        if event == ():
            raise ValueError(f"{name}: event= names no event")
        left, entered = _states(name, on, "leaves", leaves), _states(name, on, "enters", enters)
        return Rule(follow.__name__, on.name, follow, events, left, entered, beside)

    return made


_OF_ENTITIES: Final[tuple[type[Event], ...]] = (Created, ActivityEnded)
"""The kernel's own events that are events of transitions."""


def _states(name: str, on: Machine[Any], trigger: str, given: State | Iterable[State] | None) -> frozenset[State]:
    """Return the states of a trigger. Raises ``ValueError`` for one that is not the machine's, and for none."""
    found: frozenset[State] = frozenset(() if given is None else (given,) if isinstance(given, State) else given)
    if given is not None and not found:
        raise ValueError(f"{name}: {trigger}= names no state")
    for each in found:
        # States are texts: one of another machine may be spelled alike.
        if not any(each is known for known in on.states):
            raise ValueError(f"{name}: {each!r} is no state of {on.name}; it has {', '.join(on.states)}")
    return found


def _names(events: Iterable[type[Event]]) -> str:
    return ", ".join(each.__name__ for each in events)
