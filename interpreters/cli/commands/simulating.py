"""The command ``simulate``: prints the report of ``interpreters.simulate``, and writes tests."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from lifefold.core.kernel import World
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.itf_files import see_to_itf, write_itf
from lifefold.interpreters.cli.written import see_to, write
from lifefold.interpreters.report.emitted_file import is_written_by

if TYPE_CHECKING:
    from lifefold.interpreters.campaign import Tally
    from lifefold.interpreters.campaign.driver import Driver
    from lifefold.interpreters.campaign.report import Report
    from lifefold.interpreters.report.finding import Finding
    from lifefold.interpreters.report.itf import Json
    from lifefold.interpreters.simulate import Faults, Limits
    from lifefold.interpreters.targets.target import Target

LEFT: Final = 130
"""The exit code after leaving early."""
FOUND_AT_MOST: Final = 10
"""The number of failing seeds after which no more are tried."""
AGAIN_S: Final = 0.2
"""The interval of progress on a terminal, in seconds."""
SELDOM_S: Final = 60.0
"""The interval of progress elsewhere, in seconds."""


def simulate(arguments: Namespace) -> int:
    """Simulate a target with many seeds; return 0 if no property is broken, else 1. Raises ``BadInput``."""
    from lifefold.interpreters.campaign.stopping import until_stopped  # noqa: PLC0415 - as above
    from lifefold.interpreters.simulate import Limits, hours  # noqa: PLC0415 - takes a while

    target = _named(arguments.target)
    faults, limits = _faults(arguments), Limits(until_ms=hours(arguments.hours))
    if arguments.soak:
        return _soak(arguments, faults, limits)
    if arguments.emit_test:
        see_to(Path(arguments.emit_test), "test", partial(is_written_by, "simulate"))
    see_to_itf(arguments.itf)
    with until_stopped() as is_stopped:
        report = _tried(arguments, target, faults, limits, is_stopped)
        left = is_stopped()
    _tell(report, arguments)
    if arguments.emit_test:
        _emit(report, Path(arguments.emit_test), is_quiet=arguments.json)
    if arguments.itf:
        write_itf(arguments.itf, list(_runs(report)), is_quiet=arguments.json)
    return LEFT if left else int(not report.ok)


def _tried(
    arguments: Namespace, target: "Target", faults: "Faults", limits: "Limits", is_stopped: Callable[[], bool]
) -> "Report":
    """Try the seeds of the options, until ``FOUND_AT_MOST`` have failed or the user leaves."""
    from lifefold.interpreters.campaign.report import trial  # noqa: PLC0415 - takes a while

    first: int = arguments.seed or 0
    seeds = range(first, first + (arguments.seeds or (100 if arguments.seed is None else 1)))
    tell = _Progress(target, len(seeds))
    return trial(
        arguments.target,
        seeds,
        faults=faults,
        limits=limits,
        jobs=arguments.jobs,
        tell=tell,
        stop_at=FOUND_AT_MOST,
        is_stopped=is_stopped,
        driver=_driver(arguments),
    )


def _driver(arguments: Namespace) -> "Driver":
    """Return what the options simulate. Raises ``BadInput``."""
    from lifefold.interpreters.campaign.driver import Driver  # noqa: PLC0415 - takes a while

    if arguments.engine and arguments.cluster:
        raise BadInput("--engine and --cluster: accepted is one of them")
    if arguments.engine:
        return Driver.ENGINE
    return Driver.CLUSTER if arguments.cluster else Driver.OWN


def _runs(report: "Report") -> "Iterator[Json]":
    """Yield the whole shrunk run of each broken property."""
    from lifefold.interpreters.report.itf import of_steps  # noqa: PLC0415 - seldom needed
    from lifefold.interpreters.simulate.story import steps  # noqa: PLC0415 - takes a while

    for each in report.findings:
        title = f"{each.target.name}: {each.words()}"
        yield of_steps(title, steps(each.system, each.run.entries), World(each.system))


def _soak(arguments: Namespace, faults: "Faults", limits: "Limits") -> int:
    """Try seeds until stopped; return 1 if any has failed. Raises ``BadInput``."""
    from lifefold.interpreters.campaign.soak import Folder, Soak  # noqa: PLC0415 - takes a while
    from lifefold.interpreters.campaign.stopping import until_stopped  # noqa: PLC0415 - as above

    if arguments.seeds or arguments.emit_test or arguments.itf:
        raise BadInput(
            "--soak goes on until it is stopped, and writes its tests itself: leave out --seeds, --emit-test, --itf"
        )
    if arguments.engine or arguments.cluster:
        given = "--engine" if arguments.engine else "--cluster"
        raise BadInput(f"--soak and {given}: accepted is one of them; with {given}, give --seeds")
    try:
        folder = Folder(Path(arguments.soak), arguments.target)
    except (FileExistsError, NotADirectoryError) as error:
        raise BadInput(f"--soak {arguments.soak}: that is no folder") from error
    except ValueError as error:
        raise BadInput(str(error)) from error
    if arguments.seed is not None:
        folder.went(arguments.seed)
    soak = Soak(arguments.target, folder, faults=faults, limits=limits)
    begins = f"from seed {folder.next_seed:,} on, until stopped"
    print(f"{soak.target.name}: {begins}; what is found is kept in {arguments.soak}", file=sys.stderr, flush=True)
    with until_stopped() as is_stopped:
        report = soak.go_on(is_stopped, jobs=arguments.jobs, tell=_Progress(soak.target))
    _tell(report, arguments)
    return 0 if report.ok else 1


def _named(name: str) -> "Target":
    from lifefold.interpreters.targets import simulation_targets  # noqa: PLC0415 - takes a while
    from lifefold.interpreters.targets.target import UnusableTarget  # noqa: PLC0415 - as above

    try:
        return simulation_targets.named(name)
    except UnusableTarget as error:
        raise BadInput(str(error)) from error


def _faults(arguments: Namespace) -> "Faults":
    """Return the faults of the options: ``name=rate``, or ``none``."""
    from lifefold.interpreters.simulate import NONE, Faults  # noqa: PLC0415 - takes a while
    from lifefold.interpreters.simulate.faults import ONLY_OF_CLUSTER, ONLY_OF_ENGINE  # noqa: PLC0415 - as above

    given: list[str] = arguments.fault or []
    rates: dict[str, float] = dict(NONE.rates) if "none" in given else {}
    if "none" in given and arguments.all_faults:
        raise BadInput("--all-faults and --fault none: accepted is one of them")
    for typed in (each for each in given if each != "none"):
        name, _, rate = typed.partition("=")
        try:
            rates[name] = float(rate)
        except ValueError as error:
            raise BadInput(f"--fault {typed}: accepted is NAME=RATE with a rate between 0 and 1, or none") from error
    of_engine = sorted(rates.keys() & ONLY_OF_ENGINE) if "none" not in given and not arguments.engine else []
    if of_engine:
        raise BadInput(f"--fault {of_engine[0]}: it happens to the real engine only; add --engine")
    of_cluster = sorted(rates.keys() & ONLY_OF_CLUSTER) if "none" not in given and not arguments.cluster else []
    if of_cluster:
        raise BadInput(f"--fault {of_cluster[0]}: it happens to a cluster only; add --cluster")
    try:
        return Faults(rates, swarm=not (arguments.all_faults or "none" in given))
    except ValueError as error:
        raise BadInput(f"--fault: {error}") from error


class _Progress:
    """Prints progress on standard error: often on a terminal, every ``SELDOM_S`` elsewhere."""

    def __init__(self, target: "Target", seeds: int | None = None) -> None:
        self._target: Final = target
        self._of: Final = "" if seeds is None else f" of {seeds:,}"
        self._began_s: Final = perf_counter()
        self._told_s = self._began_s

    def __call__(self, tally: "Tally") -> None:
        now_s = perf_counter()
        is_terminal = sys.stderr.isatty()
        if now_s - self._told_s >= (AGAIN_S if is_terminal else SELDOM_S):
            self._told_s = now_s
            said = self._said(tally, tally.inputs / (now_s - self._began_s))
            if is_terminal:
                room = get_terminal_size().columns - 1  # a wrapped line would not be overwritten
                print(f"\r{said[:room]:<{room}}", end="\r", file=sys.stderr, flush=True)
            else:
                print(said, file=sys.stderr, flush=True)

    def _said(self, tally: "Tally", rate: float) -> str:
        from lifefold.interpreters.campaign.report import used  # noqa: PLC0415 - takes a while

        shares = ", ".join(f"{name} {count}/{of}" for name, count, of in used(self._target, tally))
        done = f"{tally.seeds:,}{self._of} seeds, {tally.inputs:,} inputs, {rate:,.0f}/s, {len(tally.found)} found"
        return f"{self._target.name}: {done}; {shares}"


def _tell(report: "Report", arguments: Namespace) -> None:
    """Print the report over the last line of progress."""
    from lifefold.interpreters.cli.reports import tell  # noqa: PLC0415 - takes a while

    if sys.stderr.isatty():
        print(f"\r{' ' * (get_terminal_size().columns - 1)}", end="\r", file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps({**report.facts(), "page": _page(report)}, indent=2))
    else:
        tell(report, shows_unused=arguments.unused)


STEPS: Final = 200
"""The most last steps of a run in the JSON of its finding; the text has fewer."""


def _page(report: "Report") -> Any:
    """Return what the pages of ``lifefold serve`` show of a report: its findings step by step, in types of JSON."""
    from lifefold.interpreters.campaign.findings import SeedFinding  # noqa: PLC0415 - takes a while
    from lifefold.interpreters.cli.reports import page_of  # noqa: PLC0415 - as above
    from lifefold.interpreters.report.steps import Way  # noqa: PLC0415 - as above
    from lifefold.interpreters.report.trace import Trace  # noqa: PLC0415 - as above
    from lifefold.interpreters.simulate.story import deviation_lines, steps  # noqa: PLC0415 - as above

    def way(finding: "Finding") -> Way | None:
        if not isinstance(finding, SeedFinding):
            return None
        entries, notes = finding.run.entries, deviation_lines(finding.run.deviations, WIDE)
        last = tuple(steps(finding.system, entries))[-STEPS:]
        said = (f"not so of {finding.found.of}", *(line.strip() for line in notes))
        return Way(Trace(last), len(entries) - len(last), said)

    return page_of(report, report.target.system, way)


WIDE: Final = 10_000
"""The width of a line in JSON: none is wrapped."""


def _emit(report: "Report", path: Path, *, is_quiet: bool) -> None:
    from lifefold.interpreters.campaign.emitted import emitted  # noqa: PLC0415 - takes a while

    text = emitted(report.findings)
    if text:
        write(path, text.encode(), is_quiet=is_quiet)
    else:
        print(f"lifefold: nothing to test, so {path} is not written", file=sys.stderr)
