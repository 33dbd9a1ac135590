"""Certificates: the results of checks, each with its code and its bounds. One of changed code is stale.

A certificate names every module of the target, each with a digest of its syntax tree. It has one digest of the
checker's code and the versions of the libraries. While these and the configuration are unchanged, another search would
have the same result. Otherwise the search is repeated and compared.

A certificate has a digest of its own content, which reveals an accidental change of the file. The digest is no
signature: only a search can confirm a certificate. The content does not depend on the computer, the folder or the
time.
"""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from inspect import getsource
from pathlib import Path
from typing import Any, Final

import msgspec

from lifefold.core.kernel import Machine, Property, alone
from lifefold.interpreters.certificates.code import checker, code_of, digest
from lifefold.interpreters.certificates.covering import Scope
from lifefold.interpreters.certificates.source import Names
from lifefold.interpreters.report.finding import Outcome
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.search.configuration import Bounds, Judge
from lifefold.interpreters.search.crash_model import CrashBounds
from lifefold.interpreters.search.report import CrashReport, Report
from lifefold.interpreters.targets.target import Target

FORMAT: Final = 5


class UnreadableCertificate(ValueError):
    """A file is not a certificate, or one of another format; the message says which."""


class NoCertificate(ValueError):
    """A report proves nothing that a certificate could state; the message says why."""


class Configuration(msgspec.Struct, frozen=True):
    """The configuration of a check: the opening, the properties, the module of additional ones, and the bounds.

    ``properties`` is a digest of the kinds and ids of all properties that the target declares (see ``id_of``).
    ``added`` has the additional properties of the configuration. ``within`` has digests of the bounds on records.

    Seconds and memory are not among the ``limits``: a search that they end has no certificate.
    """

    opening: tuple[str, ...]
    properties: str
    added: tuple[tuple[str, str], ...]
    within: Mapping[str, str]
    limits: Mapping[str, int | bool | None]


class Open(msgspec.Struct, frozen=True):
    """A property that is not known to hold, with its outcome."""

    owner: str
    name: str
    kind: str
    outcome: str


class Verdicts(msgspec.Struct, frozen=True):
    """The number of properties that hold, a digest of the owners and kinds of all, and those that do not hold."""

    held: int
    asked: str
    open: tuple[Open, ...]


class Counts(msgspec.Struct, frozen=True):
    """The size of the search. ``local_states`` are those of each aggregate by itself."""

    states: int
    steps: int
    depth: int
    local_states: Mapping[str, int]
    refused: int
    cut: int
    compared: tuple[int, int]


class Crashes(msgspec.Struct, frozen=True):
    """The crash search: its bounds on inputs, crashes and batches, and its size."""

    inputs: int
    crashes: int
    batch: int
    begun: int
    states: int
    steps: int
    depth: int
    performed_again: int


class Certificate(msgspec.Struct, frozen=True):
    """The proven result of a check."""

    format: int
    target: str
    configuration: Configuration
    truncated: str
    verdicts: Verdicts
    counts: Counts
    coverage: Mapping[str, tuple[int, int]]
    unused: tuple[str, ...]
    code: str
    modules: Mapping[str, str]
    checker: str
    versions: Mapping[str, str]
    crashes: Crashes | None = None
    rules: str = ""
    """The version of the rules, which each entry of a log of them has; empty in an older certificate."""
    content: str = ""
    """The digest of all other fields."""

    def encode(self) -> bytes:
        """Return the certificate as JSON, in lines, with the digest of its content."""
        whole = msgspec.structs.replace(self, content=self.content_digest())
        return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"

    def content_digest(self) -> str:
        """Return the digest of all other fields."""
        bare = msgspec.to_builtins(msgspec.structs.replace(self, content=""))
        if not self.rules:  # an older certificate has a digest without it
            del bare["rules"]
        return digest({"certificate": msgspec.json.encode(bare).decode()})

    def lacking(self) -> str:
        """Return in words why it is no proof, such as a search that ended early; empty if it is one."""
        open_ = sum(each.outcome == Outcome.UNDECIDED for each in self.verdicts.open)
        return f"the search ended after {self.truncated}, and {open_} undecided" if self.truncated or open_ else ""

    def scope(self) -> Scope:
        """Return what it is of, to be compared with the log of a run."""
        kinds = dict.fromkeys(name.partition("/")[0] for name in self.counts.local_states)
        return Scope(self.target, self.content or self.content_digest(), self.rules, tuple(kinds))

    def bounds(self, of: Bounds) -> Bounds:
        """Return its bounds; functions among them are those of the target, ``of``."""
        return msgspec.structs.replace(of, seconds=None, memory_mib=None, **self.configuration.limits)

    def crash_bounds(self) -> CrashBounds | None:
        """Return the bounds of its crash search, if it has one, without a bound on states."""
        if self.crashes is None:
            return None
        return CrashBounds(self.crashes.inputs, self.crashes.crashes, self.crashes.batch)


