"""Shrinking by *delta debugging*: the few deviations without which no property breaks.

Deviations are removed, a kind at a time, then many at a time and then fewer, as long as the same property breaks (A.
Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002). Then deviations move to earlier
occasions, so that less happens before them. Finally each deviation gets the smallest option. The result is minimal:
without any one of them the property holds.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lifefold.interpreters.simulate.choices import SPOKEN, Name

Deviations = dict[Name, int]

IsFound = Callable[[Mapping[Name, int]], bool]
"""Tells whether the property breaks with these deviations alone."""

FEW: Final = 12
"""The most deviations for which a removal is tried together with a move of another one."""

SOONER: Final = 6
"""The number of earlier occasions that are tried for each."""


def shrunk(deviations: Mapping[Name, int], is_found: IsFound) -> Deviations:
    """Return the few deviations that break the property, each as small as possible, and on the first occasions."""
    is_found = _once(is_found)
    few = _fewer(_of_few_kinds(dict(deviations), is_found), is_found)
    sooner = _sooner(few, is_found)
    if sooner != few:
        sooner = _fewer(sooner, is_found)
    return _otherwise(_fewer(_smaller(sooner, is_found), is_found), is_found)


def _once(is_found: IsFound) -> IsFound:
    """Return the same question that is asked once of the same deviations: each answer takes a simulation."""
    known: dict[frozenset[tuple[Name, int]], bool] = {}

    def is_known(deviations: Mapping[Name, int]) -> bool:
        key = frozenset(deviations.items())
        if key not in known:
            known[key] = is_found(deviations)
        return known[key]

    return is_known


def _of_few_kinds(deviations: Deviations, is_found: IsFound) -> Deviations:
    """Remove whole kinds of deviations, the most frequent kinds first."""
    kinds = [name[0] for name in deviations]
    for kind in sorted(dict.fromkeys(kinds), key=kinds.count, reverse=True):
        without = {name: way for name, way in deviations.items() if name[0] != kind}
        if is_found(without):
            deviations = without
    return deviations


def _fewer(deviations: Deviations, is_found: IsFound) -> Deviations:
    """Remove deviations: all but one of two halves, of four quarters, ..., then one by one."""
    if is_found({}):
        return {}
    size = len(deviations)
    while size > 1:
        size = -(-size // 2)
        enough = next(filter(is_found, _pieces(deviations, size)), None)
        if enough is not None:
            deviations, size = enough, len(enough)
        else:
            deviations = _without_pieces(deviations, size, is_found)
    while len(fewer := _without_pieces(deviations, 1, is_found)) < len(deviations):
        deviations = fewer
    return deviations


def _pieces(deviations: Deviations, size: int) -> Iterator[Deviations]:
    names = list(deviations)
    for begin in range(0, len(names), size):
        yield {name: deviations[name] for name in names[begin : begin + size]}


def _without_pieces(deviations: Deviations, size: int, is_found: IsFound) -> Deviations:
    """Remove each piece of this size that can be removed, once."""
    for piece in _pieces(deviations, size):
        rest = {name: way for name, way in deviations.items() if name not in piece}
        if rest and is_found(rest):
            deviations = rest
    return deviations


def _sooner(deviations: Deviations, is_found: IsFound) -> Deviations:
    """Move deviations from later occasions to earlier ones, with all that follow."""
    for whose in dict.fromkeys(map(_whose, deviations)):
        before, place = 0, 0
        while place < len(numbers := _occasions(deviations, whose)):
            number = numbers[place]
            for by in range(number - before - 1, max(0, number - before - 1 - SOONER), -1):
                moved = {_moved(name, whose, number, by): way for name, way in deviations.items()}
                if is_found(moved):
                    deviations, number = moved, number - by
                    break
            before, place = number, place + 1
    return deviations


def _otherwise(deviations: Deviations, is_found: IsFound) -> Deviations:
    """Remove a deviation together with a move of another one to an occasion nearby."""
    for name in deviations if len(deviations) <= FEW else ():
        rest = {other: way for other, way in deviations.items() if other != name}
        for whose in dict.fromkeys(map(_whose, rest)):
            for since in _occasions(rest, whose)[:1]:
                for by in (each for each in range(min(since - 1, SOONER), -SOONER, -1) if each):
                    moved = {_moved(other, whose, since, by): way for other, way in rest.items()}
                    if is_found(moved):
                        return _otherwise(_fewer(moved, is_found), is_found)
    return deviations


def _occasions(deviations: Deviations, whose: Name) -> list[int]:
    return sorted({_number(name) for name in deviations if _whose(name) == whose} - {0})


def _first_number(name: Name) -> int:
    """Return the place of the occasion in a name: its first number; its end, if it has none."""
    return next((place for place, part in enumerate(name) if isinstance(part, int)), len(name))


def _number(name: Name) -> int:
    return next((part for part in name if isinstance(part, int)), 0)


def _whose(name: Name) -> Name:
    """Return the owner of the occasions in a name: the operators, a runner, an activity, a channel."""
    place = _first_number(name)
    if name[0] in SPOKEN:
        return ("operators",)
    return name[max(1, place - 3) : place] or name[:1]


def _moved(name: Name, whose: Name, since: int, by: int) -> Name:
    """Return a name with an earlier occasion, if it is one of these, and not before ``since``."""
    place = _first_number(name)
    number = _number(name)
    if _whose(name) != whose or number < since:
        return name
    return (*name[:place], number - by, *name[place + 1 :])


def _smaller(deviations: Deviations, is_found: IsFound) -> Deviations:
    """Give each the smallest option."""
    now = dict(deviations)
    for name in deviations:
        least, most = 1, now[name]
        while least < most:
            middle = (least + most) // 2
            if is_found({**now, name: middle}):
                most = middle
            else:
                least = middle + 1
        if most < now[name] and is_found({**now, name: most}):
            now[name] = most
    return now
