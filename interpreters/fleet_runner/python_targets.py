"""Agents of kind ``python`` whose class cannot be loaded; each of their sessions would fail, and cost a task a retry.

The class is loaded with the Python, environment and folder of its sessions. Task, prompt and state do not exist yet;
they have empty stand-ins. The loading process is ended completely.
"""

import os
import sys
from pathlib import Path
from typing import Final

from lifefold.interpreters.facades.cooperative.probe import LOADED
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_file.model import Agent
from lifefold.interpreters.fleet_runner.variables import environment, secrets_of
from lifefold.interpreters.processes.command import Limits, plain, run

LIMITS: Final = Limits(timeout_ms=60_000, grace_ms=0, keep_bytes=10_000)
"""The limits of loading; a class that takes longer is not reported."""

STANDING_IN: Final = {
    "LIFEFOLD_TASK": "",
    "LIFEFOLD_CLAIM": "0",
    "LIFEFOLD_TOKEN": "0-",
    "LIFEFOLD_DB": os.devnull,
    "LIFEFOLD_ATTEMPT": "0",
    "LIFEFOLD_PROMPT_FILE": os.devnull,
    "LIFEFOLD_STATE_FILE": os.devnull,
    "LIFEFOLD_GRACE_MS": "0",
}
"""Stand-ins for the variables of a session, for modules that read them at import."""

ACCEPTED: Final = (
    "a subclass of lifefold.interpreters.facades.cooperative.Agent with a method process_work(), "
    "in a module beside the fleet file or installed"
)


async def unloadable(fleet: Fleet, limits: Limits = LIMITS) -> tuple[str, ...]:
    """Return the errors of the targets of a fleet, each with its place, the cause, and what is accepted."""
    asked: dict[tuple[object, ...], Agent] = {}
    for agent in fleet.agents:
        if agent.target:
            asked.setdefault((agent.target, frozenset(agent.env.items()), agent.env_pass), agent)
    folder = fleet.source.parent
    place = fleet.repository or folder
    answers = [(agent, await _answer(agent, folder, place, limits)) for agent in asked.values()]
    secrets = secrets_of(fleet, os.environ)
    return tuple(
        f"{agent.target_place}cannot be loaded: {secrets.hidden(answer)}; accepted: {ACCEPTED}"
        for agent, answer in answers
        if answer != LOADED
    )


async def _answer(agent: Agent, folder: Path, place: Path, limits: Limits) -> str:
    module = "lifefold.interpreters.facades.cooperative.probe"
    command = (sys.executable, "-P", "-m", module, str(folder), agent.target)
    env = environment(os.environ, agent, {"LIFEFOLD_AGENT": agent.name, **STANDING_IN})
    ended = await run(command, place, limits, env=env)
    if ended.status is None:
        return LOADED
    return plain(ended.output) or f"{agent.target}: the process that loads it has ended with status {ended.status}"
