"""How an agent looks on a screen: its visual state, from the log and from what was observed of its process."""

from typing import Final

import msgspec

from lifefold.core.policy.visual import VisualState
from lifefold.interpreters.explain.appearance import classify
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.fleet_runner.process_evidence import Evidence


class Looks(msgspec.Struct, frozen=True):
    """The visual state of an agent with its indicator and colour. ``stalled``: it has been silent for too long."""

    state: VisualState
    indicator: str
    colour: str
    stalled: bool


def looks(agent: AgentStatus, evidence: Evidence | None, now_ms: int, *, runs: bool) -> Looks | None:
    """Return the looks of an agent; None for a service. ``runs``: a runner is at work.

    Only a runner watches sessions, so without one the last warning of the stall detector is no news of the present.
    """
    if agent.appearance is None:
        return None
    alive = evidence is not None and evidence.alive
    pid = evidence.pid if evidence is not None and alive else None
    silent_ms = evidence.silent_ms if evidence is not None else None
    sign_ms = None if silent_ms is None else now_ms - silent_ms
    is_stuck = runs and bool(agent.silent_since_ms)
    found = classify(agent.appearance, now_ms, pid=pid, sign_ms=sign_ms, runs=runs, is_stuck=is_stuck)
    return Looks(found.state, found.state.indicator, found.state.colour, found.stalled)


STYLES: Final = {"dark orange": "dark_orange", "gray": "bright_black"}
"""The names of the document's colours in a terminal, where they differ."""


def style(of: Looks) -> str:
    """Return the style of a mark in a terminal."""
    return STYLES.get(of.colour, of.colour)


def marked(of: Looks | None, words: str) -> str:
    """Return words with the mark of an agent before them; a service has none."""
    return words if of is None else f"{of.indicator} {words}"
