"""The rules for ignored files: those in ``.gitignore``, and the repository's other rules as of the run's start.

``.gitignore`` is part of the work, and versioned. ``info/exclude`` and ``core.excludesFile`` are not: every agent can
write them for all worktrees, permanently. Files that they hide would be neither merged nor kept. So a run copies these
rules before its first agent works, and uses the copy until its end.
"""

import os
import stat
from pathlib import Path
from typing import Final

from lifefold.interpreters.worktrees.git import Git

RULES: Final = ".excludes"
"""The name of the copy, in the folder of a fleet's worktrees."""

RULES_BYTES: Final = 1_048_576
"""The number of bytes that are read of a file of rules."""

CHANGED: Final = (
    "the rules of .git/info/exclude or core.excludesFile have changed since the run began:"
    " they have hidden no work in it, but the next run goes by them; look at them"
)
"""The warning about rules that an agent may have written."""


async def copy_rules(home: Git, copy: Path) -> None:
    """Copy the repository's present rules, without ``.gitignore``, into a file, atomically."""
    rules = await _rules_now(home)
    draft = copy.with_name(f"{copy.name}.new")
    draft.unlink(missing_ok=True)
    draft.write_bytes(rules)
    draft.replace(copy)


async def rules_have_changed(home: Git, copy: Path) -> bool:
    """Tell whether the repository's present rules differ from the copy; False without a copy."""
    return _is_regular(copy) and await _rules_now(home) != _rules_in(copy)


async def _rules_now(home: Git) -> bytes:
    """Return the rules, the user's first: the last matching rule counts, and the repository's override the user's."""
    common = await home.common_directory()
    return _rules_in(await _rules_of_the_user(home)) + b"\n" + _rules_in(common / "info" / "exclude")


async def _rules_of_the_user(home: Git) -> Path:
    """Return the file with the user's own rules: the configured one, or git's default."""
    query = ("config", "--type=path", "--get", "core.excludesFile")
    configured = (await home.run(*query, accept=(0, 1))).text
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home.folder / configured if configured else settings / "git" / "ignore"


def _rules_in(file: Path) -> bytes:
    """Return the contents of a file; empty if it does not exist, or is a pipe or a device."""
    if not _is_regular(file):
        return b""
    try:
        with file.open("rb") as opened:
            return opened.read(RULES_BYTES)
    except OSError:
        return b""


def _is_regular(file: Path) -> bool:
    """Tell whether a regular file exists at a path."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except OSError:
        return False
