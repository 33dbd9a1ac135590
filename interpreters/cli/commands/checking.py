"""The command that checks: ``check``. What it says is what ``interpreters.check`` has found."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lifefold.interpreters.cli.errors import BadInput

if TYPE_CHECKING:
    from lifefold.interpreters.check import Bounds, CrashBounds, CrashReport, Report
    from lifefold.interpreters.check.certificate import Certificate
    from lifefold.interpreters.check.targets import Target

EXTRA: Final = "lifefold check needs NumPy and SciPy, and {} is not installed: pip install 'lifefold[check]'"


def check(arguments: Namespace) -> int:
    """Check the targets, or what certificates say; return 0 if all is as it should be, else 1. Raises ``BadInput``."""
    try:
        import_module("lifefold.interpreters.check")
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in {"numpy", "scipy"}:
            raise
        raise BadInput(EXTRA.format(library)) from error
    return _verify(arguments) if arguments.verify else _check(arguments)


def _check(arguments: Namespace) -> int:
    targets = [_named(name) for name in dict.fromkeys(arguments.targets)]
    if not targets:
        raise BadInput("check what? name lifecycles or systems of `lifefold machines`, or your own: module:attribute")
    folder = arguments.certificate and _is_folder(arguments.certificate)
    if arguments.certificate and len(targets) > 1 and not folder:
        raise BadInput(f"--certificate {arguments.certificate}: one file for {len(targets)} targets; name a folder")
    checked: list[tuple[Target, Report]] = []
    good = True
    for target in targets:
        crashes = msgspec.structs.replace(target.crashes, seconds=arguments.seconds)
        report = _searched(target, _bounds(target, arguments), crashes, is_quiet=arguments.json)
        if report is None:
            good = False
            continue
        checked.append((target, report))
        is_good = not report.broken() if arguments.accept_truncated and report.cut_short else report.ok
        if arguments.certificate:
            is_good = is_good and _certify(target, report, _path(arguments.certificate, target.name))
            if not is_good:
                print(f"lifefold: {target.name} gets no certificate", file=sys.stderr)
        good = good and is_good
    if arguments.json:
        print(json.dumps([_facts(target, report) for target, report in checked], indent=2))
    if arguments.emit_test:
        _emit(checked, Path(arguments.emit_test))
    return 0 if good else 1


def _named(name: str) -> "Target":
    from lifefold.interpreters.check.targets import UnusableTarget, named  # noqa: PLC0415 - needs an extra

    try:
        return named(name)
    except UnusableTarget as error:
        raise BadInput(str(error)) from error


def _bounds(target: "Target", arguments: Namespace) -> "Bounds":
    """Return a target's own bounds with those that were typed instead."""
    typed = {
        "states": arguments.states,
        "depth": arguments.depth,
        "seconds": arguments.seconds,
        "memory_mib": arguments.memory,
        "commands": arguments.commands,
    }
    return msgspec.structs.replace(target.bounds, **{name: each for name, each in typed.items() if each is not None})


def _searched(target: "Target", bounds: "Bounds", crashes: "CrashBounds | None", *, is_quiet: bool) -> "Report | None":
    """Search, and tell what came of it; None if the search could not be brought to its end, which is told, too."""
    from lifefold.interpreters.check import Unsound, check  # noqa: PLC0415 - needs an extra
    from lifefold.interpreters.cli.search import shown, tell  # noqa: PLC0415 - as above

    try:
        with shown(target.name) as told:
            report = check(target.subject, opening=target.opening, bounds=bounds, crashes=crashes, tell=told)
        if not target.module:
            report = msgspec.structs.replace(report, target=target.name)
    except Unsound as error:
        print(f"lifefold: {target.name}: {error}", file=sys.stderr)
        return None
    except ValueError as error:
        raise BadInput(f"{target.name} cannot be checked: {error}") from error
    if not is_quiet:
        tell(report)
    return report


def _is_folder(path: str) -> bool:
    return path.endswith("/") or Path(path).is_dir()


def _path(given: str, name: str) -> Path:
    return Path(given) / f"{name.replace(':', '.')}.json" if _is_folder(given) else Path(given)


def _certify(target: "Target", report: "Report", path: Path) -> bool:
    """Write the certificate; tell whether there is one."""
    from lifefold.interpreters.check.certificate import NoCertificate, certify  # noqa: PLC0415 - needs an extra

    try:
        certificate = certify(target, report)
    except NoCertificate as error:
        print(f"lifefold: {target.name}: {error}", file=sys.stderr)
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(certificate.encode())
    return True


