"""Replays of traces that a check has found: the test files of ``lifefold check --emit-test`` consist of them.

Every step is an input of the present rules, decided by ``react``. The generation and the deadline of a timer and the
number of a message are looked up, so a trace stays valid while numbers change.

A trace that the rules no longer allow proves nothing. If its last step is refused, or a step of its cycle, the
violation is excluded and the property holds. If an earlier step is refused, the trace is lost, and the test with it.
The next step then raises ``unittest.SkipTest`` with the reason, which pytest reports as skipped.
"""

from lifefold.interpreters.replay.trace import Replay

__all__ = ["Replay"]
