"""Counting failed attempts of handlers from the log, and recording a new one."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from lifefold.core.kernel import EntityQuarantined, Envelope, HandlerFailed, replace
from lifefold.interpreters.engine.failures import OnError, Then, said
from lifefold.interpreters.engine.inputs import Host


class Handled(NamedTuple):
    """One call of a handler for an entity. ``event`` names the effect or activity, with attempt 0."""

    aggregate: str
    entity: str
    event: HandlerFailed

    @property
    def key(self) -> tuple[str, str, int, int, str, int]:
        """The identity under which attempts are counted."""
        event = self.event
        return self.aggregate, self.entity, event.version, event.index, event.slot, event.generation


class Failures:
    """The number of failed attempts per call of a handler, and the policies for them."""

    def __init__(self, otherwise: OnError) -> None:
        """Use ``otherwise`` for handlers without a declared policy."""
        self._otherwise: Final = otherwise
        self._last: Final[dict[tuple[str, str, int, int, str, int], HandlerFailed]] = {}

    def note(self, aggregate: str, envelope: Envelope) -> None:
        """Count an entry of the log if it records a failed attempt."""
        if isinstance(envelope.event, HandlerFailed):
            handled = Handled(aggregate, envelope.entity, envelope.event)
            self._last[handled.key] = envelope.event

    def attempts(self, handled: Handled) -> int:
        """Return the number of failed attempts."""
        last = self._last.get(handled.key)
        return 0 if last is None else last.attempt

    def is_given_up(self, handled: Handled) -> bool:
        """Tell whether the log records that this call is not tried again."""
        last = self._last.get(handled.key)
        return last is not None and last.then in {Then.QUARANTINE, Then.SKIP}

    def policy(self, declared: Mapping[type, OnError], kind: type) -> OnError:
        """Return the error policy for a type of effects or activities."""
        return declared.get(kind, self._otherwise)


async def take_note(host: Host, handled: Handled, error: Exception, policy: OnError) -> Then | None:
    """Record a failed attempt, and wait out the pause before the next one. Return the outcome if there is no next one.

    The entity is quarantined here. An error that stops the engine is not recorded: the next engine tries again.
    """
    name, ref, meant = handled
    attempt = host.failures.attempts(handled) + 1
    then = None if attempt <= policy.retries else policy.then
    if then is Then.STOP:
        return then
    failed = replace(meant, attempt=attempt, error=said(error), then="retry" if then is None else str(then))
    if then is Then.QUARANTINE:  # first: a crash after the last failure is recorded would lose the quarantine
        reason = f"the handler of {meant.handler} has failed {attempt} times: {failed.error}"
        await host.answered(name, Envelope(ref, EntityQuarantined(reason), host.clock.now_ms(), "engine"))
    await host.answered(name, Envelope(ref, failed, host.clock.now_ms(), "engine"))
    if then is None:
        await host.clock.sleep_until(host.clock.now_ms() + policy.pause_ms(attempt))
    return then
