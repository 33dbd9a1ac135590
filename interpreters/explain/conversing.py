"""The conversation of an agent in words, for every display."""

from lifefold.core.fleet.worker import conversation
from lifefold.core.fleet.worker.conversation_model import Conversation
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session


def conversing(worker: Aggregate) -> str:
    """Return what the present session, or the next one, does about its conversation; empty without an identifier.

    A session that has named the conversation itself begins it. A later one resumes it.
    """
    entity = worker.entities.get(conversation.REF)
    if entity is None or not entity.record.id:
        return ""
    of: Conversation = entity.record
    runs = worker.entities["session"]
    is_its_first = runs.state is session.State.RUNNING and entity.entered_ms > runs.entered_ms
    return f"{'resumes' if of.is_begun and not is_its_first else 'begins'} conversation {of.id}"
