"""Why a task is in its state, in sentences for an operator: a projection of a fleet's log.

An explanation has the present state, the tasks that cause it (``chain``), and the history (``story``). It also has what
would move the task on, and what an operator can do (``options``). All of it comes from the log: ``Story`` is folded
over the transitions, and the rest is computed from the aggregates. Evidence about runners and processes is no part of
it.
"""

from lifefold.interpreters.explain.why.chain import Link, chain, roots
from lifefold.interpreters.explain.why.explanation import Cause, Explanation, explain
from lifefold.interpreters.explain.why.fleet_view import FleetView, look
from lifefold.interpreters.explain.why.options import Option, of_question
from lifefold.interpreters.explain.why.serving import ServiceExplanation, explain_service
from lifefold.interpreters.explain.why.story import Chapter, Line, Story, chapters, resumed, tell

__all__ = [
    "Cause",
    "Chapter",
    "Explanation",
    "FleetView",
    "Line",
    "Link",
    "Option",
    "ServiceExplanation",
    "Story",
    "chain",
    "chapters",
    "explain",
    "explain_service",
    "look",
    "of_question",
    "resumed",
    "roots",
    "tell",
]
