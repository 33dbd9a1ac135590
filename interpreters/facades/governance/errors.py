"""The errors of the governance kernel of document 004; in each case nothing has changed."""

from lifefold.core.lifecycles import approval
from lifefold.interpreters.facades.refusals import Refusal


class IllegalTransitionError(Refusal):
    """No row of the table allows the transition; nothing has changed. ``detail`` may have more information."""

    def __init__(self, entity_type: str, entity_id: str, source: str, target: str, detail: str = "") -> None:
        """Take the entity, its status, and the requested status."""
        super().__init__(f"Illegal {entity_type} transition: {source!r} -> {target!r} (entity {entity_id})")
        self.entity_type, self.entity_id = entity_type, entity_id
        self.from_status, self.to_status, self.detail = source, target, detail


class DuplicateTransitionError(Refusal):
    """``transition_id`` was used for another transition of the entity ``entity_id`` (E14)."""

    def __init__(self, message: str, transition_id: str, entity_id: str) -> None:
        """Take the message, the id of the transition, and that of the entity."""
        super().__init__(message)
        self.transition_id, self.entity_id = transition_id, entity_id


class AccessDeniedError(Refusal):
    """The access level of the ``actor`` is too low for this transition (E34); nothing has changed."""

    def __init__(self, actor: str, entity_id: str, source: str, target: str) -> None:
        """Take the actor, the entity, its status, and the requested status."""
        super().__init__(f"{actor or 'no actor'} may not move {entity_id} from {source} to {target}")
        self.actor, self.entity_id = actor, entity_id
        self.from_status, self.to_status = source, target


class PlanConflictError(Refusal):
    """The plan cannot be approved or rejected; nothing has changed (E43). ``tasks`` are the conflicting ones."""

    def __init__(self, conflict: approval.PlanConflict) -> None:
        """Wrap a conflict."""
        super().__init__(f"{conflict.reason}: {', '.join(conflict.tasks)}")
        self.tasks = conflict.tasks