def certify(target: Target, report: Report) -> Certificate:
    """Return the certificate of a report. Raises ``NoCertificate`` if another search could have another result."""
    if report.broken():
        raise NoCertificate("not every property holds")
    if report.truncated and not report.truncated.endswith(("states", "steps deep")):
        raise NoCertificate(f"the search ended after {report.truncated}, and would end elsewhere the next time")
    if report.crashes is not None and report.crashes.truncated:
        raise NoCertificate(f"the crash search is not complete: {report.crashes.truncated}")
    modules = code_of(target)
    certificate = Certificate(
        format=FORMAT,
        target=target.name,
        configuration=configuration_of(target, report.bounds),
        truncated=report.truncated,
        verdicts=_verdicts(report),
        counts=Counts(
            report.states,
            report.steps,
            report.depth,
            dict(report.components),
            report.refused,
            report.cut,
            report.walked,
        ),
        crashes=None if report.crashes is None else _of_crashes(report.crashes),
        coverage=dict(report.coverage),
        unused=report.missing,
        code=digest(modules),
        modules=modules,
        checker=checker(),
        versions=versions(),
        rules=rules_version(target.system),
    )
    return msgspec.structs.replace(certificate, content=certificate.content_digest())


def versions() -> dict[str, str]:
    """Return the versions of the libraries that a search uses."""
    return {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()}


LIBRARIES: Final = ("lifefold", "msgspec", "numpy", "pyrsistent", "returns", "scipy")


def _verdicts(report: Report) -> Verdicts:
    open_ = tuple(
        Open(v.owner, v.name, v.property_kind, v.outcome) for v in report.verdicts if v.outcome is not Outcome.HOLDS
    )
    asked = _listed((each.owner, each.property_kind) for each in report.verdicts)
    return Verdicts(len(report.verdicts) - len(open_), asked, open_)


def _listed(properties: Iterable[tuple[str, ...]]) -> str:
    """Return a digest of what identifies properties, in any order."""
    return digest({"properties": "\n".join(sorted("\t".join(map(str, each)) for each in properties))})


def _of_crashes(report: CrashReport) -> Crashes:
    limits, counts = report.limits, (report.begun, report.states, report.steps, report.depth, report.again)
    return Crashes(limits.inputs, limits.crashes, limits.batch, *counts)


def configuration_of(target: Target, bounds: Bounds) -> Configuration:
    """Return the configuration of a check of a target within bounds."""
    names = Names()
    begins = (target.record,) if target.record is not None else target.opening
    within = {name: _digest_of(holds) for name, holds in bounds.within.items()}
    opening = tuple(names.expression(each) for each in begins)
    limits = {name: getattr(bounds, name) for name in bounds.__struct_fields__ if name not in _NO_LIMITS}
    return Configuration(opening, _declared(target), target.properties, within, limits)


def _declared(target: Target) -> str:
    """Return a digest of the properties that a target declares: its own, and those of all its parts."""
    if isinstance(target.subject, Machine):
        system, _ = alone(target.subject)
        kinds = None
    else:
        system, kinds = target.subject, {name.partition("/")[0] for name, _ in target.opening}
    declared = Judge(system, (), kinds).properties
    return _listed((each.owner, each.property.property_kind, id_of(each.property)) for each in declared)


