"""What handlers do with work that was on another machine, or that another machine is to go on with."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fleet_bench import FleetBench
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Event
from lifefold.core.lifecycles import session
from lifefold.effects import RunSession, VerifyWork
from lifefold.interpreters.fleet_runner import retry_until
from lifefold.interpreters.testing.interpreters import Recorded, perform
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError

pytestmark = pytest.mark.anyio

LOST = WorkplaceError("The work of bench/T1/1 was on a host that is lost", Path("/clone"), "Try the task again.")
AWAY = InTheWayError("The remote does not answer", Path("/clone"), "The operation is repeated by itself.")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetBench:
    """A bench whose handlers do not pause between two tries."""
    monkeypatch.setattr(retry_until, "PAUSE_S", 0.0)
    return FleetBench(tmp_path)


def raising(*errors: Exception) -> Callable[..., Awaitable[None]]:
    """Return a method that raises these errors, one at each call, and then does nothing."""
    left = [*errors]

    async def method(*_given: object) -> None:
        if left:
            raise left.pop(0)

    return method


async def reported(bench: FleetBench, kind: type) -> list[Event]:
    """Run the first example of an activity, and return what it reports."""
    example = next(each for each in bench.examples if isinstance(each.what, kind))
    context = Recorded(bench, example)
    await perform(bench, context)
    return context.reported


async def test_a_verification_of_lost_work_is_rejected_with_the_reason(
    bench: FleetBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task is tried again; no other files pass for the work."""
    monkeypatch.setattr(bench.handlers.workplace, "enter", raising(LOST))
    rejected = await reported(bench, VerifyWork)
    assert isinstance(rejected[-1], assignment.Rejected)
    assert "was on a host that is lost" in rejected[-1].reason


@pytest.mark.parametrize("method", ["enter", "keep"])
async def test_a_verification_waits_until_its_work_can_be_kept(
    bench: FleetBench, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Also a verified work is not rejected because of that; the operator sees the wait."""
    monkeypatch.setattr(bench.handlers.workplace, method, raising(AWAY, AWAY))
    assert await reported(bench, VerifyWork) == [assignment.Verified()]
    assert [said for _, said in bench.handlers.notices] == [f"waits to verify T1: {AWAY}"]
    assert bench.handlers.operator.standing() == []
    assert bench.handlers.put_off == set()


async def test_what_the_verification_has_changed_is_kept_before_its_report(
    bench: FleetBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A work that cannot be kept any more is no verified work."""
    kept = raising()
    calls: list[object] = []

    async def keep(*given: object) -> None:
        calls.append(given)
        if len(calls) > 1:
            raise LOST
        await kept()

    monkeypatch.setattr(bench.handlers.workplace, "keep", keep)
    rejected = await reported(bench, VerifyWork)
    assert calls == [("brief", "T1", 1)] * 2
    assert isinstance(rejected[-1], assignment.Rejected)


async def test_a_session_whose_work_cannot_be_pushed_ends_all_the_same(
    bench: FleetBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator reads where the work is; the verification tries it again."""
    monkeypatch.setattr(bench.handlers.workplace, "keep", raising(AWAY))
    ended = (await reported(bench, RunSession))[-1]
    assert isinstance(ended, session.SessionExited)
    assert isinstance(ended.outcome, session.Success)
    assert [said for _, said in bench.handlers.notices] == [f"the work at T1 is on this machine only: {AWAY}"]


async def test_no_session_begins_where_another_claim_is(bench: FleetBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check-out on a host that was lost before the session began costs an attempt."""
    monkeypatch.setattr(bench.handlers.workplace, "enter", raising(AWAY, LOST))
    ended = (await reported(bench, RunSession))[-1]
    assert isinstance(ended, session.SessionExited)
    assert "not started: The work of bench/T1/1 was on a host that is lost" in str(ended.outcome)
    assert not bench.handlers.folder.output("brief", 1).exists()
