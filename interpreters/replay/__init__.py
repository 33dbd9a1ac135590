"""Going a way again that a check has found: what the test files that ``lifefold check --emit-test`` writes are made of.

Every step is an input to the rules as they are now, taken by ``react``. Which generation a timer has, when it is due,
and what number a message bears is looked up, so that a way stays the same while numbers change.

A way that the rules no longer allow proves nothing. If its last step is refused, or one of a round that was to go on
for ever, the violation is excluded: what it was about is kept. If an earlier step is refused the way is lost, and with
it what the test was about: the next step raises ``unittest.SkipTest`` with the reason, which pytest reports as skipped.
"""

from lifefold.interpreters.replay.trace import Retrace

__all__ = ["Retrace"]
