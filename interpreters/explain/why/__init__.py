"""Why a task is where it is, in sentences: a projection of a fleet's log, for a person who comes in the morning.

It says where the task is now, because of which other tasks (``chain``), how it came there (``story``), what would move
it on by itself and what a person can do (``ways``). Everything that is said is in the log: ``Story`` is folded over the
transitions, all else is computed from the aggregates. Whether a runner is at work or a process is there is evidence,
and is no part of it.
"""

from lifefold.interpreters.explain.why.chain import Link, chain, roots
from lifefold.interpreters.explain.why.explanation import Cause, Explanation, explain
from lifefold.interpreters.explain.why.scene import FleetView, look
from lifefold.interpreters.explain.why.serving import ServiceExplanation, explain_service
from lifefold.interpreters.explain.why.story import Chapter, Line, Story, chapters, resumed, tell
from lifefold.interpreters.explain.why.ways import Way

__all__ = [
    "Cause",
    "Chapter",
    "Explanation",
    "FleetView",
    "Line",
    "Link",
    "ServiceExplanation",
    "Story",
    "Way",
    "chain",
    "chapters",
    "explain",
    "explain_service",
    "look",
    "resumed",
    "roots",
    "tell",
]
