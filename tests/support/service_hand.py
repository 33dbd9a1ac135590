"""A service driven by hand: what people write to it, its interval, and its runs."""

from typing import Any, Final

from aggregate_hand import Hand
from lifefold.core.fleet import Plan, ServicePlan, opening
from lifefold.core.fleet.service import inbox, trigger
from lifefold.core.kernel import Opened
from lifefold.core.lifecycles import process, session
from lifefold.effects import Every

TRIGGER: Final = "trigger:1"


def serving(**limits: Any) -> Hand:
    """Return a service that is up, with an interval, and that takes messages."""
    plan = ServicePlan("web", process.Limits(**limits), triggers=(Every(60_000),), takes_messages=True)
    opened = dict(opening(Plan("x", (), (), services=(plan,)), 0))["service/web"].event
    assert isinstance(opened, Opened)
    return Hand("service/web", dict(opened.records))


def send(of: Hand, *texts: str) -> Hand:
    """Write messages."""
    for text in texts:
        of.give("inbox", inbox.MessageArrived(text))
    return of


def fire(of: Hand) -> Hand:
    """Let the interval be due."""
    return of.report(TRIGGER, "AwaitTrigger", trigger.Triggered(of.now_ms, "every 1m"))


def ends(of: Hand, outcome: session.Error | session.Timeout | None = None) -> Hand:
    """Let the run start, and end."""
    number = of.record("invocation").session_seq
    if of.state("invocation") == "Spawning":
        of.report("invocation", "RunSession", session.SessionStarted(number))
    return of.report("invocation", "RunSession", session.SessionExited(outcome or session.Success()))
