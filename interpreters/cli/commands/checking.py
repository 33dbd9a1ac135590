"""The command ``check``: prints the reports of ``interpreters.check``, and writes certificates and tests."""

import gc
import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.itf_files import see_to_itf, traces_of, write_itf
from lifefold.interpreters.cli.searching import named, searched
from lifefold.interpreters.cli.written import see_to, write
from lifefold.interpreters.report.emitted_file import is_written_by

if TYPE_CHECKING:
    from lifefold.interpreters.check import Bounds, Report
    from lifefold.interpreters.targets.target import Target

EXTRA: Final = "lifefold check needs NumPy and SciPy, and {} is not installed: pip install 'lifefold[check]'"


RARELY: Final = (50_000, 20, 50)
"""The thresholds of the garbage collector during a search, which keeps nearly all its objects."""


def check(arguments: Namespace) -> int:
    """Check targets, or verify certificates; return 0 if all hold, else 1. Raises ``BadInput``."""
    needed()
    if not arguments.verify:
        if arguments.search:
            raise BadInput("--search means nothing without --verify: check without it always searches")
        return _check(arguments)
    from lifefold.interpreters.cli.commands.verifying import verify  # noqa: PLC0415 - needs an extra

    return verify(arguments)


def needed() -> None:
    """Prepare for a search. Raises ``BadInput`` without the extra that it needs."""
    gc.set_threshold(*RARELY)
    try:
        import_module("lifefold.interpreters.check.checking")
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in {"numpy", "scipy"}:
            raise
        raise BadInput(EXTRA.format(library)) from error


def _check(arguments: Namespace) -> int:
    if _has_log(arguments.targets):
        return _from_log(arguments)
    check_targets = [named(name) for name in dict.fromkeys(arguments.targets)]
    if not check_targets:
        raise BadInput("check what? name lifecycles or systems of `lifefold machines`, or your own: module:attribute")
    _see_to_files(check_targets, arguments)
    found: list[tuple[Target, Report]] = []
    good = True
    for target in check_targets:
        report = _searched(target, arguments)
        found.append((target, report))
        good = _is_good(target, report, arguments) and good
    if arguments.json:
        _tell_programs(found)
    _write(found, arguments)
    return 0 if good else 1


def _write(found: "Sequence[tuple[Target, Report]]", arguments: Namespace) -> None:
    """Write the tests and the traces that the arguments ask for."""
    if arguments.emit_test:
        _emit(found, Path(arguments.emit_test), is_quiet=arguments.json)
    if arguments.itf:
        traces = [each for target, report in found for each in traces_of(target, report.shown_findings())]
        write_itf(arguments.itf, traces, is_quiet=arguments.json)


def _has_log(words: "Sequence[str]") -> bool:
    """Tell whether a system and its log are named: the second word is then a file, and no target."""
    return len(words) == len(("SYSTEM", "LOG")) and ":" not in words[1] and Path(words[1]).is_file()


def _from_log(arguments: Namespace) -> int:
    """Search from the state in which a log has left its system."""
    from lifefold.interpreters.cli.recorded_logs import entries_of, one_log, opened  # noqa: PLC0415 - seldom needed
    from lifefold.interpreters.engine import LogMismatchError  # noqa: PLC0415 - as above
    from lifefold.interpreters.recorder.recording import world_after  # noqa: PLC0415 - as above

    if arguments.certificate:
        raise BadInput("--certificate means nothing with a log: a certificate is of the states from an opening")
    of = one_log(arguments.targets)
    with opened(of) as store:
        entries = entries_of(store, of)
    try:
        world = world_after(of.system, entries)
    except LogMismatchError as error:
        raise BadInput(str(error)) from error
    target = msgspec.structs.replace(of.target, begin=world)
    _see_to_files([target], arguments)
    bounds = _bounds(target, arguments)
    if arguments.symmetry:
        raise BadInput("--symmetry means nothing with a log: its aggregates are not alike any more")
    if arguments.depth is None and arguments.states is None and arguments.seconds is None:
        bounds = msgspec.structs.replace(bounds, depth=FROM_LOG)
    report = searched(target, bounds, None, is_quiet=arguments.json, shows_unused=arguments.unused)
    if arguments.json:
        _tell_programs([(target, report)])
    _write([(target, report)], arguments)
    good = not report.broken() if arguments.accept_truncated and report.cut_short else report.ok
    return 0 if good else 1


