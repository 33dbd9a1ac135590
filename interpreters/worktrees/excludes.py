"""Which untracked files are no work: the rules of the repository's own files, and those that stood when a run began.

``.gitignore`` is part of the work, and versioned. ``info/exclude`` and ``core.excludesFile`` are not: every agent can
write them, for all worktrees and for all time, and what they hide would be neither merged nor kept. So a run copies
these rules before its first agent works, and goes by the copy until its end.
"""

import os
import stat
from pathlib import Path
from typing import Final

from lifefold.interpreters.worktrees.git import Git

RULES: Final = ".excludes"
"""The name of the copy, in the folder of a fleet's worktrees."""

RULES_BYTES: Final = 1_048_576
"""How much of a file of rules is read."""


CHANGED: Final = (
    "the rules of .git/info/exclude or core.excludesFile have changed since the run began:"
    " they have hidden no work in it, but the next run goes by them; look at them"
)
"""What the user is told of rules that an agent may have written."""


async def copy_rules(home: Git, copy: Path) -> None:
    """Write the rules that the repository has now, beside its ``.gitignore``, into a file; all of it or nothing."""
    rules = await _rules_now(home)
    draft = copy.with_name(f"{copy.name}.new")
    draft.unlink(missing_ok=True)
    draft.write_bytes(rules)
    draft.replace(copy)


async def rules_have_changed(home: Git, copy: Path) -> bool:
    """Tell whether the repository has other rules now than those that were copied; not if none were."""
    return _is_regular(copy) and await _rules_now(home) != _rules_in(copy)


async def _rules_now(home: Git) -> bytes:
    """Return the rules. Of two that speak of a file the later one counts: the repository's stand above the user's."""
    common = await home.common_directory()
    return _rules_in(await _rules_of_the_user(home)) + b"\n" + _rules_in(common / "info" / "exclude")


async def _rules_of_the_user(home: Git) -> Path:
    """Return the file with what a user ignores everywhere: as configured, or where git looks otherwise."""
    asked = ("config", "--type=path", "--get", "core.excludesFile")
    configured = (await home.run(*asked, accept=(0, 1))).text
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home.folder / configured if configured else settings / "git" / "ignore"


def _rules_in(file: Path) -> bytes:
    """Return what a file says; nothing if it is none, or one without an end."""
    if not _is_regular(file):
        return b""
    try:
        with file.open("rb") as opened:
            return opened.read(RULES_BYTES)
    except OSError:
        return b""


def _is_regular(file: Path) -> bool:
    """Tell whether a file is there that has an end."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except OSError:
        return False
