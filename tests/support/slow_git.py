"""A git that waits while it writes a file, and runners as processes of their own that are killed meanwhile."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from git_sandbox import GitScene, commit
from lifefold.interpreters.processes import ProcessIdentity
from session_scripts import Bell

RUNNER = """
import anyio, sys
from pathlib import Path
from lifefold.interpreters.worktrees import git
from lifefold.interpreters.worktrees.worktrees import GitWorkplace

async def main(repository, root, operation, *arguments):
    workplace = GitWorkplace(Path(repository), Path(root), "fleet", "main")
    claim = [int(each) if each.isdigit() else each for each in arguments]
    known = {"result": await workplace.park(*claim)} if operation == "merge" else {}
    await getattr(workplace, operation)(*claim, **known)

# What git shows of its progress after two seconds it shows at once, so that it writes while it is at work.
environment = git.environment
git.environment = lambda: environment() | {"GIT_PROGRESS_DELAY": "0"}
anyio.run(main, *sys.argv[1:])
"""


WAITS = """
import fcntl, sys
fcntl.flock(open(sys.argv[1]), fcntl.LOCK_SH)
"""


class Slow:
    """A filter that makes git wait whenever it writes the file ``slow``; the git that waits is told of by its pid.

    It waits for a lock. A runner would end a git that waits at a named pipe.
    """

    def __init__(self, scene: GitScene, folder: Path, name: str = "slow") -> None:
        self.begun, held = Bell(folder / "begun"), folder / "held"
        self._lock = os.open(held, os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        waits = folder / "waits.py"
        waits.write_text(WAITS)
        commit(scene.repository, **{name: "s", ".gitattributes": f"{name} filter=slow\n"})
        script = (
            f"[ -e {folder}/quick ] || {{ echo $PPID > {self.begun}; {sys.executable} {waits} {folder}/held; }}; cat"
        )
        scene.git("config", "filter.slow.smudge", script)
        self._quick = folder / "quick"

    def __del__(self) -> None:
        os.close(self._lock)

    def let_go(self) -> None:
        """Let the one that waits go on, and no later one wait."""
        self._quick.touch()
        fcntl.flock(self._lock, fcntl.LOCK_UN)


@contextmanager
def runner(scene: GitScene, operation: str, *arguments: str) -> Generator["subprocess.Popen[bytes]"]:
    """Perform an operation in a process of its own."""
    argv = [sys.executable, "-c", RUNNER, str(scene.repository), str(scene.root), operation, *arguments]
    with subprocess.Popen(argv, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def killed_in_git(scene: GitScene, slow: Slow, operation: str, *arguments: str) -> ProcessIdentity:
    """Kill a runner whose git is at work; return that git, which goes on."""
    with runner(scene, operation, *arguments) as process:
        git_process = await slow.begun.pid()
        process.send_signal(signal.SIGKILL)
    return git_process
