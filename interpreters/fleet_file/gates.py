"""Trust in a fleet file: levels, and the transitions of a task that require one (E34)."""

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
"""The trust of an agent."""

CLAIM: Final = "OPEN -> CLAIMED"
MERGE: Final = "DONE -> CLOSED"

GATED: Final = f'the transitions of a task with gates: "{CLAIM}", to take it, and "{MERGE}", to have its work'
"""The transitions that can have a gate. Operators and rules cause the others, or they follow from these."""


def _gates(value: object) -> GatePlan | None:
    table = as_table(value)
    if table is None:
        return None
    for transition in table:
        if transition not in {CLAIM, MERGE}:
            raise RefusedError(transition, f"{GATED} merged without an approval", transition)
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
