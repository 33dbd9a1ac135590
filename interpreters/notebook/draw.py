"""Drawings by one name: a machine's states, a system's messages, and the sequence diagram of what happened in it."""

from functools import singledispatch
from typing import Any

from lifefold.core.kernel import Machine, System
from lifefold.interpreters.notebook.history import History
from lifefold.interpreters.notebook.play import Play
from lifefold.interpreters.views.picture import Drawing, correspondence, statechart
from lifefold.interpreters.views.sequence import MOST, Sequence, sequence


@singledispatch
def draw(subject: Any, *, most: int = MOST) -> Drawing | Sequence:
    """Return a machine or a system as a drawing, a history or a play as a sequence diagram of its first inputs.

    ``most`` limits the inputs. Raises ``TypeError`` for anything else.
    """
    del most
    message = f"a {type(subject).__name__} has no drawing; a Machine, System, History or Play has one"
    raise TypeError(message)


@draw.register(Machine)
def _machine(subject: Machine[Any], *, most: int = MOST) -> Drawing:
    del most
    return statechart(subject)


@draw.register
def _system(subject: System, *, most: int = MOST) -> Drawing:
    del most
    return correspondence(subject)


@draw.register
def _history(subject: History, *, most: int = MOST) -> Sequence:
    return sequence(subject.system.name, subject.steps(), most=most)


@draw.register
def _play(subject: Play, *, most: int = MOST) -> Sequence:
    return sequence(subject.subject.name, subject.path(), most=most)
