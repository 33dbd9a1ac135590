"""Run benchmarks: ``python -m benchmarks [NAME ...] [--write] [--folder PATH]``. See ``docs/benchmarks.md``."""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import (
    boards,
    checking,
    cluster,
    desk_pages,
    dispatch,
    durable_beside,
    fold,
    lifecycles,
    long_log,
    macrosteps,
    reduce,
    runner_beside,
    simulating,
    startup,
)
from benchmarks.host import NotADisk, describe, must_be_a_disk
from benchmarks.report import Report, Table, plain, write, write_alone

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
FOLDER = Path("build") / "benchmarks"


def main() -> int:
    """Run the named benchmarks; return 0 even if targets are missed, because operators judge the figures."""
    arguments = _arguments()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    try:
        must_be_a_disk(folder)
    except NotADisk as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    host = describe(folder)
    for fact, value in host.rows:
        print(f"{fact}: {value}")
    print(flush=True)
    reports: list[Report] = []
    for name, measure in _benchmarks(folder).items():
        if name in (arguments.names or NAMES):
            reports.append(measure())
            print(plain(reports[-1]), end="\n\n", flush=True)
    _finish(arguments, host, reports)
    return 0


NAMES = (
    "reduce",
    "lifecycles",
    "dispatch",
    "durable",
    "startup",
    "fold",
    "macrosteps",
    "checking",
    "simulating",
    "desk",
    "runner",
    "long",
    "cluster",
    "boards",
)


def _benchmarks(folder: Path) -> dict[str, Callable[[], Report]]:
    dispatched = partial(dispatch.measure, folder)
    modules = (startup, fold, macrosteps, checking, simulating, desk_pages, runner_beside)
    durable = partial(durable_beside.measure, folder)
    measures = (reduce.measure, lifecycles.measure, dispatched, durable, *(each.measure for each in modules))
    measures += tuple(partial(each, folder) for each in (long_log.measure, cluster.measure, boards.measure))
    return dict(zip(NAMES, measures, strict=True))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure lifefold, side by side.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)} (default: all)")
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"write the results into docs/{DOCUMENT.name}; those of named ones say under which load",
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"a folder on a disk (default: {FOLDER})")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(NAMES))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(NAMES)}")
    return arguments


def _finish(arguments: argparse.Namespace, host: Table, reports: list[Report]) -> None:
    targets = [target for report in reports for target in report.targets]
    if targets:
        print(f"{sum(target.met for target in targets)} of {len(targets)} targets met")
    if arguments.write and arguments.names:
        write_alone(DOCUMENT, host, reports)
    elif arguments.write:
        write(DOCUMENT, host, reports)


if __name__ == "__main__":
    sys.exit(main())
