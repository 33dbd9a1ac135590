"""The token of a claim. A session must show it to ``split`` its task, or to report an aborted tool.

A claim's number is easily guessed, and so it proves nothing. The token is derived from the ``key`` of the log. The
interpreter draws that key at random when the log begins. The core has no randomness: the key is an input, in each task
of the plan. A token says nothing about the token of another claim.

The key is in the log, and so is each token. This gives nothing away: a process that acts on a fleet writes its log, and
a process that may write the log may read it.
"""

from hashlib import blake2b
from typing import Final

TOKEN_BYTES: Final = 16
"""The length of a token: too long to be guessed."""

KEY_CHARS: Final = 64
"""The longest key that the hash accepts."""


def token_of(key: str, task: str, epoch: int) -> str:
    """Return the token of claim number ``epoch`` of a task, in hexadecimal digits; empty where there is no key."""
    if not key:
        return ""
    return blake2b(f"{epoch} {task}".encode(), key=key.encode(), digest_size=TOKEN_BYTES).hexdigest()