def id_of(prop: Property[Any]) -> str:
    """Return the id of a property: the names of the functions that it is made of. A property's own name is prose.

    Properties that one function makes for several states share an id; a list of ids has each of them once more.
    """
    made_of = (prop.of, prop.when, prop.projection, prop.localized, prop.holds)
    return " ".join(_called(each) for each in made_of if each is not None)


def _called(made_of: Any) -> str:
    """Return the name of a function, of what a partial calls, or of the class of a callable object."""
    function = made_of.func if isinstance(made_of, partial) else made_of
    return str(getattr(function, "__qualname__", type(function).__qualname__))


_NO_LIMITS: Final = {"within", "seconds", "memory_mib"}


def _digest_of(holds: Callable[[Any], bool]) -> str:
    return digest({getattr(holds, "__name__", ""): getsource(holds)})


def read(path: Path) -> Certificate:
    """Read a certificate. Raises ``UnreadableCertificate``, and ``OSError`` if there is no such file."""
    text = path.read_bytes()
    try:
        known = msgspec.json.decode(text, type=_Any)
        if known.format != FORMAT:
            raise UnreadableCertificate(f"{path} has format {known.format}; this version of lifefold reads {FORMAT}")
        found = msgspec.json.decode(text, type=Certificate)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableCertificate(f"{path} is not a certificate: {error}") from error
    if found.content != found.content_digest():
        raise UnreadableCertificate(f"{path} was changed after it was written: its content has another digest")
    return found


def is_certificate(text: bytes) -> bool:
    """Tell whether the text of a file is a certificate, of any format."""
    try:
        msgspec.json.decode(text, type=_Any)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


class _Any(msgspec.Struct):
    """The common field of certificates of all formats."""

    format: int
    target: str
    modules: Mapping[str, str]


def changes(certificate: Certificate, target: Target) -> tuple[str, ...]:
    """Return the changes of the target's code and of the configuration; empty if there are none."""
    now = code_of(target)
    found = [f"{name} is new" for name in now if name not in certificate.modules]
    found += [f"{name} has gone" for name in certificate.modules if name not in now]
    found += [f"{name} has changed" for name, each in now.items() if certificate.modules.get(name, each) != each]
    if configuration_of(target, certificate.bounds(target.bounds)) != certificate.configuration:
        found.append("its opening, its properties or its bounds have changed")
    return tuple(found)


def environment_changes(certificate: Certificate) -> tuple[str, ...]:
    """Return the changes of the checker's code and of the libraries' versions."""
    found = [] if certificate.checker == checker() else ["the checker has changed"]
    now = versions()
    names = dict.fromkeys((*certificate.versions, *now))
    found += [
        f"{name} is {now.get(name, 'not there')}, and was {certificate.versions.get(name, 'not there')}"
        for name in names
        if now.get(name) != certificate.versions.get(name)
    ]
    return tuple(found)


def differences(then: Certificate, now: Certificate) -> Iterator[str]:
    """Yield in words the differences between the results of two searches."""
    if then.truncated != now.truncated:
        yield f"truncated: {now.truncated or 'no'}, and was: {then.truncated or 'no'}"
    yield from _of_verdicts(then.verdicts, now.verdicts)
    yield from _other("", msgspec.to_builtins(then.counts), msgspec.to_builtins(now.counts))
    yield from _other("crashes, ", _counts_of(then.crashes), _counts_of(now.crashes))
    yield from _other("used ", dict(then.coverage), dict(now.coverage))


def _of_verdicts(then: Verdicts, now: Verdicts) -> Iterator[str]:
    if then.asked != now.asked:
        yield f"other properties are checked: {now.held + len(now.open)} in all, and were: {then.held + len(then.open)}"
    if then.held != now.held:
        yield f"{now.held} properties hold, and were: {then.held}"
    before = {(each.owner, each.kind, each.name): each.outcome for each in then.open}
    for each in now.open:
        was = before.pop((each.owner, each.kind, each.name), str(Outcome.HOLDS))
        if was != each.outcome:
            yield f"{each.owner}: {each.name}: {each.outcome}, and was: {was}"
    yield from (f"{owner}: {name}: was {outcome}, and is not any more" for (owner, _, name), outcome in before.items())


def _counts_of(crashes: Crashes | None) -> Mapping[str, int]:
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
