"""Certificates: what was proven, of which code, within which bounds; and whether that still holds.

A certificate names every module that what was checked is made of, each with a digest of its text. As long as none of
these, and nothing of the question, has changed, it holds; otherwise the search is done again and has to come to the
same. Nothing in it depends on the computer, the folder or the hour.
"""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from inspect import getsource
from pathlib import Path
from typing import Any, Final

import msgspec

from lifefold.interpreters.check.code import code_of, digest
from lifefold.interpreters.check.ground import CrashBounds
from lifefold.interpreters.check.question import Bounds
from lifefold.interpreters.check.report import CrashReport, Outcome, Report
from lifefold.interpreters.check.source import Names
from lifefold.interpreters.check.targets import Target

FORMAT: Final = 2


class UnreadableCertificate(ValueError):
    """A file is no certificate, or one of another format; the message says which."""


class NoCertificate(ValueError):
    """A report proves nothing that a certificate could say; the message says why."""


class Question(msgspec.Struct, frozen=True):
    """What was asked: how it begins, where the promises are besides its own, and the bounds.

    ``within`` has digests of what records are to be like.

    Seconds and memory are not among the ``limits``: what they would end is not certified.
    """

    opening: tuple[str, ...]
    promises: tuple[tuple[str, str], ...]
    within: Mapping[str, str]
    limits: Mapping[str, int | bool | None]


class Proven(msgspec.Struct, frozen=True):
    """A promise, and what came of it."""

    owner: str
    name: str
    kind: str
    outcome: str


class Counts(msgspec.Struct, frozen=True):
    """How much was looked at. ``local_states`` are those of each aggregate by itself."""

    states: int
    steps: int
    depth: int
    local_states: Mapping[str, int]
    refused: int
    cut: int
    compared: tuple[int, int]


class Crashes(msgspec.Struct, frozen=True):
    """What was looked at of crashes: how many inputs, crashes and decisions at once, and how much that was."""

    inputs: int
    crashes: int
    batch: int
    begun: int
    moments: int
    steps: int
    depth: int
    performed_again: int


class Certificate(msgspec.Struct, frozen=True):
    """What a check has proven."""

    format: int
    target: str
    question: Question
    truncated: str
    properties: tuple[Proven, ...]
    counts: Counts
    coverage: Mapping[str, tuple[int, int]]
    unused: tuple[str, ...]
    code: str
    modules: Mapping[str, str]
    versions: Mapping[str, str]
    crashes: Crashes | None = None

    def encode(self) -> bytes:
        """Return it as JSON, in lines."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def lacking(self) -> str:
        """Return in words why it is no proof: a search that was ended has not proven all; empty if it is one."""
        open_ = sum(each.outcome == Outcome.UNDECIDED for each in self.properties)
        return f"the search ended after {self.truncated}, and {open_} undecided" if self.truncated or open_ else ""

    def bounds(self, of: Bounds) -> Bounds:
        """Return the bounds that it was made with; ``of`` the target it has the limits that are functions."""
        return msgspec.structs.replace(of, seconds=None, memory_mib=None, **self.question.limits)

    def crash_bounds(self) -> CrashBounds | None:
        """Return the bounds that crashes were looked at with, if they were: whatever number of states that needs."""
        if self.crashes is None:
            return None
        return CrashBounds(self.crashes.inputs, self.crashes.crashes, self.crashes.batch)


def certify(target: Target, report: Report) -> Certificate:
    """Return the certificate of a report. Raises ``NoCertificate`` if it says nothing that would hold again."""
    if report.broken():
        raise NoCertificate("not every promise holds")
    if report.truncated and not report.truncated.endswith(("states", "steps deep")):
        raise NoCertificate(f"the search ended after {report.truncated}, and would end elsewhere the next time")
    if report.crashes is not None and report.crashes.truncated:
        raise NoCertificate(f"what crashes do was looked at only in part: {report.crashes.truncated}")
    modules = code_of(target)
    return Certificate(
        format=FORMAT,
        target=target.name,
        question=question(target, report.bounds),
        truncated=report.truncated,
        properties=tuple(Proven(v.owner, v.name, v.temper, v.outcome) for v in report.verdicts),
        counts=Counts(
            report.states, report.steps, report.depth, dict(report.parts), report.refused, report.cut, report.walked
        ),
        crashes=None if report.crashes is None else _of_crashes(report.crashes),
        coverage=dict(report.coverage),
        unused=report.missing,
        code=digest(modules),
        modules=modules,
        versions={name: version(name) for name in ("lifefold", "numpy", "scipy")}
        | {"python": platform.python_version()},
    )


def _of_crashes(report: CrashReport) -> Crashes:
    limits, counts = report.limits, (report.begun, report.states, report.steps, report.depth, report.again)
    return Crashes(limits.inputs, limits.crashes, limits.batch, *counts)


def question(target: Target, bounds: Bounds) -> Question:
    """Return what is asked of a target within bounds."""
    names = Names()
    begins = (target.record,) if target.record is not None else target.opening
    within = {name: _digest_of(holds) for name, holds in bounds.within.items()}
    opening = tuple(names.expression(each) for each in begins)
    limits = {name: getattr(bounds, name) for name in bounds.__struct_fields__ if name not in _NO_LIMITS}
    return Question(opening, target.promises, within, limits)


_NO_LIMITS: Final = {"within", "seconds", "memory_mib"}


def _digest_of(holds: Callable[[Any], bool]) -> str:
    return digest({getattr(holds, "__name__", ""): getsource(holds)})


def read(path: Path) -> Certificate:
    """Read a certificate. Raises ``UnreadableCertificate``, and ``OSError`` if there is no such file."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Certificate)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableCertificate(f"{path} is no certificate: {error}") from error
    if found.format != FORMAT:
        raise UnreadableCertificate(f"{path} has format {found.format}; this version of lifefold reads {FORMAT}")
    return found


