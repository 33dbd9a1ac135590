"""The signals that end a run, and the words of the next run about the state of the log."""

import signal
from contextlib import ExitStack

import anyio

from fleet_sandbox import Sandbox
from lifefold.core.fleet.worker import assignment
from lifefold.interpreters.engine import Clock
from lifefold.interpreters.explain import status
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner
from lifefold.interpreters.fleet_runner.runner import REPEAT_MS, merges_left
from service_hand import send, serving


class Watch(Clock):
    """Shows the time that it is told."""

    def __init__(self) -> None:
        self.at_ms = 1_000_000

    def now_ms(self) -> int:
        return self.at_ms

    async def sleep_until(self, at_ms: int) -> None:
        self.at_ms = at_ms


def test_signals_that_come_at_once_are_one_request_to_leave(sandbox: Sandbox) -> None:
    """``timeout`` sends each of its signals twice; that must not be what kills sessions at once."""
    sandbox.prepare("plain-1", repository=False)

    async def leave() -> list[tuple[bool, int]]:
        watch = Watch()
        runner = await Runner.open(load(sandbox.fleet), sandbox.log, clock=watch)
        heard: list[tuple[bool, int]] = []
        for pause_ms in (0, 0, REPEAT_MS - 1, 1, 1, REPEAT_MS):
            watch.at_ms += pause_ms
            heard.append((runner.leave(), runner.leaving))
        runner.close()
        return heard

    assert anyio.run(leave) == [(True, 1), (False, 1), (False, 1), (True, 2), (False, 2), (True, 3)]


def test_a_session_that_is_adopted_has_not_started_again(sandbox: Sandbox) -> None:
    """The log has a running session: nothing is refused, and the next run says what it continues."""
    sandbox.prepare("plain-1", gates=["plain-1"])
    with ExitStack() as gate:
        with sandbox.running() as run:
            gate.enter_context(sandbox.at_gate("plain-1"))
            run.until("IN_PROGRESS")
            run.signal(signal.SIGKILL)
            run.rest()
        with sandbox.running() as run:
            run.until("continuing: 1 session adopted, 1 task in progress")
            gate.close()
            said = run.rest()
    assert "1 of 1 tasks closed" in said
    assert "changed nothing" not in said
    assert sandbox.sessions("plain-1") == 1


def test_a_run_of_a_service_that_is_told_to_merge_is_no_merge_that_is_left() -> None:
    """Only the work of those who take tasks is merged."""
    web = send(serving(), assignment.State.MERGING.value)
    assert [each.doing for each in status.agents({"service/web": web.aggregate})] == [assignment.State.MERGING]
    assert list(merges_left({"service/web": web.aggregate})) == []
