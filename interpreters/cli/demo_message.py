"""The urgent operator message of the demonstration, sent while the agent works on the long task."""

from functools import partial
from typing import Final

import anyio

from lifefold.core.fleet.worker import mailbox
from lifefold.core.kernel import Envelope, Reaction, Refusal
from lifefold.core.lifecycles import task
from lifefold.interpreters.fleet_runner import Runner

TASK: Final = "guide"
TEXT: Final = "add a section on how to get help"
DELAY_S: Final = 1.5


def send(runner: Runner) -> None:
    """Send the message once, ``DELAY_S`` after an agent has begun the long task."""
    sent = False

    def observe(_aggregate: str, outcome: Reaction | Refusal) -> None:
        nonlocal sent
        for transition in outcome.transitions if isinstance(outcome, Reaction) else ():
            if transition.entity == f"task:{TASK}" and transition.entered is task.State.IN_PROGRESS and not sent:
                sent = True
                owner: str = transition.after.record.owner
                runner.engine.spawn(partial(_later, runner, f"worker/{owner}"))

    runner.observers.append(observe)


async def _later(runner: Runner, worker: str) -> None:
    await anyio.sleep(DELAY_S)
    runner.engine.offer(
        worker, Envelope("mailbox", mailbox.OperatorMessageArrived(TEXT), runner.engine.clock.now_ms(), "demo")
    )
