"""The failover of a fleet of processes: one host is killed, and another one takes its work."""

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from cluster_sandbox import cluster


class Failover(NamedTuple):
    """Seconds after the kill. ``overlap_s`` is the longest time for which two agents had one task."""

    ended_s: float
    begun_s: float
    overlap_s: float


async def failover(detection_s: int) -> Failover:
    """Kill the host with all sessions of a fleet, while another one is there."""
    with tempfile.TemporaryDirectory(prefix="lifefold-failover-") as folder:
        fleet = cluster(Path(folder), agents=2, tasks=2, steps=200, detection_s=detection_s, own_server=True)
        async with fleet as sandbox:
            sandbox.begin_brain()
            sandbox.begin_host("one")
            await sandbox.until_working(2, "one")
            sandbox.begin_host("two")
            await sandbox.until_attached("two")
            killed_ns = time.time_ns()
            sandbox.kill("one")
            await sandbox.until_over()
            lives = sandbox.lives()
            ended_ns = max(life.end_ns for life in lives if life.host == "one")
            begun_ns = min(life.begin_ns for life in lives if life.host == "two")
            overlap_ns = max((one.end_ns - other.begin_ns for one, other in sandbox.overlaps()), default=0)
            return Failover((ended_ns - killed_ns) / 1e9, (begun_ns - killed_ns) / 1e9, overlap_ns / 1e9)
