"""The logs that earlier versions have written, kept as data. Tests use copies: SQLite writes beside a log."""

import shutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "data" / "old_logs"
FLEETS: Final = sorted(FOLDER.glob("fleet-*.db"))
OVENS: Final = sorted(FOLDER.glob("oven-*.db"))


def copied(log: Path, folder: Path) -> Path:
    """Return a copy of a log in a folder."""
    return Path(shutil.copyfile(log, folder / log.name))


def program(name: str) -> ModuleType:
    """Return a version of the oven's program."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return import_module(name)