FROM_LOG: Final = 8
"""The number of steps searched from the state of a log, unless a limit is given."""


def _is_good(target: "Target", report: "Report", arguments: Namespace) -> bool:
    """Tell whether a report is good; write its certificate if asked."""
    is_good = not report.broken() if arguments.accept_truncated and report.cut_short else report.ok
    if arguments.certificate:
        path = _path(arguments.certificate, target.name)
        is_good = is_good and _certify(target, report, path, is_quiet=arguments.json)
        if not is_good:
            print(f"lifefold: {target.name} gets no certificate", file=sys.stderr)
    return is_good


def _see_to_files(check_targets: "Sequence[Target]", arguments: Namespace) -> None:
    """Check before the search that the files can be written. Raises ``BadInput``."""
    from lifefold.interpreters.certificates.certificate import is_certificate  # noqa: PLC0415 - needs an extra

    if arguments.certificate:
        paths = {_path(arguments.certificate, target.name) for target in check_targets}
        if len(paths) < len(check_targets):
            raise BadInput(
                f"--certificate {arguments.certificate}: one file for {len(check_targets)} targets; name a folder"
            )
        for path in paths:
            see_to(path, "certificate", is_certificate, in_new_folder=True)
    if arguments.emit_test:
        see_to(Path(arguments.emit_test), "test", partial(is_written_by, "check"))
    see_to_itf(arguments.itf)


def _searched(target: "Target", arguments: Namespace) -> "Report":
    crashes = msgspec.structs.replace(target.crashes, seconds=arguments.seconds)
    return searched(target, _bounds(target, arguments), crashes, is_quiet=arguments.json, shows_unused=arguments.unused)


def _tell_programs(found: "Sequence[tuple[Target, Report]]") -> None:
    from lifefold.interpreters.cli.reports import page_of  # noqa: PLC0415 - takes a while

    every = [
        {
            "target": target.name,
            "name": report.target,
            **report.facts(),
            "page": page_of(report, target.system),
        }
        for target, report in found
    ]
    print(json.dumps(every, indent=2))


def _bounds(target: "Target", arguments: Namespace) -> "Bounds":
    """Return the bounds of a target, replaced by those of the options."""
    typed = {
        "states": arguments.states,
        "depth": arguments.depth,
        "seconds": arguments.seconds,
        "memory_mib": arguments.memory,
        "commands": arguments.commands,
        "symmetry": arguments.symmetry,
    }
    return msgspec.structs.replace(target.bounds, **{name: each for name, each in typed.items() if each is not None})


def _is_folder(path: str) -> bool:
    return path.endswith("/") or Path(path).is_dir()


def _path(given: str, name: str) -> Path:
    return Path(given) / f"{name.replace(':', '.')}.json" if _is_folder(given) else Path(given)


def _certify(target: "Target", report: "Report", path: Path, *, is_quiet: bool) -> bool:
    """Write a certificate; return whether the report is worth one."""
    from lifefold.interpreters.certificates.certificate import NoCertificate, certify  # noqa: PLC0415 - needs an extra

    try:
        certificate = certify(target, report)
    except NoCertificate as error:
        print(f"lifefold: {target.name}: {error}", file=sys.stderr)
        return False
    write(path, certificate.encode(), is_quiet=is_quiet)
    return True


def _emit(checked: "Sequence[tuple[Target, Report]]", path: Path, *, is_quiet: bool) -> None:
    from lifefold.interpreters.certificates.emitted import emitted  # noqa: PLC0415 - needs an extra

    text, without = emitted(checked)
    for each in without:
        print(f"lifefold: no test of {each}", file=sys.stderr)
    if text:
        write(path, text.encode(), is_quiet=is_quiet)
    else:
        print(f"lifefold: nothing to test, so {path} is not written", file=sys.stderr)
