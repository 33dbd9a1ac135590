"""What the documentation shows works as it stands there, and what it links to exists."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lifefold.core import fleet
from lifefold.interpreters import views
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.targets.simulation_targets import named

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path, language: str = "python") -> list[str]:
    """Return the blocks of code on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


PYTHON = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page))
    # these write files or need a server, and their own tests run them
    if "from lobby import" not in block and "hall.db" not in block and page.name not in {"library.md", "postgresql.md"}
]


@pytest.mark.parametrize("block", PYTHON)
def test_every_python_block_runs_and_prints_what_it_says(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A trailing comment after a print is its output, word for word."""
    exec(compile(block, "<documentation>", "exec"), {"__name__": "__main__"})  # noqa: S102 - that is the test
    assert capsys.readouterr().out.splitlines() == declared(block)


def declared(block: str) -> list[str]:
    """Return what a block says that it prints."""
    return [line.removeprefix("# ") for line in block.splitlines() if line.startswith("# ")]


def test_a_strangers_machine_gets_every_world(tmp_path: Path) -> None:
    """With nothing but the README: its own machine is played, drawn, checked, simulated, run, and replayed."""
    page = ROOT / "README.md"
    lobby, live = (block for block in blocks(page) if "lobby" in block)
    (tmp_path / "lobby.py").write_text(lobby)
    (tmp_path / "live.py").write_text(live)
    commands = [each.partition("#")[0].split() for each in page.read_text().splitlines() if " lobby:machine" in each]
    assert [each[1] for each in commands] == ["diagram", "check", "simulate"]

    def said(*argv: str) -> str:
        return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert said(sys.executable, "lobby.py").splitlines() == declared(lobby)
    drawn, checked, simulated = (said(str(Path(sys.executable).with_name(each[0])), *each[1:]) for each in commands)
    assert "Opened" in drawn
    assert "lobby: all 8 properties hold" in checked
    assert "lobby:machine: no property is broken in 100 seeds" in simulated
    assert said(sys.executable, "live.py").splitlines() == declared(live)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    """Links within the project are not broken."""
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_rows_in_the_readme_are_rows_of_the_session() -> None:
    """The README shows the real table."""
    readme = (ROOT / "README.md").read_text()
    source = (ROOT / "core" / "lifecycles" / "session.py").read_text()
    shown = [" ".join(line.split()) for line in readme.splitlines() if line.startswith("row(")]
    assert shown
    assert [line for line in shown if line not in source] == []


def test_the_readme_shows_what_the_checker_says_of_a_forgotten_timer() -> None:
    """The line that it leaves out is in the table, and the way is one of those that are found."""
    readme = (ROOT / "docs" / "tutorial-lifecycle.md").read_text()
    forgotten = next(line for line in readme.splitlines() if line.strip().startswith("State.INTERRUPTING: after"))
    source = (ROOT / "core" / "lifecycles" / "session.py").read_text()
    assert f"{forgotten}\n" in source
    copy: dict[str, Any] = {"__name__": "mine"}
    exec(compile(source.replace(f"{forgotten}\n", ""), "mine.py", "exec"), copy)  # noqa: S102 - a copy of our own
    broken = check(copy["machine"], bounds=Bounds(compared=1)).broken()
    assert any("\n".join(["```text", *found.lines(of="session"), "```"]) in readme for found in broken)


def test_the_figures_of_proofs_are_those_of_the_certificates() -> None:
    """README, docs/check.md and the desk have them from ``docs/certificates``; ``make pages`` writes them anew."""
    written = runpy.run_path(str(ROOT / "docs" / "write_figures.py"))
    for path in written["PAGES"]:
        text = path.read_text()
        assert written["PART"].search(text)
        assert written["page"](text) == text
    assert written["PROOFS"].read_bytes() == written["proofs"]()


WIRING = runpy.run_path(str(ROOT / "docs" / "write_wiring.py"))


def test_the_page_of_the_wiring_is_made_of_the_rules_as_they_are() -> None:
    """``make pages`` writes ``docs/fleet/wiring.md`` anew, and every rule of the fleet is on it."""
    text = (ROOT / "docs" / "fleet" / "wiring.md").read_text()
    assert text == WIRING["page"]()
    for of in fleet.system.aggregates.values():
        assert all(f"[{rule.name}](" in text for rule in of.rules)


def test_the_page_of_the_wiring_names_properties_of_the_fleet() -> None:
    """Those that a fleet without the rule breaks: ``docs/write_wiring.py --search`` finds them anew."""
    known = {(fleet.system.name, each.name) for each in fleet.system.properties}
    for kind, of in fleet.system.aggregates.items():
        known |= {(kind, each.name) for each in of.properties}
        known |= {(name, each.name) for name, machine in of.machines.items() for each in machine.properties}
    lost = json.loads(WIRING["DATA"].read_text())
    rules = {f"{kind}: {rule.name}" for kind, of in fleet.system.aggregates.items() for rule in of.rules}
    assert lost.keys() <= rules
    assert {(each["owner"], each["property"]) for each in lost.values()} <= known


@pytest.mark.parametrize("rule", ["board: hand_over", "board: reserve", "worker: report", "service: come_up"])
def test_a_fleet_without_a_rule_breaks_the_property_beside_it(rule: str) -> None:
    """With the fleet and the seed that are noted for the page of the wiring."""
    noted = json.loads(WIRING["DATA"].read_text())[rule]
    kind, _, name = rule.partition(": ")
    broken = WIRING["simulated"](WIRING["without"](name, kind), named(noted["fleet"]), noted["seed"])
    assert (broken.owner, broken.prop) == (noted["owner"], noted["property"])


def test_the_readme_has_no_figure_of_a_proof_outside_the_generated_tables() -> None:
    """A number of states, properties or rows that is typed by hand is soon wrong."""
    part = runpy.run_path(str(ROOT / "docs" / "write_figures.py"))["PART"]
    prose = part.sub("", (ROOT / "README.md").read_text())
    assert re.findall(r"[\d,.]+ (?:states|steps|properties|promises|rows)\b", prose) == []


def test_the_pages_of_the_lifecycles_are_what_the_commands_print() -> None:
    """Every lifecycle has its table and its picture in ``docs/lifecycles``; ``make pages`` writes them anew."""
    pages = runpy.run_path(str(ROOT / "docs" / "write_lifecycles.py"))["pages"]()
    folder = ROOT / "docs" / "lifecycles"
    assert {path.name: path.read_text() for path in folder.iterdir()} == pages
    assert pages["session.md"].startswith(views.markdown(views.machine_named("session")))
