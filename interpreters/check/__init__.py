"""Check: every state that the shipped reducers can reach, and whether their properties hold there.

``check`` takes a machine or a system and returns a ``Report``. The environment is derived from the machines (see
``core.kernel.environment``), so no separate model is needed. The search needs NumPy and SciPy, the extra ``check``. It
is imported when it is first used, so other packages can use the rest without the extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from lifefold.interpreters.report.finding import Message, Outcome, Verdict
from lifefold.interpreters.report.trace import CrashTrace, Incident, Trace
from lifefold.interpreters.search.configuration import Bounds
from lifefold.interpreters.search.crash_model import SHIPPED, CrashBounds, Discipline, Fault, Stage
from lifefold.interpreters.search.findings import Progress
from lifefold.interpreters.search.report import CrashReport, Report

if TYPE_CHECKING:
    from lifefold.interpreters.check.checking import check
    from lifefold.interpreters.crash.crash_search import check_crashes

__all__ = [
    "SHIPPED",
    "Bounds",
    "CrashBounds",
    "CrashReport",
    "CrashTrace",
    "Discipline",
    "Fault",
    "Incident",
    "Message",
    "Outcome",
    "Progress",
    "Report",
    "Stage",
    "Trace",
    "Verdict",
    "check",
    "check_crashes",
]

_SEARCHING: Final = {"check": "check.checking", "check_crashes": "crash.crash_search"}
"""The names that need the extra, each with its module."""


def __getattr__(name: str) -> Any:
    """Import a name that needs the extra."""
    if name not in _SEARCHING:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"lifefold.interpreters.{_SEARCHING[name]}"), name)
