"""How trust is written in a fleet file: levels, and which transitions of a task take which level (E34)."""

from typing import Final

from lifefold.core.fleet import GatePlan
from lifefold.core.policy.access import AccessLevel
from lifefold.interpreters.fleet_file.forms import Form, inside
from lifefold.interpreters.fleet_file.values import RefusedError, as_table

_LEVELS: Final = {each.word: each for each in AccessLevel}

LEVEL: Final = Form(
    " or ".join(f'"{word}"' for word in _LEVELS),
    " or ".join(f'`"{word}"`' for word in _LEVELS),
    {"enum": list(_LEVELS)},
    lambda value: _LEVELS.get(value) if isinstance(value, str) else None,
    lambda level: level.word,
)
"""How far an agent is trusted."""

CLAIM: Final = "OPEN -> CLAIMED"
MERGE: Final = "DONE -> CLOSED"

GATED: Final = f'the transitions of a task that can be gated: "{CLAIM}", who may take one, and "{MERGE}", whose work is'
"""What can be gated. All else a task does is done by people and rules, or follows from these."""


def _gates(value: object) -> GatePlan | None:
    table = as_table(value)
    if table is None:
        return None
    for transition in table:
        if transition not in {CLAIM, MERGE}:
            raise RefusedError(transition, f"{GATED} merged unseen by a person", transition)
    levels = {transition: inside(LEVEL, level, transition) for transition, level in table.items()}
    lowest = AccessLevel.UNTRUSTED
    return GatePlan(levels.get(CLAIM, lowest), levels.get(MERGE, lowest))


def _write(gates: GatePlan) -> dict[str, str]:
    levels = {CLAIM: gates.claim, MERGE: gates.merge}
    return {transition: level.word for transition, level in levels.items() if level}


GATES: Final = Form(
    f'a table of levels, such as {{ "{CLAIM}" = "probationary", "{MERGE}" = "trusted" }}',
    f'a table, as `{{ "{MERGE}" = "trusted" }}`',
    {"type": "object", "properties": {CLAIM: LEVEL.schema, MERGE: LEVEL.schema}, "additionalProperties": False},
    _gates,
    _write,
)
