"""Which untracked files are no work: the rules of the repository's own files, and those that stood when a run began.

``.gitignore`` is part of the work, and versioned. ``info/exclude`` and ``core.excludesFile`` are not: every agent can
write them, for all worktrees and for all time, and what they hide would be neither merged nor kept. So a run copies
these rules before its first agent works, and goes by the copy until its end.
"""

import os
import stat
from pathlib import Path
from typing import Final

from lifefold.interpreters.body.git import Git

RULES: Final = ".excludes"
"""The name of the copy, in the folder of a fleet's worktrees."""

RULES_BYTES: Final = 1_048_576
"""How much of a file of rules is read."""


async def copy_rules(home: Git, copy: Path) -> None:
    """Write the rules that the repository has now, beside its ``.gitignore``, into a file; all of it or nothing."""
    common = await home.common_directory()
    draft = copy.with_name(f"{copy.name}.new")
    draft.unlink(missing_ok=True)
    # Of two rules that speak of a file the later one counts, and those of the repository stand above the user's.
    draft.write_bytes(_rules_in(await _rules_of_the_user(home)) + b"\n" + _rules_in(common / "info" / "exclude"))
    draft.replace(copy)


async def _rules_of_the_user(home: Git) -> Path:
    """Return the file with what a user ignores everywhere: as configured, or where git looks otherwise."""
    asked = ("config", "--type=path", "--get", "core.excludesFile")
    configured = (await home.run(*asked, accept=(0, 1))).text
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home.folder / configured if configured else settings / "git" / "ignore"


def _rules_in(file: Path) -> bytes:
    """Return what a file says; nothing if it is none, or one without an end."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return b""
        with file.open("rb") as opened:
            return opened.read(RULES_BYTES)
    except OSError:
        return b""
