"""Recording a failed attempt of a handler, and its outcome."""

from lifefold.core.kernel import EntityQuarantined, Envelope, replace
from lifefold.interpreters.engine.failures import Handled, OnError, Then, said
from lifefold.interpreters.engine.inputs import Host


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
