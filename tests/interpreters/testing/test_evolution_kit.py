"""The kit for old logs: it accepts what a version can go on with, and names the entry and the reason otherwise."""

from pathlib import Path
from typing import Any, Never

import anyio
import pytest

from lifefold.core.fleet import system as fleet
from lifefold.core.kernel import Entity, Envelope, Machine, Step, alone, always, renamed_field, row
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.store import Entry, SqliteStore
from lifefold.interpreters.testing import EvolutionError, check_evolution
from old_logs import FLEETS, FOLDER, OVENS, copied, program

OVEN: Any = program("oven_2")


def changed(*without: int, **parts: Any) -> Machine[Any]:
    """Return the oven without some of its declarations."""
    evolved = tuple(each for place, each in enumerate(OVEN.machine.evolved) if place not in without)
    return OVEN.machine._but(evolved=evolved, **parts)  # type: ignore[no-any-return] # the program is data


def test_every_kept_log_is_read_by_the_present_versions() -> None:
    """The files are not changed, and none appears beside them."""
    before = sorted(FOLDER.iterdir())
    check_evolution(OVEN.machine, OVENS)
    check_evolution(OVEN.system, map(str, OVENS))
    check_evolution(program("oven_1").machine, OVENS)
    check_evolution(fleet, FLEETS)
    assert sorted(FOLDER.iterdir()) == before


def test_entries_are_accepted_as_well_and_the_log_of_several_versions(tmp_path: Path) -> None:
    path = copied(OVENS[0], tmp_path)
    anyio.run(OVEN.go_on, path)
    with SqliteStore.peek(path) as store:
        entries = anyio.run(store.read)
    assert [each.stream for each in entries][-2:] == ["@engine", "oven"]
    check_evolution(OVEN.machine, [entries])


def is_used(of: Entity[Any]) -> bool:
    """The oven was used."""
    return bool(of.record.uses)


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (changed(8), r"oven-5.db: entry 1 \(oven, version 1\) cannot be read: .*Oven has no field 'minutes'"),
        (changed(4, 5), "oven-5.db: at its end, these rules cannot take the activity Burn of oven, oven"),
        (changed(2), "oven-5.db: at its end, these rules cannot take the postponed event Fed of oven, oven"),
        (
            OVEN.machine.with_properties(always("it is used", is_used)),
            "oven-5.db: at its end, a property does not hold: oven, oven: it is used",
        ),
    ],
    ids=["unreadable", "activity", "postponed", "property"],
)
def test_what_cannot_be_read_or_continued_is_named(machine: Machine[Any], said: str) -> None:
    with pytest.raises(EvolutionError, match=said):
        check_evolution(machine, OVENS[-1:])


def raises(_oven: Any, _event: Any) -> Step[Any, Never]:
    """Raise, as a rule does that was not written for old records."""
    raise LookupError("no such wood")


def test_an_input_on_which_the_rules_cannot_decide_is_named() -> None:
    heat = OVEN.Heat
    others = (each for each in OVEN.machine.rows if each.event is not OVEN.Out)
    rows = (row(heat.WARM, OVEN.Out, heat.RESTING, raises), *others)
    with pytest.raises(EvolutionError, match=r"at its end, oven, oven cannot decide on .*no such wood"):
        check_evolution(changed(rows=rows), OVENS[-1:])


def test_an_upcaster_that_makes_a_value_of_another_type_is_found() -> None:
    def as_text(minutes: int) -> str:
        return str(minutes)

    evolved = (*OVEN.machine.evolved[:-1], renamed_field("minutes", "seconds", by=as_text))
    with pytest.raises(EvolutionError, match="cannot be read"):
        check_evolution(OVEN.machine._but(evolved=evolved), OVENS[-1:])


def test_a_log_of_this_version_is_an_old_log_of_the_next() -> None:
    system, opening = alone(OVEN.machine)
    ledger, entries = Ledger(system), list[Entry]()
    for envelope in (opening["oven"], Envelope("oven", OVEN.Kindled(5), 1)):
        decision = ledger.decide("oven", envelope)
        assert isinstance(decision, Decision)
        entries.append(decision.entry)
    check_evolution(OVEN.machine, [entries])
    with pytest.raises(EvolutionError, match="log 1: entry 2"):
        check_evolution(OVEN.machine, [[entries[0], entries[0]]])


def test_anything_else_than_a_machine_or_a_system_is_refused() -> None:
    wrong: Any = OVEN.Oven()
    with pytest.raises(TypeError, match="a Machine or a System"):
        check_evolution(wrong, [])
