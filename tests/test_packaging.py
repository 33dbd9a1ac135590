"""The guarantee: whatever lies in core/, effects/ or interpreters/ is in the wheel.

The build ships every package under those roots with all the files in it, so a file can be forgotten only if its folder
is not a package.
"""

import subprocess
import sys
from collections import Counter
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("root", ["core", "effects", "interpreters"])
def test_every_folder_is_a_package(root: str) -> None:
    folders = {path.parent for path in (ROOT / root).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert folders
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []
    assert (ROOT / root / "py.typed").is_file()


def test_no_two_test_modules_have_one_name() -> None:
    """Pytest imports a test module by its bare name, and refuses the second of that name when it collects both."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert names
    assert [name for name, count in names.items() if count > 1] == []


def test_the_command_is_declared_and_loads() -> None:
    (command,) = entry_points(group="console_scripts", name="lifefold")
    assert callable(command.load())


def test_an_installation_from_an_updated_clone_has_no_module_of_the_version_before(tmp_path: Path) -> None:
    """The folder of the build keeps them otherwise, and a former package hides the module of its name."""
    former = tmp_path / "lib/lifefold/core/lifecycles/session/__init__.py"
    former.parent.mkdir(parents=True)
    former.touch()
    subprocess.run([sys.executable, "setup.py", "-q", "build", "--build-base", tmp_path], cwd=ROOT, check=True)
    assert not former.exists()
    assert former.parent.with_suffix(".py").is_file()
