"""The receivers of facts beside the turn: a rule for each fact that another entity decides about.

A rule of this module takes one kind of fact of ``output`` and sends the event that its receiver understands. It asks
first whether the worker has the receiver.
"""

from collections.abc import Iterator
from typing import Final, cast

from lifefold.core.fleet.worker import conversation, output
from lifefold.core.kernel import Aggregate, Dispatch, Rule, Transition, rule
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session_limits import LimitableSession, LimitReached


@rule(on=output.machine, event=output.LimitSeen)
def interrupt_at_a_limit(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Interrupt a running session whose account has met a limit: some programs wait silently for its end."""
    seen = cast("output.LimitSeen", transition.event)
    of = worker.record("session")
    if isinstance(of, LimitableSession) and of.account and of.state is session.State.RUNNING:
        yield Dispatch("session", LimitReached(seen.until_ms, seen.scope, seen.message))


@rule(on=output.machine, event=output.ConversationSeen, beside=conversation.REF)
def name_conversation(_worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Keep the name that the program gives its conversation while the session runs: a later session resumes it."""
    yield Dispatch(conversation.REF, conversation.Began(cast("output.ConversationSeen", transition.event).id))


RULES: Final[tuple[Rule, ...]] = (interrupt_at_a_limit, name_conversation)
"""The rules, in their order. They come after the rules of the turn."""
