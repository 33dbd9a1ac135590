"""An operator beside a fleet with real processes: gives a command as soon as something has happened."""

from collections.abc import Callable

import anyio

from fleet_sandbox import HANG_S, Sandbox
from lifefold.core.kernel import Envelope, Event, Reaction, Refusal, State, Transition
from lifefold.interpreters.engine import Interpreter
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner, Verdict


def when(runner: Runner, entity: str, state: State, *do: Callable[[Transition], object]) -> None:
    """Do something as soon as an entity enters a state; when it does so again, the next of these, if there is one."""
    left = list(do)

    def observe(_aggregate: str, outcome: Reaction | Refusal) -> None:
        for transition in outcome.transitions if isinstance(outcome, Reaction) else ():
            if transition.entity == entity and transition.entered is state and left:
                left.pop(0)(transition)

    runner.observers.append(observe)


def say(runner: Runner, aggregate: str, entity: str, event: Event) -> None:
    """Say something as a person would."""
    runner.engine.offer(aggregate, Envelope(entity, event, runner.engine.clock.now_ms()))


async def run(sandbox: Sandbox, arrange: Callable[[Runner], None], interpreter: Interpreter | None = None) -> Verdict:
    """Run a fleet to its end."""
    runner = await Runner.open(load(sandbox.fleet), sandbox.log, interpreter=interpreter)
    arrange(runner)
    try:
        with anyio.fail_after(HANG_S):
            return await runner.run()
    finally:
        runner.close()