def _emit(checked: "Sequence[tuple[Target, Report]]", path: Path) -> None:
    from lifefold.interpreters.check.emitted import emitted  # noqa: PLC0415 - needs an extra

    text, without = emitted(checked)
    for each in without:
        print(f"lifefold: no test of {each}", file=sys.stderr)
    if text:
        path.write_text(text, encoding="utf-8")
    else:
        print(f"lifefold: nothing to test, so {path} is not written", file=sys.stderr)


def _facts(target: "Target", report: "Report") -> dict[str, Any]:
    return {
        "target": target.name,
        "ok": report.ok,
        "truncated": report.truncated,
        "states": report.states,
        "steps": report.steps,
        "depth": report.depth,
        "seconds": round(report.seconds, 3),
        "local_states": dict(report.parts),
        "coverage": {name: list(each) for name, each in report.coverage.items()},
        "missing": list(report.missing),
        "crashes": None if report.crashes is None else _of_crashes(report.crashes),
        "promises": [
            {
                "owner": verdict.owner,
                "name": verdict.name,
                "kind": verdict.temper,
                "outcome": verdict.outcome,
                "trace": None if verdict.trace is None else list(verdict.trace.lines(_WIDE)),
            }
            for verdict in report.verdicts
        ],
    }


def _of_crashes(crashes: "CrashReport") -> dict[str, Any]:
    limits = crashes.limits
    return {
        "begun": crashes.begun,
        "inputs": limits.inputs,
        "crashes": limits.crashes,
        "batch": limits.batch,
        "truncated": crashes.truncated,
        "moments": crashes.states,
        "steps": crashes.steps,
        "depth": crashes.depth,
        "performed_again": crashes.again,
        "seconds": round(crashes.seconds, 3),
    }


_WIDE: Final = 10_000
"""No line of a trace is cut where a program reads it."""


def _verify(arguments: Namespace) -> int:
    """Tell of each certificate whether it holds. Raises ``BadInput``."""
    if not arguments.certificate:
        raise BadInput("--verify needs --certificate: the file, or the folder of several")
    given = Path(arguments.certificate)
    paths = sorted(given.glob("*.json")) if given.is_dir() else [given]
    found = [(path, _read(path)) for path in paths]
    chosen = [each for each in found if not arguments.targets or each[1].target in arguments.targets]
    missing = [name for name in arguments.targets if name not in {each.target for _, each in found}]
    if missing or not chosen:
        known = ", ".join(each.target for _, each in found) or "none"
        raise BadInput(f"{given}: no certificate of {', '.join(missing) or 'anything'}; there are: {known}")
    held = [_holds(path, certificate) for path, certificate in chosen]
    return 0 if all(held) else 1


def _read(path: Path) -> "Certificate":
    from lifefold.interpreters.check.certificate import UnreadableCertificate, read  # noqa: PLC0415 - needs an extra

    try:
        return read(path)
    except UnreadableCertificate as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def _holds(path: Path, certificate: "Certificate") -> bool:
    """Look whether the code is the same; if it is not, search again and compare."""
    from lifefold.interpreters.check import certificate as certificates  # noqa: PLC0415 - needs an extra

    target = _named(certificate.target)
    changed = certificates.changes(certificate, target)
    if not changed:
        print(f"{target.name}: holds; the code is the same ({path})")
        return True
    print(f"{target.name}: {', '.join(changed)}: checking again")
    report = _searched(target, certificate.bounds(target.bounds), certificate.crash_bounds(), is_quiet=True)
    told = ["the search cannot be brought to its end"] if report is None else list(_told(target, certificate, report))
    for each in told:
        print(f"  {each}")
    print(f"{target.name}: {'does not hold any more' if told else 'holds for this code, too'} ({path})")
    return not told


def _told(target: "Target", then: "Certificate", report: "Report") -> Iterator[str]:
    from lifefold.interpreters.check.certificate import NoCertificate, certify, differences  # noqa: PLC0415 - an extra

    try:
        yield from differences(then, certify(target, report))
    except NoCertificate as error:
        yield f"{error}:"
        yield from (f"{verdict.owner}: {verdict.name}: {verdict.outcome}" for verdict in report.broken())
