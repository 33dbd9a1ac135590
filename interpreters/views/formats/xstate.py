"""A machine as the JSON configuration of an XState (version 5) machine: ``setup({guards, actions, delays, actors})``.

Guards, actions, delays and actors are named strings, to be supplied with ``setup``. A timer of one state is an
``after`` with the rows of its event. A timer of several states outlasts the changes between them, and each of them has
its own rows for the event. So it is invoked as the actor ``timer``, which sends the event back.
"""

import json
from collections.abc import Callable
from typing import Any

from lifefold.core.kernel import Machine
from lifefold.interpreters.views.formats.chart import Arm, Node, Timer, chart

Json = dict[str, Any]


def xstate(machine: Machine[Any]) -> str:
    """Return the machine as JSON, indented."""
    return json.dumps(configuration(machine), indent=2, ensure_ascii=False) + "\n"


def configuration(machine: Machine[Any]) -> Json:
    """Return the machine as what ``createMachine`` takes."""
    drawn = chart(machine)
    return {
        "id": drawn.name,
        **({"description": drawn.about} if drawn.about else {}),
        "initial": drawn.initial,
        "states": {node.id: _state(node) for node in drawn.nodes},
    }


def _state(node: Node) -> Json:
    """Return a node's configuration; what would be empty is left out."""
    own = {timer.event: timer for timer in node.timers if not node.nodes}
    parts: Json = {
        "id": node.id,
        "description": node.title if node.title != node.id else None,
        "type": "final" if node.final else None,
        "meta": _meta(node),
        "invoke": [{"id": each.id, "src": each.activity} for each in node.activities] + _invoked(node),
        "after": _by(lambda arm: str(own[arm.event].delay), [arm for arm in node.arms if arm.event in own]),
        "on": _by(lambda arm: arm.event, [arm for arm in node.arms if arm.event not in own]),
        "initial": node.initial,
        "states": {inner.id: _state(inner) for inner in node.nodes},
    }
    return {key: value for key, value in parts.items() if value}


def _by(key: Callable[[Arm], str], arms: list[Arm]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    for arm in arms:
        found.setdefault(key(arm), []).append(_transition(arm))
    return found


def _transition(arm: Arm) -> Json:
    parts = {
        "target": f"#{arm.target}" if arm.target else None,
        "reenter": arm.reenters,
        "guard": arm.guard,
        "actions": list(arm.effects),
    }
    return {key: value for key, value in parts.items() if value}


def _meta(node: Node) -> Json:
    parts = {
        "yields": {each.activity: list(each.yields) for each in node.activities},
        "postpones": list(node.postponed),
    }
    return {key: value for key, value in parts.items() if value}


def _invoked(node: Node) -> list[Json]:
    return [_timer(timer) for timer in node.timers] if node.nodes else []


def _timer(timer: Timer) -> Json:
    return {"id": timer.id, "src": "timer", "input": {"event": timer.event, "delay": timer.delay}}
