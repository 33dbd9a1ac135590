"""The beginning of a search: an opening, or the state of a system at any moment."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from lifefold.core.kernel import Envelope, System, World

Opening = tuple[tuple[str, Envelope], ...]
"""The first input of each aggregate, by its name."""

Beginning = Opening | World
"""The opening of a system, or the world in which a search begins, such as one folded from a log."""


def names_of(beginning: Beginning) -> tuple[str, ...]:
    """Return the names of the aggregates, in their order."""
    return tuple(beginning.aggregates) if isinstance(beginning, World) else tuple(name for name, _ in beginning)


def opened(system: object, given: Any) -> Opening:
    """Return the opening of a system, from pairs of an aggregate's name and an envelope.

    Raises ``TypeError`` if it is no system, and ``ValueError`` with the error of its opening.
    """
    if not isinstance(system, System):
        message = f"a Machine is accepted, or a System with its opening=; not a {type(system).__name__}"
        raise TypeError(message)
    pairs: Any = given.items() if _is_mapping(given) else given
    try:
        opening: Opening = tuple((str(name), envelope) for name, envelope in pairs)
    except (TypeError, ValueError) as error:
        message = "the opening must be pairs of an aggregate's name and an Envelope"
        raise ValueError(message) from error
    for problem in _problems(system, opening):
        raise ValueError(problem)
    return opening


def unopened(given: Any) -> None:
    """Check that a machine has no opening: it begins with its record. Raises ``ValueError``."""
    if tuple(given):
        message = (
            "a Machine begins with its record, machine.starting(record) with another one; opening= is for a System"
        )
        raise ValueError(message)


def _is_mapping(given: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(given, Mapping)


def _problems(system: System, opening: tuple[tuple[str, Any], ...]) -> Iterator[str]:
    kinds = ", ".join(system.aggregates)
    if not opening:
        yield f"the opening is empty; the aggregates are {kinds}"
    names = [name for name, _ in opening]
    for name, envelope in opening:
        kind = name.partition("/")[0]
        if not isinstance(envelope, Envelope):
            yield f"the opening of {name!r} is a {type(envelope).__name__}, not an Envelope"
        if kind not in system.aggregates:
            yield f"{name!r} is none of {kinds}"
        if names.count(name) > 1:
            yield f"{name!r} is in the opening twice; others of its kind are {kind}/NAME"
