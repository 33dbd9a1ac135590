"""The command that simulates: ``simulate``. What it says is what ``interpreters.simulate`` has found."""

import json
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.written import see_to, write

if TYPE_CHECKING:
    from lifefold.interpreters.simulate import Faults, Limits, Tally
    from lifefold.interpreters.simulate.findings import Finding
    from lifefold.interpreters.simulate.targets import Target

EXTRA: Final = "lifefold simulate needs NumPy and SciPy, and {} is not installed: pip install 'lifefold[check]'"
FOUND_AT_MOST: Final = 10
"""After how many seeds that have found something no more are tried."""


def simulate(arguments: Namespace) -> int:
    """Simulate a target with many seeds; return 0 if no promise is broken, else 1. Raises ``BadInput``."""
    try:
        import_module("lifefold.interpreters.simulate")
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in {"numpy", "scipy"}:
            raise
        raise BadInput(EXTRA.format(library)) from error
    from lifefold.interpreters.simulate import Limits, campaign, hours  # noqa: PLC0415 - needs an extra
    from lifefold.interpreters.simulate.emitted import is_emitted  # noqa: PLC0415 - as above

    target = _named(arguments.target)
    faults, limits = _faults(arguments), Limits(until_ms=hours(arguments.hours))
    if arguments.emit_test:
        see_to(Path(arguments.emit_test), "test", is_emitted)
    seeds = range(arguments.seed, arguments.seed + (arguments.seeds or (1 if arguments.seed else 100)))
    tell = _progress(target.name, len(seeds))
    tally = campaign(
        target.name, seeds, faults=faults, limits=limits, jobs=arguments.jobs, tell=tell, stop_at=FOUND_AT_MOST
    )
    findings = _findings(target, tally, faults, limits)
    if arguments.json:
        print(json.dumps(_facts(target, tally, findings), indent=2))
    else:
        _tell(target, tally, findings)
    if arguments.emit_test:
        _emit(findings, Path(arguments.emit_test), is_quiet=arguments.json)
    return 1 if tally.found else 0


def _named(name: str) -> "Target":
    from lifefold.interpreters.simulate import targets  # noqa: PLC0415 - needs an extra

    try:
        return targets.named(name)
    except targets.UnusableTarget as error:
        raise BadInput(str(error)) from error


def _faults(arguments: Namespace) -> "Faults":
    """Return the faults as they were typed: ``name=rate``, or ``none``."""
    from lifefold.interpreters.simulate import NONE, Faults  # noqa: PLC0415 - needs an extra

    if arguments.fault == ["none"]:
        return NONE
    rates: dict[str, float] = {}
    for typed in arguments.fault or ():
        name, _, rate = typed.partition("=")
        try:
            rates[name] = float(rate)
        except ValueError as error:
            raise BadInput(f"--fault {typed}: accepted is NAME=RATE with a rate between 0 and 1, or none") from error
    try:
        return Faults(rates, swarm=not arguments.all_faults)
    except ValueError as error:
        raise BadInput(f"--fault: {error}") from error


def _progress(name: str, seeds: int) -> Any:
    if not sys.stderr.isatty():
        return None

    def tell(tally: "Tally") -> None:
        rate = tally.inputs / tally.seconds if tally.seconds else 0
        done = f"{tally.seeds:,} of {seeds:,} seeds, {tally.inputs:,} inputs, {rate:,.0f}/s"
        said = f"{name}: {done}, {len(tally.found)} found"
        print(f"\r{said:<100}", end="\r", file=sys.stderr, flush=True)

    return tell


def _findings(target: "Target", tally: "Tally", faults: "Faults", limits: "Limits") -> "list[Finding]":
    """Make what was found small: each promise once, by its first seed."""
    from lifefold.interpreters.simulate.campaign import Order, run  # noqa: PLC0415 - needs an extra
    from lifefold.interpreters.simulate.findings import small  # noqa: PLC0415 - as above

    firsts: dict[tuple[str, str], int] = {}
    for seed, found in tally.found:
        firsts.setdefault((found.owner, found.promise), seed)
    order = Order(target.name, (), faults, limits)
    return [small(target, seed, run(target, order, seed), faults, limits) for seed in firsts.values()]


def _tell(target: "Target", tally: "Tally", findings: "list[Finding]") -> None:
    from lifefold.interpreters.cli.search import WIDTH  # noqa: PLC0415 - needs an extra
    from lifefold.interpreters.simulate.report import lines  # noqa: PLC0415 - as above

    print("\n".join(lines(target, tally, findings, WIDTH)))


def _facts(target: "Target", tally: "Tally", findings: "list[Finding]") -> dict[str, Any]:
    from lifefold.interpreters.simulate.report import conclusion, used  # noqa: PLC0415 - needs an extra

    return {
        "target": target.name,
        "ok": not tally.found,
        "conclusion": conclusion(tally),
        "seeds": tally.seeds,
        "inputs": tally.inputs,
        "refused": tally.refused,
        "transitions": tally.transitions,
        "crashes": tally.crashes,
        "performed_again": tally.again,
        "virtual_ms": tally.virtual_ms,
        "seconds": round(tally.seconds, 3),
        "faults": dict(tally.struck),
        "coverage": {name: [count, of] for name, count, of in used(target, tally)},
        "seen": sorted(f"{owner}: {promise}" for owner, promise in tally.seen),
        "state_ms": {f"{machine} {state}": spent for (machine, state), spent in sorted(tally.state_ms.items())},
        "recovery_ms": tally.recovery_ms,
        "found": [
            {
                "seed": each.seed,
                **(msgspec.to_builtins(each.run.found) if each.run.found else {}),
                "deviations": [[list(name), way] for name, way in each.run.deviations.items()],
                "inputs": len(each.run.entries),
            }
            for each in findings
        ],
    }


def _emit(findings: "list[Finding]", path: Path, *, is_quiet: bool) -> None:
    from lifefold.interpreters.simulate.emitted import emitted  # noqa: PLC0415 - needs an extra

    text = emitted(findings)
    if text:
        write(path, text.encode(), is_quiet=is_quiet)
    else:
        print(f"lifefold: nothing to test, so {path} is not written", file=sys.stderr)