def is_certificate(text: bytes) -> bool:
    """Tell whether a file's text is a certificate, of this format or of another one."""
    try:
        msgspec.json.decode(text, type=_Any)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


class _Any(msgspec.Struct):
    """What certificates of all formats have."""

    format: int
    target: str
    modules: Mapping[str, str]


def changes(certificate: Certificate, target: Target) -> tuple[str, ...]:
    """Return what of the code or of the question is not as it was: nothing, if the certificate holds as it is."""
    now = code_of(target)
    told = [f"{name} is new" for name in now if name not in certificate.modules]
    told += [f"{name} has gone" for name in certificate.modules if name not in now]
    told += [f"{name} has changed" for name, each in now.items() if certificate.modules.get(name, each) != each]
    if question(target, certificate.bounds(target.bounds)) != certificate.question:
        told.append("it begins otherwise, promises other things, or has other bounds")
    return tuple(told)


def differences(then: Certificate, now: Certificate) -> Iterator[str]:
    """Yield in words what a search has come to that it did not come to before."""
    if then.truncated != now.truncated:
        yield f"truncated: {now.truncated or 'no'}, and was: {then.truncated or 'no'}"
    before = {(each.owner, each.kind, each.name): each.outcome for each in then.properties}
    after = {(each.owner, each.kind, each.name): each.outcome for each in now.properties}
    for (owner, kind, name), outcome in after.items():
        known = before.get((owner, kind, name))
        if known is None:
            yield f"{owner}: {name}: is promised now, and {outcome}"
        elif known != outcome:
            yield f"{owner}: {name}: {outcome}, and was: {known}"
    yield from (
        f"{owner}: {name}: is not promised any more" for owner, kind, name in before if (owner, kind, name) not in after
    )
    yield from _other("", msgspec.to_builtins(then.counts), msgspec.to_builtins(now.counts))
    yield from _other("crashes, ", _told(then.crashes), _told(now.crashes))
    yield from _other("used ", dict(then.coverage), dict(now.coverage))


def _told(crashes: Crashes | None) -> Mapping[str, int]:
    return {} if crashes is None else msgspec.structs.asdict(crashes)


def _other(what: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*then, *now)):
        if then.get(name) != now.get(name):
            yield f"{what}{name.replace('_', ' ')}: {_said(now.get(name))}, and was: {_said(then.get(name))}"


def _said(value: int | Sequence[int] | Mapping[str, int] | None) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {count:,}" for name, count in value.items())
    return "/".join(f"{count:,}" for count in value)
