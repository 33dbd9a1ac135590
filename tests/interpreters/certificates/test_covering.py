"""What certificates cover of a run: entries of their rules, of the kinds of aggregates that they have."""

import json
from functools import partial
from pathlib import Path

import anyio
import pytest

from lifefold.core.fleet.board import intake
from lifefold.core.kernel import ENGINE, Envelope, alone
from lifefold.interpreters.certificates.certificate import read
from lifefold.interpreters.certificates.covering import Covering, Scope, covering
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.proven import Proven
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import Batch, Entry, SqliteStore

SMALL = Scope("small", "d1", "now", ("board",))
LARGE = Scope("large", "d2", "now", ("board", "worker"))
OLD = Scope("old", "d3", "then", ("board",))


def entry(stream: str, rules: str) -> Entry:
    """Return an entry of these rules."""
    return Entry(stream, 1, 1, "", b"", b"", rules)


def test_a_run_of_the_rules_of_a_certificate_is_covered() -> None:
    """Certificates of other rules, and of rules without a version, are left out."""
    found = covering(
        [LARGE, OLD, Scope("bare", "d4", "", ("board",))], [entry("board", "now"), entry("worker/a", "now")]
    )
    assert found == Covering((LARGE,), 2)
    assert found.is_whole


def test_the_part_of_a_run_that_is_not_covered_is_named() -> None:
    """Kinds of aggregates, and entries of other rules; entries about the log itself are decided by no rules."""
    entries = [entry("board", "now"), entry("worker/a", "now"), entry("worker/a", "then"), entry(ENGINE, "never")]
    assert covering([SMALL], entries) == Covering((SMALL,), 2, {"then": 1}, ("worker",))
    assert covering([LARGE, OLD], entries) == Covering((LARGE, OLD), 3, {}, ("worker",))
    assert not covering([SMALL], entries).is_whole
    assert not covering([], entries[:1]).is_whole


def test_the_report_says_what_is_not_covered() -> None:
    """One line for each part, and the verdict says that it is a part; without a certificate nothing is said."""
    entries = [entry("board", "now"), entry("worker/a", "now"), entry("board", "then"), entry("board", "")]
    found = Proven([], covering([SMALL], entries), is_shipped=True)
    assert list(found.lines()) == [
        "  certificate those with the rules and properties of this log: 1 that came with lifefold",
        "  not covered entries that the rules then decided (1): no certificate here is of them",
        "  not covered entries that rules without a version decided (1): no certificate here is of them",
        "  not covered worker: no certificate here has an aggregate of this kind",
    ]
    assert found.words() == ", in part under certificate small (d1)"
    none = Proven([], covering([OLD], entries[:2]), is_shipped=True)
    assert (list(none.lines()), none.words()) == ([], "")


def test_a_verdict_names_some_of_many_certificates() -> None:
    """Each with its digest."""
    several = [Scope(name, f"{name * 32}", "now", ("board",)) for name in "abcd"]
    found = Proven([], covering(several, [entry("board", "now")]), is_shipped=True)
    assert (
        found.words()
        == " under certificate a (aaaaaaaa), b (bbbbbbbb) and 2 more, with the rules and properties of the log"
    )


def test_verify_says_under_which_certificate_a_run_was_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check writes the version of the rules into its certificate, and an entry of a log has it."""
    system, opening = alone(intake.machine)
    ledger = Ledger(system, rules=rules_version(system))
    given = [opening["intake"], Envelope("intake", intake.LastTaskIn(), 5)]
    decisions = [ledger.decide("intake", each) for each in given]
    log, certificate = tmp_path / "intake.db", tmp_path / "intake.json"
    with SqliteStore.create(log, {}) as store:
        anyio.run(partial(store.append, Batch([each.entry for each in decisions if isinstance(each, Decision)])))
    name = "lifefold.core.fleet.board.intake:machine"
    assert main(["check", "intake", "--certificate", str(certificate)]) == 0
    assert read(certificate).scope().rules == rules_version(system)
    digest = read(certificate).content
    capsys.readouterr()
    assert main(["verify", name, str(log), "--certificate", str(certificate)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "certificate intake: its rules and properties are those of the log; proves" in said[-2]
    assert said[-1] == (
        f"this run was allowed under certificate intake ({digest[:8]}), with the rules and properties of the log"
    )
    assert main(["verify", name, str(log), "--certificate", str(certificate), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["covering"]["entries"], found["covering"]["under"][0]["digest"]) == (2, digest)
    assert found["certificates"][0]["target"] == "intake"
