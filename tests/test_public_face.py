"""``lifefold`` itself: its public names, found where they are defined, and nothing imported before it is used."""

import doctest
import inspect
import subprocess
import sys
from importlib.metadata import version

import pytest

import lifefold
from lifefold.core.fleet.board import intake
from lifefold.core.lifecycles import session
from lifefold.interpreters.campaign import trial
from lifefold.interpreters.simulate import Limits
from lifefold.interpreters.targets.simulation_targets import target

NAMES = (
    "ANY STAY Activity AggregateType Effect Engine Envelope Event Interpreter Ledger Machine MemoryStore Record"
    " SqliteStore State Step System __version__ after alone always always_step check does eventually handles leads_to"
    " removed removed_field renamed renamed_field replace row rule simulate sometimes strongly upcast weakly"
).split()


def test_these_names_are_public_and_no_other() -> None:
    assert lifefold.__all__ == NAMES
    assert dir(lifefold) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(lifefold, name) is not None


def test_the_version_is_that_of_the_distribution() -> None:
    assert lifefold.__version__ == version("lifefold")


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Robot'"):
        lifefold.Robot  # noqa: B018 - that is the test


def test_importing_lifefold_imports_nothing_else_of_it() -> None:
    """A pytest plugin and a shim are loaded with it, and every command; only its version is read from the metadata."""
    slow = ("lifefold.", "importlib.metadata")
    program = f"import sys, lifefold; print([each for each in sys.modules if each.startswith({slow!r})])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


OF_ANOTHER_LIBRARY = {"replace"}
"""A function of msgspec, with its own examples."""


@pytest.mark.parametrize("name", [each for each in NAMES if each not in {"__version__", *OF_ANOTHER_LIBRARY}])
def test_every_public_name_has_an_example_that_runs(name: str) -> None:
    """Alone, in an empty namespace, as a reader copies it; and it prints what it says."""
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(getattr(lifefold, name)) or "", {}, name, None, None)
    assert len(examples.examples) >= 2
    told: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert not told, "".join(told)


@pytest.mark.anyio
async def test_an_engine_a_report_and_a_finding_have_short_reprs() -> None:
    """One line each, with the system and what came of it; also of a property that is broken."""
    system, opening = lifefold.alone(intake.machine)
    engine = lifefold.Engine(system, lifefold.MemoryStore(), lifefold.Interpreter())
    assert repr(engine) == "<Engine of 'intake': 0 aggregates; it has no log loaded>"
    engine.offer("intake", opening["intake"])
    await engine.run(until=lambda engine: "intake" in engine.aggregates)
    assert repr(engine) == "<Engine of 'intake': 1 aggregate; it has ended>"
    broken = intake.machine.with_properties(lifefold.always("it is open", lambda entity: entity.state == "Open"))
    report = trial(target(broken), range(3))
    assert repr(report) == "<Report of intake: one property is broken, in 3 of 3 seeds>"
    (finding,) = report.findings
    assert repr(finding) == "<Finding: intake: it is open; intake, seed 0, 2 inputs>"
    assert repr(finding.run) == "<Run of seed None: 2 inputs, broken: intake: it is open>"
    unbroken = lifefold.simulate(session.machine, limits=Limits(until_ms=60_000))
    assert repr(unbroken).endswith("no property is broken>")
    checked = lifefold.check(broken)
    assert repr(checked) == "<intake: 4 of 5 properties hold, 1 broken, ✗ it is open: broken>"
