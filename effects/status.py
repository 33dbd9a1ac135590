"""What an agent's status asks for: that it is kept, and that somebody is told."""

from lifefold.effects.base import Effect


class SaveState(Effect, frozen=True):
    """Keep the agent's state. It comes first: nobody is told of a transition that could not be kept (B10, B11)."""

    idempotent = True

    agent_id: str


class EmitTelemetry(Effect, frozen=True):
    """Tell telemetry of an agent: ``agent_started``, ``agent_stopped``, ``agent_failed``, with what else is known."""

    idempotent = True

    agent_id: str
    event: str
    fields: dict[str, str | int | None] = {}  # noqa: RUF012 - msgspec copies it for every instance
