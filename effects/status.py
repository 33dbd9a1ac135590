"""The effects of an agent's status: its state is saved, and telemetry is told."""

from lifefold.effects.base import Effect


class SaveState(Effect, frozen=True):
    """Save the agent's state. It comes first: a transition that could not be saved is reported nowhere (B10, B11)."""

    idempotent = True

    agent_id: str


class EmitTelemetry(Effect, frozen=True):
    """Report an agent's start, stop or failure to telemetry (``agent_started``, ...), with the other known facts."""

    idempotent = True

    agent_id: str
    event: str
    fields: dict[str, str | int | None] = {}  # noqa: RUF012 - msgspec copies it for every instance
