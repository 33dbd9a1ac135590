"""Every code sample of document 002, unchanged but for its import line."""

import asyncio
from datetime import UTC

import pytest

from lifefold.interpreters.facades.process import ProcessLifecycle, ProcessState, ProcessTransition, StateError

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def running() -> ProcessLifecycle:
    """Return the lifecycle as the samples leave it: RUNNING."""
    lc = ProcessLifecycle()
    await lc.transition(ProcessState.STARTING)
    await lc.transition(ProcessState.RUNNING)
    return lc


async def test_the_introduction() -> None:
    """Document 002, "Process Lifecycle"."""
    lc = ProcessLifecycle()
    assert lc.state == ProcessState.CREATED

    await lc.transition(ProcessState.STARTING, reason="user requested start")
    await lc.transition(ProcessState.RUNNING)

    assert len(lc.history) == 2


async def test_creating_and_transitioning() -> None:
    """Document 002, "Creating and transitioning"."""
    lc = ProcessLifecycle()  # starts in CREATED

    # Transition with a reason
    await lc.transition(ProcessState.STARTING, reason="CLI start command")
    await lc.transition(ProcessState.RUNNING, reason="agent built successfully")

    # Check current state
    assert lc.state == ProcessState.RUNNING


async def test_checking_validity_before_transitioning() -> None:
    """Document 002, "Checking validity before transitioning"."""
    lc = await running()

    if lc.can_transition(ProcessState.SUSPENDED):
        await lc.transition(ProcessState.SUSPENDED, reason="idle timeout")

    assert lc.state == ProcessState.SUSPENDED


async def test_transition_with_metadata() -> None:
    """Document 002, "Transition with metadata"."""
    lc = await running()

    await lc.transition(
        ProcessState.FAILED,
        reason="Max consecutive failures reached",
        metadata={"failures": 3},
    )

    assert lc.history[-1].metadata == {"failures": 3}


async def test_invalid_transitions_raise_state_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Document 002, "Invalid transitions raise StateError": what is printed is the document's comment, line by line."""
    lc = ProcessLifecycle()  # CREATED

    try:
        await lc.transition(ProcessState.RUNNING)  # Invalid: must go through STARTING
    except StateError as e:
        print(e)  # noqa: T201 - the document prints
        # Cannot transition from 'created' to 'running'.
        # Allowed targets: ['starting', 'stopped']

    printed = "Cannot transition from 'created' to 'running'.\nAllowed targets: ['starting', 'stopped']\n"
    assert capsys.readouterr().out == printed


async def test_process_transition(capsys: pytest.CaptureFixture[str]) -> None:
    """Document 002, "ProcessTransition": the comments beside the prints hold."""
    lc = await running()

    transition = await lc.transition(ProcessState.STOPPING, reason="user request")

    print(transition.from_state)  # noqa: T201 - ProcessState.RUNNING
    print(transition.to_state)  # noqa: T201 - ProcessState.STOPPING
    print(transition.reason)  # noqa: T201 - "user request"
    print(transition.timestamp)  # noqa: T201 - datetime (UTC)

    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == ["ProcessState.RUNNING", "ProcessState.STOPPING", "user request"]
    assert transition.timestamp.tzinfo is UTC


async def test_serialization() -> None:
    """Document 002, "Serialization"."""
    lc = await running()
    transition = await lc.transition(ProcessState.STOPPING, reason="user request", metadata={"by": ["cli"]})

    data = transition.to_dict()
    restored = ProcessTransition.from_dict(data)

    assert restored == transition


async def test_audit_history(capsys: pytest.CaptureFixture[str]) -> None:
    """Document 002, "Audit History"."""
    lc = ProcessLifecycle()
    await lc.transition(ProcessState.STARTING, reason="CLI start command")
    await lc.transition(ProcessState.RUNNING)

    for t in lc.history:
        print(f"{t.from_state.value} -> {t.to_state.value}: {t.reason}")  # noqa: T201 - the document prints

    assert capsys.readouterr().out == "created -> starting: CLI start command\nstarting -> running: \n"


async def test_snapshotting_and_restoring() -> None:
    """Document 002, "Snapshotting and restoring"."""
    lc = await running()

    # Serialize current state + full history
    snapshot = lc.snapshot()

    # Restore from a snapshot (e.g., after crash recovery)
    restored_lc = ProcessLifecycle.from_snapshot(snapshot)
    assert restored_lc.state == lc.state
    assert len(restored_lc.history) == len(lc.history)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_thread_safety() -> None:
    """Document 002, "Thread Safety": it does not hold what its comment says, for its own table allows both (C2).

    The two are made one after the other, and the process is STOPPING.
    """
    lc = await running()

    # Safe for concurrent use from multiple coroutines
    await asyncio.gather(
        lc.transition(ProcessState.SUSPENDED, reason="idle"),
        lc.transition(ProcessState.STOPPING, reason="shutdown"),
    )

    assert lc.state == ProcessState.STOPPING
    assert [t.reason for t in lc.history[2:]] == ["idle", "shutdown"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_thread_safety_with_an_expectation() -> None:
    """Document 002, "Thread Safety", as its comment means it: only one succeeds, the other raises StateError (C2)."""
    lc = await running()

    results = await asyncio.gather(
        lc.transition(ProcessState.SUSPENDED, reason="idle", expected_from=ProcessState.RUNNING),
        lc.transition(ProcessState.STOPPING, reason="shutdown", expected_from=ProcessState.RUNNING),
        return_exceptions=True,
    )

    assert [type(result) for result in results] == [ProcessTransition, StateError]
    assert len(lc.history) == 3


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_thread_safety_in_the_other_order() -> None:
    """Document 002, "Thread Safety": if STOPPING comes first, the other does raise (C2)."""
    lc = await running()

    results = await asyncio.gather(
        lc.transition(ProcessState.STOPPING, reason="shutdown"),
        lc.transition(ProcessState.SUSPENDED, reason="idle"),
        return_exceptions=True,
    )

    assert [type(result) for result in results] == [ProcessTransition, StateError]
    assert lc.state == ProcessState.STOPPING
