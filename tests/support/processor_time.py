"""The processor time of a test: of its process, of the processes that it has waited for, and of its commands.

A command that runs in a fork of another process (``commands_run``) is no child of the test's process, so it is counted.
"""

import resource
from typing import Final

_counted: Final[list[float]] = []


def count(seconds: float) -> None:
    """Count the processor time of a process that is no child of this one."""
    _counted.append(seconds)


def counted_s() -> float:
    """Return the processor time of all processes that were counted, in seconds."""
    return sum(_counted)


def processor_s() -> float:
    """Return the processor time of this process, of those that it has waited for, and of those that were counted."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime + counted_s()
