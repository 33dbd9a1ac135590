"""A reducer whose outcome is another one each time ends a search at once, with the way to it and what differed."""

import itertools
from typing import Any, Never

import pytest

from lamp import BREAK, HALT, Click, Lamp, Light, Turned, lamp
from lifefold.core.kernel import Row, Step, replace, row
from lifefold.core.lifecycles import session
from lifefold.interpreters.check import check
from lifefold.interpreters.search.determinism import REPEATABLE

DRAWN = itertools.count()


def drawing(lamp: Lamp, _event: Turned) -> Step[Lamp, Never]:
    """Return another number each time, as a random one would be."""
    return Step(replace(lamp, turns=next(DRAWN)))


def clicking(lamp: Lamp, _event: Turned) -> Step[Lamp, Click]:
    """Make a noise every second time."""
    return Step(lamp, (Click(),) if next(DRAWN) % 2 else ())


def moody(_lamp: Lamp, _event: Turned) -> bool:
    """Agree every second time."""
    return next(DRAWN) % 2 == 0


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ({"action": drawing}, "is not deterministic, the same input gave lamp.turns "),
        ({"action": clicking}, "is not deterministic, the same input gave the effects ["),
        ({"when": moody}, "is not deterministic, the same input gave "),
    ],
    ids=["a field", "an effect", "a guard"],
)
def test_a_reducer_that_is_not_deterministic_is_found_out_at_once(components: dict[str, Any], said: str) -> None:
    """It would make new states for ever, or take a step that a search does not see."""
    otherwise: tuple[Row[Any], ...] = (row(Light.RED, Turned, Light.RED),) if "when" in components else ()
    report = check(lamp(row(Light.RED, Turned, Light.GREEN, **components), *otherwise, HALT, BREAK))
    (found,) = [each for each in report.broken() if each.name == REPEATABLE]
    assert said in " ".join(" ".join(found.lines()).split())
    assert report.states < 10


def test_of_a_lifecycle_that_is_deterministic_nothing_is_said() -> None:
    """Of the shipped ones the certificates say so."""
    assert REPEATABLE not in {each.name for each in check(session.machine).verdicts}
