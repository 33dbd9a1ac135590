"""``lifefold check --verify``: whether certificates hold for this code. It needs the extra of ``check``."""

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.certificates.certificate import (
    Certificate,
    NoCertificate,
    UnreadableCertificate,
    certify,
    changes,
    differences,
    environment_changes,
    read,
)
from lifefold.interpreters.check import Report
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.searching import named, searched
from lifefold.interpreters.targets.target import Target

MEANINGLESS: Final = ("states", "depth", "seconds", "memory", "commands", "symmetry", "emit_test")
"""The options that do not apply: a certificate has its own bounds."""

UNCHANGED: Final = "not searched; code, checker, libraries and configuration are as certified (--search searches again)"


class Answer(msgspec.Struct):
    """The result of a certificate: whether it holds, the changes since, and the differences of a new search."""

    target: str
    certificate: str
    holds: bool
    searched: bool = False
    changed: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()


def verify(arguments: Namespace) -> int:
    """Verify each certificate; return 0 if all hold, else 1. Raises ``BadInput``."""
    for name in MEANINGLESS:
        if getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise BadInput(f"{option} means nothing with --verify: the certificate has the bounds")
    answers: list[Answer] = []
    for path, certificate in _chosen(arguments):
        answers.append(_answer(path, certificate, arguments))
    if arguments.json:
        print(json.dumps(msgspec.to_builtins(answers), indent=2))
    return 0 if all(each.holds for each in answers) else 1


def _chosen(arguments: Namespace) -> list[tuple[Path, Certificate]]:
    if not arguments.certificate:
        raise BadInput("--verify needs --certificate with a file, or with a folder of several")
    given = Path(arguments.certificate)
    found = read_certificates(given)
    chosen = [each for each in found if not arguments.targets or each[1].target in arguments.targets]
    missing = [name for name in arguments.targets if name not in {each.target for _, each in found}]
    if missing or not chosen:
        known = ", ".join(each.target for _, each in found) or "none"
        raise BadInput(f"{given}: no certificate of {', '.join(missing) or 'anything'}; there are: {known}")
    return chosen


def read_certificates(given: Path) -> list[tuple[Path, Certificate]]:
    """Return the certificate in a file, or all of a folder. Raises ``BadInput``."""
    paths = sorted(given.glob("*.json")) if given.is_dir() else [given]
    return [(path, _read(path)) for path in paths]


def _read(path: Path) -> Certificate:
    try:
        return read(path)
    except UnreadableCertificate as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def _answer(path: Path, certificate: Certificate, arguments: Namespace) -> Answer:
    """Check that a certificate is proven and its inputs unchanged; if they changed, or with --search, search again."""
    target, lacking = named(certificate.target), certificate.lacking()
    changed = (*changes(certificate, target), *environment_changes(certificate))
    say = _silent if arguments.json else print
    if lacking and not arguments.accept_truncated:
        say(f"{target.name}: is not proven: {lacking} (--accept-truncated accepts that) ({path})")
        return Answer(target.name, str(path), holds=False, changed=changed, differences=(f"is not proven: {lacking}",))
    if not changed and not arguments.search:
        say(f"{target.name}: {UNCHANGED} ({path})")
        return Answer(target.name, str(path), holds=True)
    say(f"{target.name}: {', '.join(changed) or 'nothing has changed'}: searching again")
    report = searched(target, certificate.bounds(target.bounds), certificate.crash_bounds(), is_quiet=True)
    differing = tuple(_differences(target, certificate, report))
    for each in differing:
        say(f"  {each}")
    verdict = "the search comes to something else" if differing else "holds: the search comes to the same"
    say(f"{target.name}: {verdict} ({path})")
    return Answer(target.name, str(path), holds=not differing, searched=True, changed=changed, differences=differing)


def _silent(_text: str) -> None:
    """Print nothing, because the output is JSON."""


def _differences(target: Target, then: Certificate, report: Report) -> Iterator[str]:
    try:
        yield from differences(then, certify(target, report))
    except NoCertificate as error:
        yield f"{error}:"
        yield from (f"{verdict.owner}: {verdict.name}: {verdict.outcome}" for verdict in report.broken())
