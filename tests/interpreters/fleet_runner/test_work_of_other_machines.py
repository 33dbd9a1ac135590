"""What handlers do with work that was on another machine, or that another machine is to go on with."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fleet_bench import FleetBench
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Event
from lifefold.core.lifecycles import session
from lifefold.effects import InspectWork, ParkWork, RunSession, VerifyWork
from lifefold.interpreters.fleet_runner import handlers, retry_until, sessions
from lifefold.interpreters.processes import SessionExit
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


async def test_a_session_that_ended_at_its_fence_keeps_nothing(
    bench: FleetBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are not finished, and another host may have the task by now."""
    calls: list[object] = []

    async def keep(*given: object) -> None:
        calls.append(given)

    monkeypatch.setattr(bench.handlers.workplace, "keep", keep)
    monkeypatch.setattr(bench.handlers.workplace, "keep_state", keep)
    await reported(bench, RunSession)
    assert len(calls) == 2

    def at_its_fence(_ended: SessionExit) -> bool:
        return True

    monkeypatch.setattr(sessions, "is_at_its_fence", at_its_fence)
    await reported(bench, RunSession)
    assert len(calls) == 2


@pytest.mark.parametrize("kind", [RunSession, VerifyWork])
async def test_the_state_is_kept_where_the_work_cannot_be(
    bench: FleetBench, monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    """A session tries both, and a verification tries both again."""
    states: list[object] = []

    async def keep_state(*given: object) -> None:
        states.append(given)

    monkeypatch.setattr(bench.handlers.workplace, "keep", raising(AWAY))
    monkeypatch.setattr(bench.handlers.workplace, "keep_state", keep_state)
    await reported(bench, kind)
    assert [given[:2] for given in states if isinstance(given, tuple)] == [("T1", 1)]


async def test_a_state_that_cannot_be_kept_rejects_no_work(bench: FleetBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator reads where it is."""
    monkeypatch.setattr(bench.handlers.workplace, "keep_state", raising(AWAY, LOST))
    assert await reported(bench, VerifyWork) == [assignment.Verified()]
    assert [said for _, said in bench.handlers.notices] == [
        f"waits to keep the state of T1: {AWAY}",
        f"the state at T1 is on this machine only: {LOST}",
    ]


async def test_a_session_has_the_state_that_another_machine_has_kept(
    bench: FleetBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the second session of a claim, whose first one was elsewhere."""
    brought: list[object] = []

    async def bring_state(*given: object) -> None:
        brought.append(given)

    monkeypatch.setattr(bench.handlers.workplace, "bring_state", bring_state)
    await reported(bench, RunSession)
    assert [given[:2] for given in brought if isinstance(given, tuple)] == [("T1", 1)]


@pytest.mark.parametrize(("kind", "method"), [(ParkWork, "park"), (InspectWork, "differs")])
async def test_done_work_waits_for_a_remote_without_a_limit(
    bench: FleetBench, monkeypatch: pytest.MonkeyPatch, kind: type, method: str
) -> None:
    """It would be thrown away otherwise, or count as unchanged."""
    errors = [AWAY, AWAY]

    async def late(*_given: object) -> str:
        if errors:
            raise errors.pop()
        return "c0ffee"

    monkeypatch.setattr(handlers, "PLACE_LIMIT_S", -1.0)
    monkeypatch.setattr(bench.handlers.workplace, method, late)
    (found,) = await reported(bench, kind)
    assert found == assignment.Parked("c0ffee") or (isinstance(found, assignment.Inspected) and found.differs)
    assert not errors
