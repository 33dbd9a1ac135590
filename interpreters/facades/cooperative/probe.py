"""Whether a target can be loaded, found out in a process of its own, as a session's would be, before there is one.

``python -m lifefold.interpreters.facades.cooperative.probe FOLDER MODULE:CLASS`` loads the class as the worker does,
and makes no agent of it. It writes ``LOADED`` or what is wrong, and exits with 0 in either case: whatever else happens
has happened in the user's module. What that prints goes to stderr, and its threads are not waited for.
"""

import os
import sys
from typing import Final

from lifefold.interpreters.facades.cooperative.worker import TargetError, class_of

LOADED: Final = "loaded"
"""What is written if nothing is wrong."""


def main(arguments: list[str]) -> str:
    """Load the class that the arguments name; return what is to be written."""
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
