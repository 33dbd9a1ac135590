"""The few deviations without which a run would be orderly and nothing would be found: *delta debugging*.

Deviations are left out, many at a time and then fewer, as long as the same promise is still broken (A. Zeller and R.
Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002); then each that is left is made as small as it can
be. What remains is minimal: without any one of them the promise is kept.
"""

from collections.abc import Callable, Mapping

from lifefold.interpreters.simulate.choices import Name

Deviations = dict[Name, int]

IsFound = Callable[[Mapping[Name, int]], bool]
"""Tells whether with these deviations alone it is still found."""


def shrunk(deviations: Mapping[Name, int], is_found: IsFound) -> Deviations:
    """Return the few with which it is found, each as small as it can be."""
    return _smaller(_fewer(dict(deviations), is_found), is_found)


def _fewer(deviations: Deviations, is_found: IsFound) -> Deviations:
    """Leave out what can be left out."""
    if is_found({}):
        return {}
    names, parts = list(deviations), 2
    while len(names) > 1:
        size = -(-len(names) // parts)
        pieces = [names[begin : begin + size] for begin in range(0, len(names), size)]
        rests = ([name for name in names if name not in set(piece)] for piece in pieces)
        found = next(
            (each for each in (*pieces, *rests) if len(each) < len(names) and _with(deviations, each, is_found)), None
        )
        if found is not None:
            names, parts = found, max(2, parts - 1)
        elif size == 1:
            break
        else:
            parts = min(len(names), 2 * parts)
    return {name: deviations[name] for name in names}


def _with(deviations: Deviations, names: list[Name], is_found: IsFound) -> bool:
    return is_found({name: deviations[name] for name in names})


def _smaller(deviations: Deviations, is_found: IsFound) -> Deviations:
    """Make each as small as it can be."""
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
