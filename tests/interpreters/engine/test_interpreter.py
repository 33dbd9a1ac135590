"""Interpreters: a handler for everything that a system can request, or an error that names the missing ones."""

import re

import pytest

from engine_harness import Hands, MemoryLog
from kiln import Announce, Fire, system
from lifefold.core import fleet
from lifefold.core.kernel import Aggregate
from lifefold.effects import BuildPrompt, Effect, MergeWork, RefreshWorktree, RunSession
from lifefold.interpreters.engine import EffectContext, Engine, Interpreter, MissingHandlersError

pytestmark = pytest.mark.anyio


async def nothing(*_args: object) -> None:
    """Handle whatever it is."""


@pytest.mark.parametrize(
    ("interpreter", "missing"),
    [
        (Interpreter(), "no handler for Announce, Fire: the system 'pottery' can request it"),
        (Interpreter({Announce: nothing}), "no handler for Fire: "),
        (Interpreter(activities={Fire: nothing}), "no handler for Announce: "),
    ],
    ids=["nothing", "no activity", "no effect"],
)
async def test_a_missing_handler_is_an_error_when_the_engine_is_made(interpreter: Interpreter, missing: str) -> None:
    """Not at the first request: the error names every effect and activity without a handler."""
    with pytest.raises(MissingHandlersError, match=re.escape(missing)):
        Engine(system, MemoryLog().open(), interpreter)


async def test_what_rules_serve_needs_no_handler() -> None:
    """The fleet's own rules write prompts and go on to the next round; everything else has to be there."""
    with pytest.raises(MissingHandlersError) as raised:
        Engine(fleet.system, MemoryLog().open(), Interpreter())
    for served in (BuildPrompt, RefreshWorktree):
        assert served.__name__ not in str(raised.value)
    for wanted in (RunSession, MergeWork):
        assert wanted.__name__ in str(raised.value)


async def test_a_handler_too_many_does_not_matter() -> None:
    """An interpreter may serve more than the system asks for."""

    class Other(Effect, frozen=True):
        pass

    hands = Hands()
    engine = Engine(system, MemoryLog().open(), Interpreter({Other: nothing}).over(hands.interpreter()))
    assert not engine.has_ended


def test_the_interpreter_on_top_goes_first() -> None:
    """``over`` uses the left one's handlers, and the other's where it has none; neither is changed."""

    async def other(*_args: object) -> None:
        pass

    top, base = Interpreter({Announce: other}), Interpreter({Announce: nothing}, {Fire: nothing})
    both = top.over(base)
    assert (both.effects, both.activities) == ({Announce: other}, {Fire: nothing})
    assert (top.activities, base.effects) == ({}, {Announce: nothing})
    assert base.over(top).effects == {Announce: nothing}


def test_a_subclass_stays_one() -> None:
    """Composing a user's own interpreter gives one of its kind."""

    class Mine(Interpreter):
        pass

    assert isinstance(Mine().over(Interpreter()), Mine)


def test_an_effect_is_identified_by_its_place_in_the_log() -> None:
    """Aggregate, entry and index: the same after every crash."""
    origin = EffectContext(Aggregate("kiln/a"), "kiln", 7, 2)
    assert origin.identity == ("kiln/a", 7, 2)
