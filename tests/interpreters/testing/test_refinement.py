"""Refinement: what an engine records is a behaviour of the model; an entry that is none is named with the reason."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
import pytest
from msgspec.structs import replace as struct_replace

import kiln
from fleet_sandbox import Sandbox
from lifefold.core.kernel import (
    ActivityEnded,
    AggregateType,
    EntityQuarantined,
    EntityReleased,
    Envelope,
    HandlerFailed,
    Input,
    RunnerRecovered,
    System,
    encode,
    replace,
)
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.simulate import simulate
from lifefold.interpreters.simulate.on_engine import log_of
from lifefold.interpreters.store import Batch, Entry, SqliteStore
from lifefold.interpreters.targets.simulation_targets import named
from lifefold.interpreters.testing.refinement import foreign_entry, is_behaviour
from pottery_engine import OFTEN, pottery
from recorded_runs import Place, foreign_in

START_MS: Final = 1_000


def taken(ledger: Ledger, given: Input) -> Entry:
    """Return the entry of an input that the rules accept, whether or not the model has it."""
    decision = ledger.decide(*given)
    assert isinstance(decision, Decision), decision
    return decision.entry


LIT: Final = ("kiln/a", "kiln", kiln.Lit(), 10)


def after_lit(*envelopes: tuple[str, Envelope]) -> list[Entry]:
    """Return the log of a kiln that was lit, with further inputs."""
    ledger = Ledger(kiln.system)
    first = [*(Input(*each) for each in kiln.opened(START_MS)), Input(LIT[0], Envelope(LIT[1], LIT[2], START_MS + 10))]
    return [taken(ledger, each) for each in (*first, *(Input(*each) for each in envelopes))]


def test_runs_of_a_simulation_and_of_the_engine_are_behaviours() -> None:
    """The model is the one that both use; commands, crashes and failing handlers are in it."""
    target = named("fleet-2x3")
    run = simulate(target.subject, opening=target.opening, seed=3, environment=target.environment)
    assert len(run.entries) > len(target.opening)
    assert foreign_entry(target.system, log_of(target.system, run.entries)) is None
    failed = 0
    for seed in range(5):
        of_engine = pottery(seed=seed, faults=OFTEN)
        failed += sum(isinstance(each.envelope.event, HandlerFailed) for each in of_engine.entries)
        assert is_behaviour(kiln.system, log_of(kiln.system, of_engine.entries))
    assert failed


NO_COMMANDS: Final = System(
    "pottery",
    kiln.system.aggregates["kiln"],
    AggregateType("tally", machines=(kiln.tally,), commands={"tally": (kiln.PutAway,)}),
)
"""The kilns with a tally that operators may put away, and cannot count with."""


@pytest.mark.parametrize(
    ("name", "envelope", "why"),
    [
        pytest.param(
            "tally",
            Envelope("tally", kiln.Counted(3), START_MS + 20, sender="kiln/a", ordinal=1),
            "kiln/a has sent no message 1",
            id="a message that was not sent",
        ),
        pytest.param(
            "kiln/a",
            Envelope("", RunnerRecovered(5_000), START_MS + 20, "engine"),
            "only 10 ms have passed",
            id="a recovery after more time than has passed",
        ),
        pytest.param(
            "kiln/a",
            Envelope("kiln", HandlerFailed("Announce", 1, "no", "retry", 2, 5), START_MS + 20, "engine"),
            "entry 2 requests no Announce at 5",
            id="a failed handler of an effect that was not requested",
        ),
        pytest.param(
            "kiln/a",
            Envelope(
                "kiln", HandlerFailed("Fire", 1, "no", "retry", slot="Fire", generation=9), START_MS + 20, "engine"
            ),
            "Fire of generation 9 does not run",
            id="a failed handler of an activity that does not run",
        ),
        pytest.param(
            "kiln/b",
            Envelope("", RunnerRecovered(0), START_MS + 20, "engine"),
            "kiln/b is not open yet",
            id="a recovery of an aggregate that is not open",
        ),
        pytest.param(
            "tally",
            Envelope("tally", kiln.Counted(3), START_MS + 20),
            "no such command is possible in Open",
            id="a command that operators cannot give",
        ),
    ],
)
def test_an_entry_that_the_rules_accept_and_the_model_lacks_is_named(name: str, envelope: Envelope, why: str) -> None:
    """The rules alone would accept each of these."""
    log = after_lit((name, envelope))
    found = foreign_entry(NO_COMMANDS, log)
    assert found is not None
    assert (found.position, found.aggregate, found.entity) == (len(log), name, envelope.entity)
    assert why in str(found)
    assert is_behaviour(NO_COMMANDS, log[:-1])


def forged(change: Callable[[list[Entry]], None], *, is_decided: bool = False) -> str:
    """Return what is said of the log of a kiln that was lit, when it was changed."""
    log = after_lit(("kiln/a", Envelope("kiln", kiln.Called("x"), START_MS + 20)))
    change(log)
    return str(foreign_entry(kiln.system, log, is_decided=is_decided))


def _remove(log: list[Entry]) -> None:
    del log[-2]


def _swap(log: list[Entry]) -> None:
    log[0], log[1] = log[1], log[0]
    early = Envelope("kiln", kiln.Called("x"), START_MS - 5)
    log[-1] = struct_replace(log[-1], envelope=encode(early))


def _decide_otherwise(log: list[Entry]) -> None:
    other = Envelope("kiln", kiln.Called("y"), START_MS + 20)
    log[-1] = struct_replace(log[-1], envelope=encode(other))


def _refuse(log: list[Entry]) -> None:
    again = Envelope("kiln", kiln.Lit(), START_MS + 20)
    log[-1] = struct_replace(log[-1], envelope=encode(again))


def _garble(log: list[Entry]) -> None:
    log[-1] = struct_replace(log[-1], envelope=b"{}")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_remove, "its version is 3, and 2 comes next"),
        (_swap, "ms before that of the entry before it"),
        (_decide_otherwise, "the rules decide otherwise"),
        (_refuse, "the rules refuse it"),
        (_garble, "an unreadable event"),
    ],
)
def test_a_changed_entry_is_named(change: Callable[[list[Entry]], None], why: str) -> None:
    """Removed, earlier than the one before it, with another event, refused, and unreadable."""
    assert why in forged(change)


def _garble_outcome(log: list[Entry]) -> None:
    log[-1] = struct_replace(log[-1], outcome=b"[")


@pytest.mark.parametrize("change", [_remove, _swap, _garble, _garble_outcome])
def test_a_changed_entry_of_a_decided_log_is_named(change: Callable[[list[Entry]], None]) -> None:
    """Its decisions are folded. The same entry is found as when the rules decide again."""
    found, plain = forged(change, is_decided=True), forged(change)
    assert found.partition(":")[0] == plain.partition(":")[0] != "None"
    assert (found == plain) is (change is not _garble_outcome)


def test_a_decided_log_has_the_foreign_entries_of_any_other() -> None:
    """Entries of a fleet that are left out, doubled and exchanged, one at a time: the same one is foreign."""
    target = named("fleet-2x3")
    run = simulate(target.subject, opening=target.opening, seed=3, environment=target.environment)
    log = log_of(target.system, run.entries)
    assert foreign_entry(target.system, log, is_decided=True) is None
    found: list[object] = []
    for place in range(3, len(log) - 1, max(1, len(log) // 8)):
        for other in (log[:place] + log[place + 1 :], log[:place] + log[place - 1 :], _exchanged(log, place)):
            found.append(foreign_entry(target.system, other))
            folded = foreign_entry(target.system, other, is_decided=True)
            assert folded == found[-1] or "the rules" in str(found[-1])
    assert sum(each is not None for each in found) > len(found) // 2


def _exchanged(log: list[Entry], place: int) -> list[Entry]:
    return [*log[:place], log[place + 1], log[place], *log[place + 2 :]]


def test_a_message_is_received_once_and_as_it_was_sent() -> None:
    """A kiln reports a firing, and the tally hears of another number of pots."""
    fired = Envelope("kiln", kiln.Fired(2), START_MS + 20, "Fire", slot="Fire", generation=2)
    told = Envelope("tally", kiln.Counted(2), START_MS + 20, "kiln/a", sender="kiln/a", ordinal=1)
    assert is_behaviour(kiln.system, after_lit(("kiln/a", fired), ("tally", told)))
    other = foreign_entry(kiln.system, after_lit(("kiln/a", fired), ("tally", replace(told, event=kiln.Counted(1)))))
    assert other is not None
    assert other.why == "message 1 of kiln/a is another one"


def test_an_entry_about_the_log_itself_changes_nothing() -> None:
    """It has its place in its own stream, and its time."""
    ledger = Ledger(kiln.system)
    opened = [taken(ledger, Input(*each)) for each in kiln.opened(START_MS)]
    ledger.rules = "others"
    log = [*opened, ledger.change_rules(START_MS + 5).entry]
    assert is_behaviour(kiln.system, log)
    late = foreign_entry(kiln.system, [*log, log[-1]])
    assert late is not None
    assert late.why == "its version is 1, and 2 comes next"


def test_a_quarantine_and_a_release_are_in_the_model() -> None:
    """The engine gives the one and an operator the other, and the rules know when."""
    stopped = Envelope("kiln", EntityQuarantined("it smokes"), START_MS + 20, "engine")
    ended = Envelope("kiln", ActivityEnded("Fire", 2), START_MS + 25, "engine")
    released = Envelope("kiln", EntityReleased(), START_MS + 30)
    assert is_behaviour(kiln.system, after_lit(("kiln/a", stopped), ("kiln/a", ended), ("kiln/a", released)))


def test_a_foreign_entry_in_the_log_of_a_sandbox_is_found(tmp_path: Path) -> None:
    """The plugin that looks at the logs of all sandboxes reads them as this test does."""
    target = named("fleet-2x3")
    run = simulate(target.subject, opening=target.opening, seed=3, environment=target.environment)
    opened = run.entries[: len(target.opening)]
    unsent = next(each for each in run.entries if each.envelope.ordinal == 1 and each.aggregate != "board")
    entries = log_of(target.system, [*opened, unsent])
    log = tmp_path / "sandbox.db"
    SqliteStore.create(log, {}).close()
    _write(log, entries[:-1])
    assert foreign_in(log) is None
    _write(log, entries[-1:])
    found = foreign_in(log)
    assert found is not None
    assert (found.position, found.why) == (len(entries), "board has sent no message 1, or it was received before")


def _write(path: Path, entries: Sequence[Entry]) -> None:
    with SqliteStore.open(path) as store:
        anyio.run(store.append, Batch(entries))


def test_a_sandbox_enters_its_logs(tmp_path: Path) -> None:
    """All logs of its folder, in order, as soon as they exist."""
    sandbox = Sandbox(tmp_path)
    assert list(sandbox.place.logs()) == []
    sandbox.log.parent.mkdir()
    for name in ("sandbox", "other"):
        (sandbox.log.parent / f"{name}.db").touch()
    assert [each.name for each in sandbox.place.logs()] == ["other.db", "sandbox.db"]
    for each in sandbox.place.logs():
        each.unlink()


def test_the_folder_of_a_test_without_a_sandbox_is_entered(recorded_place: Place, tmp_path: Path) -> None:
    """Logs at any depth; one of another system is left out, because the model of fleets says nothing about it."""
    of_kilns = tmp_path / "deep" / "kilns.db"
    of_kilns.parent.mkdir()
    SqliteStore.create(of_kilns, {}).close()
    log = after_lit()
    _write(of_kilns, [*log, replace_entry(log[-1])])
    assert list(recorded_place.logs()) == [of_kilns]
    assert foreign_in(of_kilns) is None


def replace_entry(entry: Entry) -> Entry:
    """Return an entry again, as the next one, which is no step of its model."""
    return struct_replace(entry, version=entry.version + 1)
