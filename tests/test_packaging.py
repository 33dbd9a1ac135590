"""The guarantee: whatever lies in core/, effects/ or interpreters/ is in the wheel.

The build ships every package under those roots with all the files in it, so a file can be forgotten only if its folder
is not a package.
"""

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


def test_the_command_is_declared_and_loads() -> None:
    (command,) = entry_points(group="console_scripts", name="lifefold")
    assert callable(command.load())
