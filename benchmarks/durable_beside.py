"""One agent's durable steps on the engine, beside the same steps in other libraries, each in a process of its own.

Every contender is a program (``benchmarks.durable``) with a new database in the same folder. They take turns, and are
compared within a round. A peer that is not installed is named and left out.
"""

import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.durable import PEERS
from benchmarks.durable.work import Measured
from benchmarks.host import must_be_a_disk
from benchmarks.report import Report, Table, Target
from benchmarks.sampling import spread

ROUNDS = 5
STEPS = 400
OURS = "lifefold"


def measured(module: str, folder: Path, steps: int = STEPS) -> Measured:
    """Run a contender in a new folder. Raises ``CalledProcessError`` with its errors."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        words = (sys.executable, "-m", f"benchmarks.durable.{module}", own, str(steps))
        done = subprocess.run(words, capture_output=True, check=True)  # noqa: S603 - our own words
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Measured)


def is_installed(package: str) -> bool:
    """Tell whether a peer can run."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def measure(folder: Path, rounds: int = ROUNDS, steps: int = STEPS) -> Report:
    """Measure all contenders in turns, and report."""
    must_be_a_disk(folder)
    there = {OURS: "engine_steps", **{name: module for name, module in PEERS.items() if is_installed(name)}}
    found: dict[str, list[Measured]] = {name: [] for name in there}
    names = list(there)
    for number in range(rounds):
        begin = number % len(names)
        for name in (*names[begin:], *names[:begin]):
            found[name].append(measured(there[name], folder, steps))
    missing = ", ".join(PEERS.keys() - there.keys())
    notes = (
        f"{rounds} rounds. The processor time is that of the program, without a server beside it.",
        *([f"Not installed: {missing} (pip install 'lifefold[peers]')."] if missing else []),
    )
    targets = tuple(_target(name, found) for name in names if name != OURS)
    table = Table("Steps of one agent", ("", "version", "steps per s", "processor us per step", "steps"), _rows(found))
    return Report("durable", (table,), targets, notes)


def _rows(found: dict[str, list[Measured]]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            name,
            runs[0].version,
            spread([each.steps / each.seconds for each in runs], "{:,.0f}"),
            spread([1e6 * each.processor_s / each.steps for each in runs], "{:,.0f}"),
            f"{runs[0].steps:,}",
        )
        for name, runs in found.items()
    )


def _target(name: str, found: dict[str, list[Measured]]) -> Target:
    """Return the rate of the engine over that of a peer, round by round."""
    shares = [
        (one.steps / one.seconds) / (other.steps / other.seconds)
        for one, other in zip(found[OURS], found[name], strict=True)
    ]
    return Target(f"engine's rate over that of {name}", "more than 1 x", spread(shares, "{:.2f} x"), median(shares) > 1)
