"""The conversation of an agent in words, for every display."""

from lifefold.core.fleet.worker.conversation import Conversation


def conversing(of: Conversation | None) -> str:
    """Return what the present session, or the next one, does about its conversation; empty without an identifier."""
    if of is None or not of.id:
        return ""
    return f"{'resumes' if of.is_begun else 'begins'} conversation {of.id}"
