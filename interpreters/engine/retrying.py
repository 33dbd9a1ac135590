"""What the log says of handlers that have failed, and what an engine does when one fails."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from lifefold.core.kernel import EntityQuarantined, Envelope, HandlerFailed, replace
from lifefold.interpreters.engine.failures import OnError, Then, said
from lifefold.interpreters.engine.inputs import Host


class Handled(NamedTuple):
    """What a handler is busy with: for which entity; ``event`` says which effect or activity, with attempt 0."""

    aggregate: str
    entity: str
    event: HandlerFailed

    @property
    def key(self) -> tuple[str, str, int, int, str, int]:
        """What it is known by."""
        event = self.event
        return self.aggregate, self.entity, event.version, event.index, event.slot, event.generation


class Failures:
    """How often each handler has failed, and what is done about it."""

    def __init__(self, otherwise: OnError) -> None:
        """Take the policy for handlers for which none is declared."""
        self._otherwise: Final = otherwise
        self._last: Final[dict[tuple[str, str, int, int, str, int], HandlerFailed]] = {}

    def note(self, aggregate: str, envelope: Envelope) -> None:
        """Take in an entry of the log."""
        if isinstance(envelope.event, HandlerFailed):
            handled = Handled(aggregate, envelope.entity, envelope.event)
            self._last[handled.key] = envelope.event

    def attempts(self, handled: Handled) -> int:
        """Return how often the same was tried in vain."""
        last = self._last.get(handled.key)
        return 0 if last is None else last.attempt

    def is_given_up(self, handled: Handled) -> bool:
        """Tell whether it is on record that the same is not tried any more."""
        last = self._last.get(handled.key)
        return last is not None and last.then in {Then.QUARANTINE, Then.SKIP}

    def policy(self, declared: Mapping[type, OnError], kind: type) -> OnError:
        """Return what is to be done about a handler of a type that raises."""
        return declared.get(kind, self._otherwise)


async def take_note(host: Host, handled: Handled, error: Exception, policy: OnError) -> Then | None:
    """Write down that a handler has failed, and wait until it may be tried again; return what follows if it may not.

    An entity is quarantined here. Of what stops the engine nothing is written: the next one tries again.
    """
    name, ref, meant = handled
    attempt = host.failures.attempts(handled) + 1
    then = None if attempt <= policy.retries else policy.then
    if then is Then.STOP:
        return then
    failed = replace(meant, attempt=attempt, error=said(error), then="retry" if then is None else str(then))
    if then is Then.QUARANTINE:  # before the last failure is on record, or a crash between the two would lose it
        reason = f"the handler of {meant.handler} has failed {attempt} times: {failed.error}"
        await host.answered(name, Envelope(ref, EntityQuarantined(reason), host.clock.now_ms(), "engine"))
    await host.answered(name, Envelope(ref, failed, host.clock.now_ms(), "engine"))
    if then is None:
        await host.clock.sleep_until(host.clock.now_ms() + policy.pause_ms(attempt))
    return then
