"""Commands with fences: over before another host repeats them, and started again where no other host does."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from lifefold.interpreters.processes import Fence, SessionProcess, SessionSpec, launch
from lifefold.interpreters.processes import fenced as fenced_module
from lifefold.interpreters.processes.fenced import FencedProcesses, PastFenceError
from lifefold.interpreters.processes.shim.proc import boot_ms
from lifefold.interpreters.worktrees.verification import verify
from session_scripts import PATIENCE_S, Bell, script

pytestmark = pytest.mark.anyio

FAR_MS = 1_000_000


async def test_a_verification_ends_at_its_fence_and_says_nothing_of_the_work(tmp_path: Path) -> None:
    """The command has not failed: its host was cut off."""
    fenced, bell = FencedProcesses(), Bell(tmp_path / "bell")

    async def cut_off() -> None:
        await bell.heard()
        await fenced.renew("ann", Fence(boot_ms() + 50, 0))

    command = ("sh", "-c", f"echo > {bell}; sleep 1000")
    check = partial(verify, tmp_path, [command], timeout_ms=FAR_MS, records=tmp_path / "records")
    refused: list[PastFenceError] = []
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut_off)
            try:
                await check(start=partial(fenced.start, "ann"))
            except PastFenceError as error:
                refused.append(error)
    assert len(refused) == 1


async def test_a_renewed_fence_lets_a_command_live(tmp_path: Path) -> None:
    """A renewal that comes while the command is started counts, too."""
    fenced, bell, go = FencedProcesses(), Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    await fenced.renew("ann", Fence(boot_ms() + FAR_MS, 0))
    process = await fenced.start("ann", tmp_path / "run", script(f"echo > {bell}; read line < {go}; exit 3"))
    await bell.heard()
    await fenced.renew("ann", Fence(boot_ms() + 2 * FAR_MS, 0))
    await fenced.renew("bob", Fence(boot_ms(), 0))
    go.ring()
    ended = await process.wait()
    assert (ended.outcome, ended.code) == ("exited", 3)


async def test_nothing_is_started_past_a_fence_until_it_is_renewed(tmp_path: Path) -> None:
    """A host with word of its server again has kept the work, and repeats it."""
    fenced = FencedProcesses()
    await fenced.until_renewed("ann")
    await fenced.renew("ann", Fence(boot_ms(), 0))
    with pytest.raises(PastFenceError, match="its fence has passed"):
        await fenced.start("ann", tmp_path / "run", script(f"echo > {tmp_path}/ran"))
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fenced.until_renewed, "ann")
            await anyio.wait_all_tasks_blocked()
            await fenced.renew("ann", Fence(boot_ms() + FAR_MS, 0))
    process = await fenced.start("ann", tmp_path / "again", script("exit 0"))
    assert (await process.wait()).outcome == "exited"
    assert not (tmp_path / "ran").exists()


async def test_a_fence_that_passes_during_a_start_is_no_failure_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen host may begin a shim late; the shim refuses, and another host may have the work."""
    fenced, launched = FencedProcesses(), launch

    async def late(directory: Path, spec: SessionSpec, *, fence: Fence | None) -> SessionProcess:
        assert fence is not None
        return await launched(directory, spec, fence=Fence(boot_ms(), 0))

    await fenced.renew("ann", Fence(boot_ms() + FAR_MS, 0))
    monkeypatch.setattr(fenced_module, "launch", late)
    check = partial(verify, tmp_path, [("touch", "ran")], timeout_ms=FAR_MS, records=tmp_path / "records")
    with pytest.raises(PastFenceError, match="its fence has passed"):
        await check(start=partial(fenced.start, "ann"))
    assert not (tmp_path / "ran").exists()


async def test_a_forgotten_name_has_no_fence(tmp_path: Path) -> None:
    """The next work of an agent gets its own."""
    fenced = FencedProcesses()
    await fenced.renew("ann", Fence(boot_ms(), 0))
    fenced.forget("ann")
    process = await fenced.start("ann", tmp_path / "run", script("exit 0"))
    assert (await process.wait()).outcome == "exited"
