"""The time of ``lifefold --help``, beside a Python process that does nothing. Wall-clock times of whole processes."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.report import Report, Table, Target
from benchmarks.sampling import Turn, ratios, spread, take_turns

ROUNDS = 25
WANTED = 6.0
MODULE = "lifefold.interpreters.cli.app"

NOTHING = "python -c pass"
HELP = "lifefold --help"
VERSION = "lifefold --version"
EVERYTHING = "python -c 'import lifefold.interpreters.engine'"


def command() -> tuple[str, ...]:
    """Return the installed command beside this Python, or else a call of its module."""
    script = Path(sys.executable).with_name("lifefold")
    return (str(script),) if script.exists() else (sys.executable, "-m", MODULE)


def process(words: Sequence[str]) -> Turn:
    """Return the turn of a process: the time until its end, and its exit status."""

    def turn() -> tuple[float, object]:
        start = perf_counter()
        ended = subprocess.run(words, stdout=subprocess.DEVNULL, check=False)  # noqa: S603 - constant arguments
        return 1_000 * (perf_counter() - start), ended.returncode

    return turn


def measure() -> Report:
    """Measure and report."""
    contenders = {
        NOTHING: process((sys.executable, "-c", "pass")),
        HELP: process((*command(), "--help")),
        VERSION: process((*command(), "--version")),
        EVERYTHING: process((sys.executable, "-c", "import lifefold.interpreters.engine")),
    }
    costs = take_turns(contenders, ROUNDS)
    factors = {name: ratios(each, costs[NOTHING]) for name, each in costs.items()}
    rows = tuple(
        (name, f"{median(each):,.1f}", f"{min(each):,.1f}", f"{median(factors[name]):,.2f}")
        for name, each in costs.items()
    )
    met = median(factors[HELP]) <= WANTED
    target = Target(f"{HELP} over {NOTHING}", f"at most {WANTED:g} x", spread(factors[HELP], "{:.2f} x"), met)
    table = Table("Milliseconds from start to end", ("", "median", "least", f"x {NOTHING}"), rows)
    how = "the installed command" if len(command()) == 1 else f"python -m {MODULE}, as no command is installed"
    return Report(
        "startup", (table,), (target,), (f"{ROUNDS} rounds, files in the system's cache; lifefold is {how}.",)
    )
