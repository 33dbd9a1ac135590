"""A probe: whether a target can be loaded, in a separate process, before a session needs it.

``python -m lifefold.interpreters.facades.cooperative.probe FOLDER MODULE:CLASS`` loads the class as the worker does,
but makes no agent. It writes ``LOADED`` or the error, and exits with 0 in both cases. Any other exit status comes from
the user's module. The module's output goes to stderr, and its threads are not waited for.
"""

import os
import sys
from typing import Final

from lifefold.interpreters.facades.cooperative.worker import TargetError, class_of

LOADED: Final = "loaded"
"""The output for a target without an error."""


def main(arguments: list[str]) -> str:
    """Load the class that the arguments name; return the output."""
    folder, target = arguments
    sys.path.insert(0, folder)
    try:
        class_of(target)
    except TargetError as error:
        return str(error)
    return LOADED


if __name__ == "__main__":
    answer = os.dup(1)
    os.dup2(2, 1)
    os.write(answer, main(sys.argv[1:]).encode("utf-8", "backslashreplace"))
    sys.stdout.flush()
    os._exit(0)
