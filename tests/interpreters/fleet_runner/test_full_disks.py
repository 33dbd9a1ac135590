"""A fleet whose disk is full for a while: it waits, says so, and goes on by itself."""

from fleet_sandbox import Sandbox
from small_disk import fill, needs_a_small_disk, small_disk


@needs_a_small_disk
def test_a_fleet_outlasts_a_full_disk(sandbox: Sandbox) -> None:
    """It tells of it once, and once more when it goes on; every task is closed, and merged once."""
    sandbox.prepare("plain-1", "plain-2", gates=["plain-2"])
    with small_disk(sandbox.folder / "disk", "8m") as disk:
        log = disk / "fleet.db"
        with sandbox.running("--db", str(log)) as run:
            run.until("plain-1", "CLOSED")
            with sandbox.at_gate("plain-2"):
                filling = fill(disk)
            run.until("the disk is full", "waiting until there is room")
            filling.unlink()
            run.until("the run goes on")
            text = run.rest()
            assert run.process.returncode == 0, text
        assert "2 of 2 tasks closed" in text
        assert "the disk is full" not in text, "it is said once"
        assert sorted(sandbox.merges()) == ["Merge plain-1: Write plain-1.txt", "Merge plain-2: Write plain-2.txt"]
        assert sandbox.processes() == []
