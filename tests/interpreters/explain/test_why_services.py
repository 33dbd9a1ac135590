"""Why a service is where it is: a sentence for every situation, what waits, and what moves it on."""

from typing import Any, Final

import pytest

from aggregate_hand import Hand
from lifefold.core.fleet import Plan, ServicePlan, opening
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Opened
from lifefold.core.lifecycles import session
from lifefold.effects import Changed, Cron
from lifefold.effects.service import Source
from lifefold.interpreters.explain import status
from lifefold.interpreters.explain.why import explain_service
from service_hand import ends, fire, send, serving

ONWARD: Final = 'its interval, due in 1 min and lifefold send web "...".'
COMES_BACK: Final[dict[str, Any]] = {"restart_policy": "on_failure", "max_consecutive_failures": 1}


def told(of: Hand, event: Any) -> Hand:
    """Give it a command of an operator."""
    return of.give("desired_state", event)


def fails(of: Hand) -> Hand:
    """Let a run fail."""
    return ends(send(of, "do it"), session.Error("exit 1"))


def triggered_by(*sources: Source) -> Hand:
    """Return a service with this trigger, and no other."""
    opened = dict(opening(Plan("x", (), (), services=(ServicePlan("web", triggers=sources),)), 0))
    event = opened["service/web"].event
    assert isinstance(event, Opened)
    return Hand("service/web", dict(event.records))


SITUATIONS: Final[dict[str, tuple[Hand, str, str, str]]] = {
    "nothing to do": (serving(), "web has waited for its triggers for 0 s.", "", ONWARD),
    "at work": (send(serving(), "one", "two"), "web is running and runs 'one'.", "'two'", ONWARD),
    "at work for its interval": (fire(serving()), "web is running and runs every 1m.", "", ONWARD),
    "a run has failed": (
        fails(serving(max_consecutive_failures=3)),
        "web has waited for its triggers for 0 s after 1 failed run in a row (exit 1).",
        "",
        ONWARD,
    ),
    "down for good": (
        fails(serving(max_consecutive_failures=1)),
        "web is down, for good (max consecutive failures reached (1): exit 1).",
        "",
        "Nothing: it is not restarted within this log.",
    ),
    "down, and coming back": (
        fails(serving(**COMES_BACK)),
        (
            "web is down and comes back (max consecutive failures reached (1): exit 1) "
            "after 1 failed run in a row (max consecutive failures reached (1): exit 1)."
        ),
        "",
        "Time: it is started again in 1 s.",
    ),
    "paused": (
        ends(told(send(serving(), "one"), desired_state.PauseWanted("lunch"))),
        "web is suspended for 0 s (manual) (lunch).",
        "",
        "lifefold resume web",
    ),
    "held": (
        told(serving(), desired_state.HoldWanted()),
        "web has waited for its triggers for 0 s.",
        "",
        "A runner: lifefold run FLEET.toml",
    ),
    "draining": (
        told(send(serving(), "one"), desired_state.DrainWanted()),
        "web is running and runs 'one'.",
        "",
        "The end of its run; then it is gone.",
    ),
    "waiting for a time": (
        triggered_by(Cron("0 9 * * *", "Europe/Berlin")),
        "web has waited for its triggers for 0 s.",
        "",
        "the next time of 0 9 * * * (Europe/Berlin).",
    ),
    "waiting for a file": (
        triggered_by(Changed("inbox")),
        "web has waited for its triggers for 0 s.",
        "",
        "a change of inbox.",
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_situation_of_a_service_has_its_sentence(name: str) -> None:
    """With the reason, if there is one, and with what a person can do about it."""
    of, sentence, waits, onward = SITUATIONS[name]
    said = explain_service(of.aggregate, of.now_ms)
    assert (said.sentence, said.waits, said.onward) == (sentence, waits, onward)
    assert said.state == of.state("process")


def test_an_interval_that_is_due_is_not_due_again_before_it_is_over() -> None:
    """What was due last counts, and not when it was run."""
    of = fire(serving())
    assert explain_service(of.aggregate, of.now_ms + 20_000).onward.startswith("its interval, due in 40 s")


def test_triggers_are_said_in_the_order_of_the_fleet_file_however_many_there_are() -> None:
    """The tenth comes after the second, here and in the status."""
    paths = [f"inbox-{n}" for n in range(1, 13)]
    of = triggered_by(*map(Changed, paths))
    assert [each.source for each in status.service_status(of.aggregate).triggers] == [Changed(each) for each in paths]
    said = explain_service(of.aggregate, of.now_ms).onward
    assert said.startswith("a change of inbox-1, a change of inbox-2")
