"""The two numberings of a runtime's states, for programs that speak in integers (A19).

Document 000 counts its states from 0. Later releases of its system, and its wire format, count from 1 and keep 0 for
"unspecified". So a number needs its numbering; the name alone identifies a state.
"""

from typing import Final

import msgspec

from lifefold.core.lifecycles.runtime.record import State

_STATES: Final = tuple(State)


class Numbering(msgspec.Struct, frozen=True):
    """States as consecutive integers in the document's order, ``first`` being INITIALIZING."""

    name: str
    first: int

    def number(self, state: State) -> int:
        """Return a state's number."""
        return _STATES.index(state) + self.first

    def state(self, number: int) -> State | None:
        """Return the state of a number; None without one, as for 0 in the later numbering."""
        index = number - self.first
        return _STATES[index] if 0 <= index < len(_STATES) else None


SEED: Final = Numbering("seed", 0)
"""The document's own: INITIALIZING is 0, RECOVERING 11."""

SDK: Final = Numbering("sdk", 1)
"""The later one: 0 is unspecified, INITIALIZING is 1, RECOVERING 12."""
