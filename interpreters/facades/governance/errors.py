"""What the governance kernel of document 004 raises when it refuses; in each case nothing has changed."""

from lifefold.core.lifecycles import approval
from lifefold.interpreters.facades.refusals import Refusal


class IllegalTransitionError(Refusal):
    """No row of the table allows this; nothing has changed. ``detail`` says more, if there is more to say."""

    def __init__(self, entity_type: str, entity_id: str, source: str, target: str, detail: str = "") -> None:
        """Take what was to move, from where, to where."""
        super().__init__(f"Illegal {entity_type} transition: {source!r} -> {target!r} (entity {entity_id})")
        self.entity_type, self.entity_id = entity_type, entity_id
        self.from_status, self.to_status, self.detail = source, target, detail


class DuplicateTransitionError(Refusal):
    """``transition_id`` was used for another transition of the entity ``entity_id`` (E14)."""

    def __init__(self, message: str, transition_id: str, entity_id: str) -> None:
        """Take what is to be told, the id, and whose it is."""
        super().__init__(message)
        self.transition_id, self.entity_id = transition_id, entity_id


class AccessDeniedError(Refusal):
    """The ``actor`` is not trusted enough to move the entity ``entity_id`` in this way (E34); nothing has changed."""

    def __init__(self, actor: str, entity_id: str, source: str, target: str) -> None:
        """Take who was to move what, from where, to where."""
        super().__init__(f"{actor or 'no actor'} may not move {entity_id} from {source} to {target}")
        self.actor, self.entity_id = actor, entity_id
        self.from_status, self.to_status = source, target


class PlanConflictError(Refusal):
    """The plan cannot be decided as asked; nothing has changed (E43). ``tasks`` are those in the way."""

    def __init__(self, conflict: approval.PlanConflict) -> None:
        """Take the conflict."""
        super().__init__(f"{conflict.reason}: {', '.join(conflict.tasks)}")
        self.tasks = conflict.tasks
