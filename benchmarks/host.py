"""The machine behind the figures: the processor, the disk, the versions. No names of hosts, users or folders."""

import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarks.report import Table
from benchmarks.sampling import percentile

PACKAGES = ("msgspec", "pyrsistent", "returns", "anyio", "transitions", "python-statemachine", "automat", "simpy")
MEMORY_FILE_SYSTEMS = {"tmpfs", "ramfs", "devtmpfs"}
FLUSHES = 100
PAGE_BYTES = 4_096


class NotADisk(Exception):
    """The folder for the databases is not on a disk; the message says what to do."""


def describe(folder: Path) -> Table:
    """Describe the machine, the disk of ``folder``, and the packages."""
    flushes_ms = flush_ms(folder)
    disk = f"{file_system(folder)}; write and fsync of 4 KiB: median {median(flushes_ms):.2f} ms"
    rows = (
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("processor", f"{processor()}, {cores()} cores"),
        ("system", f"{platform.system()} {platform.release().partition('-')[0]}"),
        ("load before", f"{os.getloadavg()[0]:.1f} (one-minute average)"),
        ("disk", f"{disk}, p99 {percentile(flushes_ms, 99):.2f} ms"),
        ("packages", ", ".join(f"{name} {version(name)}" for name in PACKAGES)),
    )
    return Table("Measured on", ("", ""), rows)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Return the processor's model, or the machine's type if it is not known."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def file_system(folder: Path) -> str:
    """Return the type of a folder's file system; "unknown file system" without ``/proc/mounts``."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown file system"
    found = [line.split()[1:3] for line in mounts.read_text().splitlines()]
    around = [(point, kind) for point, kind in found if folder.resolve().is_relative_to(point)]
    return max(around, key=lambda mount: len(mount[0]))[1] if around else "unknown file system"


def must_be_a_disk(folder: Path) -> None:
    """Raise ``NotADisk`` for a folder in memory, where a flush costs nothing."""
    kind = file_system(folder)
    if kind in MEMORY_FILE_SYSTEMS:
        raise NotADisk(f"{folder} is in memory ({kind}); name a folder on a disk with --folder")


def flush_ms(folder: Path) -> list[float]:
    """Return the times of many durable writes of a page, in milliseconds."""
    taken: list[float] = []
    path = folder / "flush"
    with path.open("wb", buffering=0) as file:
        for _ in range(FLUSHES):
            start = time.perf_counter()
            file.write(bytes(PAGE_BYTES))
            os.fsync(file.fileno())
            taken.append(1_000 * (time.perf_counter() - start))
    path.unlink()
    return taken
