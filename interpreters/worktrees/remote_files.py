"""Single files at a remote, each in a commit of its own: what a session leaves outside of its worktree.

An empty file stands for no file: a session may have removed it.
"""

from pathlib import Path
from typing import Final

from lifefold.interpreters.processes.private import make_private, make_private_file
from lifefold.interpreters.worktrees.aside import make_room, read_regular
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.git import Git, Way
from lifefold.interpreters.worktrees.remote import Remote

MOST_BYTES: Final = 16_777_216
"""The largest file that is kept."""

_NAME: Final = "file"


class RemoteFiles:
    """Files at references of a remote, through the repository ``home``."""

    def __init__(self, home: Git, remote: Remote) -> None:
        self._home: Final = home
        self._remote: Final = remote

    async def keep(self, name: str, file: Path) -> None:
        """Push a file under the reference ``name``, unless it is as it was pushed or brought last.

        Raises WorkplaceError if it is too large, and the errors of ``Remote.put``.
        """
        content = read_regular(file, MOST_BYTES + 1)
        known = await self._remote.known(name)
        if content == (await self._content(known) if known else b""):
            return
        if len(content) > MOST_BYTES:
            raise WorkplaceError(f"The file has more than {MOST_BYTES:,} bytes", file, "Let the agent keep less.")
        blob = (await self._home.run("hash-object", "-w", "--stdin", way=Way(given=content))).text
        tree = (await self._home.run("mktree", way=Way(given=f"100644 blob {blob}\t{_NAME}\n".encode()))).text
        await self._remote.put({name: await self._home.commit_tree(tree, (), name)})

    async def bring(self, name: str, file: Path) -> None:
        """Write a file as it was pushed last, unless this host has pushed or brought that already.

        So a change of it that could not be pushed yet stays, also after a restart. Raises RemoteAwayError.
        """
        commit = (await self._remote.bring(name)).get(name, "")
        if not commit or await self._remote.knows(name, commit):
            return
        _write(file, await self._content(commit))
        await self._remote.know({name: commit})

    async def _content(self, commit: str) -> bytes:
        """Return the file of a commit to the byte; git prints its size before it."""
        printed = await self._home.run("cat-file", "--batch", way=Way(given=f"{commit}:{_NAME}\n".encode()))
        return printed.text.partition("\n")[2].encode("utf-8", "surrogateescape")


def _write(file: Path, content: bytes) -> None:
    """Replace a file, readable by its owner only, or remove it if there is no content."""
    make_room(file)
    if not content:
        file.unlink(missing_ok=True)
        return
    make_private(file.parent)
    draft = file.with_name(f"{file.name}.brought")
    make_private_file(draft)
    draft.write_bytes(content)
    draft.replace(file)
