"""One oven, driven by hand: its inputs and its answers."""

from typing import Any

from lifefold.core.kernel import (
    Entity,
    EntityStep,
    Envelope,
    Event,
    Machine,
    Record,
    Refusal,
    advance,
    create,
)
from lifefold.effects import Effect
from oven import Baked, Lit, machine


class Given:
    """An oven's entity, and the answer to what it was given last."""

    def __init__(self, record: Record | None = None, of: Machine[Any] = machine) -> None:
        """Begin a life at time 1000."""
        self.of = of
        self.answer: EntityStep | Refusal = create(of, of.name, record or of.initial, 1_000, "test")
        self.entity: Entity[Any] = self.answer.entity

    def take(self, event: Event, at_ms: int = 1_000, slot: str = "", generation: int = 0) -> "Given":
        """Offer an event; the entity changes if it is accepted."""
        self.answer = advance(self.of, self.entity, Envelope(self.of.name, event, at_ms, "test", "", slot, generation))
        if isinstance(self.answer, EntityStep):
            self.entity = self.answer.entity
        return self

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects of the last input, which was accepted."""
        assert isinstance(self.answer, EntityStep)
        return self.answer.effects

    @property
    def refused(self) -> tuple[str, str]:
        """The kind and the reason of the last input's refusal."""
        assert isinstance(self.answer, Refusal)
        return self.answer.kind, self.answer.reason


def baking(degrees: int = 200) -> Given:
    """Return an oven that bakes, since version 2."""
    return Given().take(Lit(degrees))


def cooling() -> Given:
    """Return an oven that cools down, since version 3 and time 1000."""
    return baking().take(Baked(), slot="Bake", generation=2)
