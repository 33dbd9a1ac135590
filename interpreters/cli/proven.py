"""What ``verify`` says of certificates: those that were named, or those that come with lifefold for a fleet."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from lifefold.interpreters.certificates.covering import Covering, Scope, covering
from lifefold.interpreters.cli.recorded_logs import OneLog
from lifefold.interpreters.store import Entry

if TYPE_CHECKING:
    from lifefold.interpreters.certificates.certificate import Certificate
    from lifefold.interpreters.targets.target import Target


class Proof(msgspec.Struct):
    """What a named certificate says of the rules of a run; ``lacking`` is empty if it proves the present ones."""

    path: str
    target: str
    properties: int
    digest: str
    lacking: tuple[str, ...] = ()


class Proven(msgspec.Struct, rename={"proofs": "certificates"}):
    """The named certificates, and what certificates cover of the run."""

    proofs: list[Proof]
    covering: Covering
    is_shipped: bool
    """Whether the certificates are those that come with lifefold, because none was named."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        under = {each.digest for each in self.covering.under}
        for each in self.proofs:
            of_log = "its rules and properties are those of the log; " if each.digest in under else ""
            said = f"{of_log}proves {each.properties} properties of these rules within its bounds"
            yield f"  certificate {each.target}: {'; '.join(each.lacking) or said} ({each.path})"
        if self.is_shipped and under:
            yield f"  certificate those with the rules and properties of this log: {len(under)} that came with lifefold"
        if not under:
            return
        for rules, count in self.covering.other_rules.items():
            by = f"the rules {rules}" if rules else "rules without a version"
            yield f"  not covered entries that {by} decided ({count:,}): no certificate here is of them"
        for kind in self.covering.kinds:
            yield f"  not covered {kind}: no certificate here has an aggregate of this kind"

    def words(self) -> str:
        """Return the end of the verdict for a run that was allowed."""
        under = [f"{each.target} ({each.digest[:_SHOWN]})" for each in self.covering.under]
        if not under:
            return ""
        more = f" and {len(under) - _NAMED} more" if len(under) > _NAMED else ""
        named = f"{', '.join(under[:_NAMED])}{more}"
        if not self.covering.is_whole:
            return f", in part under certificate {named}"
        return f" under certificate {named}, with the rules and properties of the log"


_SHOWN: Final = 8
"""The digits of a digest in a sentence."""

_NAMED: Final = 2
"""The most certificates that a sentence names."""


def proven_of(of: OneLog, entries: Sequence[Entry], path: str | None) -> Proven:
    """Return what certificates say of a run. Raises ``BadInput`` for a path that has none."""
    if not path:
        scopes = _shipped() if of.is_fleet else []
        return Proven([], covering(scopes, entries), is_shipped=True)
    from lifefold.interpreters.cli.commands.verifying import read_certificates  # noqa: PLC0415 - slow to import
    from lifefold.interpreters.cli.searching import named  # noqa: PLC0415 - as above

    certificates = list(read_certificates(Path(path)))
    proofs = [_proof(each_path, each, named(each.target)) for each_path, each in certificates]
    return Proven(proofs, covering([each.scope() for _, each in certificates], entries), is_shipped=False)


def _shipped() -> list[Scope]:
    from lifefold.interpreters.web.proofs import all_proofs  # noqa: PLC0415 - read for this command only

    return [each.scope for each in all_proofs().proofs if each.scope is not None]


def _proof(path: Path, certificate: "Certificate", target: "Target") -> Proof:
    from lifefold.interpreters.certificates.certificate import changes  # noqa: PLC0415 - slow to import

    lacking = (*changes(certificate, target), *filter(None, (certificate.lacking(),)))
    return Proof(str(path), target.name, certificate.verdicts.held, certificate.scope().digest, lacking)
