"""What a fleet needs of this machine, and what of it is there: agent programs, git, Python, SQLite, the log's folder.

``examine`` looks at the machine and returns an ``Examination``. It sends no request and changes nothing.
"""

from lifefold.interpreters.doctor.examination import Examination, examine
from lifefold.interpreters.doctor.finding import Finding, Verdict

__all__ = ["Examination", "Finding", "Verdict", "examine"]
