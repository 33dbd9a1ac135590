"""Reuse of pids: other processes get the pids of a dead fleet, and live.

The trial runs in a pid namespace (``unshare``). There a program chooses the next pid, so the reuse is certain. A small
largest pid makes the kernel reuse the others, too.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import ClassVar, Final

import reused
from signals import judge, read
from trials import Verdict

MISSING: Final = "needs Linux, and the right to make a pid namespace (root): a program there chooses the next pid"

_UNSHARE: Final = ("unshare", "--pid", "--fork", "--mount-proc")


@cache
def is_possible() -> bool:
    """Tell whether this user can make a pid namespace, and choose pids in it."""
    if shutil.which(_UNSHARE[0]) is None:
        return False
    choose = "echo 300 > /proc/sys/kernel/ns_last_pid"
    return subprocess.run([*_UNSHARE, "sh", "-c", choose], check=False, capture_output=True).returncode == 0


class ReuseCampaign:
    """A fleet whose recorded pids are other processes when it is run again."""

    name: ClassVar[str] = "signals"

    def attempt(self, _number: int) -> Verdict:
        """Make one trial. Raises ``LookupError`` if it is not possible here."""
        if not is_possible():
            raise LookupError(MISSING)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            command = [*_UNSHARE, sys.executable, reused.__file__]
            done = subprocess.run(command, check=False, capture_output=True, text=True, input=name)
            if done.returncode:
                return Verdict("namespace", (done.stderr[-600:],))
            told = json.loads(done.stdout)
            wrong = list(told["wrong"])
            if told["codes"][-1] != 0 or not told["taken"]:
                wrong.append(f"codes {told['codes']}, {told['taken']} taken pids")
            file = Path(name) / "signals"
            judged = judge(read(file)) if file.exists() else None
            wrong += [] if judged is None else judged.unproven
            counted = {"taken pids": told["taken"], **({} if judged is None else judged.proofs)}
            return Verdict("every recorded pid is taken", tuple(wrong), counted)

    def close(self) -> None:
        """Keep nothing."""
