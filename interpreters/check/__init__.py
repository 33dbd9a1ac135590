"""Check: every state that the shipped reducers can reach, and whether what they promise holds there.

``check`` takes a machine or a system and returns a ``Report``. The environment is read off the machines (see
``core.kernel.environment``); nothing is modelled a second time. Needs NumPy and SciPy: the extra ``check``.
"""

from lifefold.interpreters.check.check import check
from lifefold.interpreters.check.crash import check_crashes
from lifefold.interpreters.check.findings import Progress
from lifefold.interpreters.check.gate import Unsound
from lifefold.interpreters.check.ground import SHIPPED, CrashBounds, Discipline, Fault, Stage
from lifefold.interpreters.check.question import Bounds
from lifefold.interpreters.check.report import CrashReport, Message, Outcome, Report, Verdict
from lifefold.interpreters.check.trace import CrashTrace, Incident, Trace

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
    "Unsound",
    "Verdict",
    "check",
    "check_crashes",
]
