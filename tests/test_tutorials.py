"""The tutorials work as they stand, and the path of an event names functions that exist."""

import ast
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages import DOCS, ROOT, blocks, called, lifefold

OPERATOR = ("-c", "user.name=me", "-c", "user.email=me@example.org")


@pytest.mark.usefixtures("recorded_place")
def test_the_tutorial_of_a_lifecycle_goes_from_a_broken_property_to_a_replayed_log(tmp_path: Path) -> None:
    """Its files are taken from the page, its commands are run in its order."""
    page = DOCS / "tutorial-lifecycle.md"
    (build,) = blocks(page, "python")
    fix, test, run, replay, event, row = blocks(page, "py")
    for name, text in {"build": build, "test_build": test, "run": run, "replay": replay}.items():
        (tmp_path / f"{name}.py").write_text(text)
    found = lifefold(tmp_path, "check", "build:machine", "--emit-test", "test_found.py", code=1)
    assert "no build is tried more than three times: broken" in found
    tests = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_found.py")
    called(tmp_path, *tests, code=1)
    fixed = build.replace("    return project.tries <= MOST_TRIES\n", fix)
    assert fixed != build
    (tmp_path / "build.py").write_text(fixed)
    assert "all 10 " in lifefold(tmp_path, "check", "build:machine")
    called(tmp_path, *tests, "test_build.py")
    assert "in 100 seeds" in lifefold(tmp_path, "simulate", "build:machine")
    once = "test -e ready || { touch ready; exit 1; }"
    assert "tries=2" in called(tmp_path, sys.executable, "run.py", "sh", "-c", once)
    replayed = called(tmp_path, sys.executable, "replay.py")
    assert f"$ python replay.py\n{replayed}```" in page.read_text()
    assert "BuildFailed" in lifefold(tmp_path, "log", "build:machine", "build.db")
    assert "Passed" in lifefold(tmp_path, "replay", "build:machine", "build.db")
    assert "this run was allowed" in lifefold(tmp_path, "verify", "build:machine", "build.db")
    last = "        row(Build.RESTING, Rested, Build.BUILDING, count),\n"
    changed = fixed.replace("class RunBuild(", f"{event}\n\nclass RunBuild(").replace(last, f"{last}{row.rstrip()},\n")
    (tmp_path / "build.py").write_text(changed)
    assert "rows 7/7" in lifefold(tmp_path, "check", "build:machine")
    assert called(tmp_path, sys.executable, "replay.py") == replayed
    (tmp_path / "build.py").write_text(changed.replace("1_000 * 2", "2_000 * 2"))
    assert called(tmp_path, sys.executable, "replay.py") == replayed
    (tmp_path / "replay.py").write_text(replay.replace(".fold(", ".verify("))
    called(tmp_path, sys.executable, "replay.py", code=1)


@pytest.mark.usefixtures("recorded_place")
def test_the_tutorial_of_a_fleet_closes_its_ten_tasks(tmp_path: Path) -> None:
    """The scripted agent does them; the last one waits for an operator."""
    page = DOCS / "tutorial-fleet.md"
    fleet, with_claude = blocks(page, "toml")
    kit = tmp_path / "kit"
    (kit / "kit").mkdir(parents=True)
    (kit / "kit" / "__init__.py").write_text('"""Small functions."""\n')
    (kit / ".gitignore").write_text("__pycache__/\n")
    called(kit, "git", "init", "-q", "-b", "main")
    called(kit, "git", "add", "-A")
    called(kit, "git", *OPERATOR, "commit", "-qm", "Begin")
    lifefold(kit, "init", ".")
    (kit / "fleet.toml").write_text(fleet)
    called(kit, "git", "add", "-A")
    called(kit, "git", *OPERATOR, "commit", "-qm", "Add a fleet")
    called(kit, "git", "config", "user.name", "me")
    called(kit, "git", "config", "user.email", "me@example.org")
    lifefold(kit, "run", "fleet.toml", "--transitions", "--no-wait", code=4)
    assert "manual: approved" in lifefold(kit, "approve", "manual")
    assert "10 of 10 tasks closed" in lifefold(kit, "run", "fleet.toml", "--transitions")
    assert len(called(kit, "git", "log", "--oneline", "--first-parent").splitlines()) == 12
    assert re.search(r"clamp +closed +- +2 +1/3", lifefold(kit, "tasks"))
    (kit / "fleet.toml").write_text(
        with_claude.replace('kind = "claude"', 'kind = "claude"\nprogram = "no-such-program"')
    )
    lifefold(kit, "run", "fleet.toml", "--transitions", "--db", "other.db", code=2)


def defined(path: Path) -> Iterator[str]:
    """Yield what the modules of a path define: functions, classes, and methods as ``Class.method``."""
    for file in [path] if path.is_file() else path.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                yield node.name
                yield from (f"{node.name}.{each.name}" for each in node.body if isinstance(each, FUNCTIONS))
            elif isinstance(node, FUNCTIONS):
                yield node.name


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_every_function_on_the_path_of_an_event_is_where_the_page_says() -> None:
    """A row of a table names functions, and links to the one module that defines all of them."""
    page = (DOCS / "path-of-an-event.md").read_text()
    lines = re.findall(r"^\| (`[^|]+) \| \[([^|\]]+)\]\(([^|)]+)\) \|", page, re.MULTILINE)
    assert len(lines) == sum(line.startswith("| `") and "](../" in line for line in page.splitlines()) > 50
    for names, place, link in lines:
        known = set(defined(ROOT / place))
        assert link == f"../{place}"
        assert [name for name in re.findall(r"`([^`]+)`", names) if name not in known] == [], place
    classes = {
        name for part in ("core", "effects", "interpreters") for name in defined(ROOT / part) if name[0].isupper()
    }
    named = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+)(?:\([^`]*\))?`", page))
    assert named > {"SessionExited", "TaskGiven", "RunnerRecovered"}
    assert named - classes == set()


def test_every_function_that_the_prose_of_the_path_names_exists() -> None:
    """A renamed function is found outside of the tables, too: a name in lower case, or a method with its class."""
    page = (DOCS / "path-of-an-event.md").read_text()
    prose = "\n".join(line for line in page.splitlines() if not line.startswith("|"))
    named = set(re.findall(r"`([A-Za-z]+\._?[a-z_]+|_?[a-z_]+)`", prose))
    known = {name for part in ("core", "effects", "interpreters") for name in defined(ROOT / part)}
    words = {"cleanup_only", "fleet", "orphaned", "resumed", "slug"}  # fields and keys
    assert {"Ledger.decide", "go_on", "ending"} < named
    assert {name for name in named if not name.endswith(".py")} - known - words == set()


def test_the_picture_of_the_architecture_is_the_one_that_its_program_draws() -> None:
    """``docs/draw_architecture.py`` writes it."""
    drawn = runpy.run_path(str(DOCS / "draw_architecture.py"))["picture"]()
    assert (DOCS / "architecture.svg").read_text() == drawn
