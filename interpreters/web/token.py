"""The token of a desk: a secret in a file that only its user can read, and the session that a browser gets for it.

The file exists while the program serves. The token guards against other users of the machine, and against pages of
other sites. Agents run as the same user and can read the file.
"""

import os
import secrets
from hmac import compare_digest
from pathlib import Path
from typing import Final

from lifefold.interpreters.processes.private import make_private

TOKEN_BYTES: Final = 32
"""The random bytes of a token and of a session."""


class Token:
    """The token of one running desk, in its file, and the value of the cookie of its browsers."""

    def __init__(self, folder: Path, port: int) -> None:
        """Make the token, and write its file, which replaces one that a dead program has left."""
        self.secret: Final = secrets.token_urlsafe(TOKEN_BYTES)
        self.session: Final = secrets.token_urlsafe(TOKEN_BYTES)
        self.cookie: Final = f"lifefold_desk_{port}"
        self.file: Final = folder / f"desk-{port}.token"
        make_private(folder)
        self.file.unlink(missing_ok=True)
        number = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "w") as file:
            file.write(self.secret + "\n")

    def remove(self) -> None:
        """Delete the file."""
        self.file.unlink(missing_ok=True)

    def is_secret(self, given: str) -> bool:
        """Tell whether a text is the token."""
        return compare_digest(given.encode(), self.secret.encode())

    def is_session(self, given: str) -> bool:
        """Tell whether a text is the value of the cookie."""
        return compare_digest(given.encode(), self.session.encode())


def default_folder() -> Path:
    """Return the folder of tokens: ``$XDG_STATE_HOME/lifefold``, or ``~/.local/state/lifefold``."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state.startswith("/") else Path.home() / ".local" / "state") / "lifefold"
