"""What a session of a fleet is started with: its command, its place, its environment, and the file with its prompt."""

import os
from pathlib import Path
from typing import Final

from lifefold.core.fleet import metering
from lifefold.effects import RunSession
from lifefold.interpreters.body import SessionSpec
from lifefold.interpreters.body.workplace import Workplace
from lifefold.interpreters.engine import Occasion
from lifefold.interpreters.fleet import Fleet, expand
from lifefold.interpreters.run.folder import FleetFolder

ARGUMENT_BYTES: Final = 120_000
"""How long a prompt may grow, by letters and by reasons, and still be an argument. Linux takes 131072 bytes in all."""

TOO_LONG: Final = "Your instructions are too long for an argument. Read all of the file {file} and do what it says."
"""What becomes the argument instead."""


def session_spec(
    fleet: Fleet, folder: FleetFolder, workplace: Workplace, activity: RunSession, occasion: Occasion
) -> SessionSpec:
    """Return what to run for a session; the file with its prompt is there already, or is written by who runs it."""
    agent = next(each for each in fleet.agents if each.name == occasion.within.key)
    brief = occasion.within.record("assignment").brief
    task = brief.task
    worktree = workplace.folder(agent.name, task)
    prompt_file = folder.prompt(agent.name, activity.attempt)
    prompt = activity.prompt if _fits(activity.prompt) else TOO_LONG.format(file=prompt_file)
    argv = expand(agent.command, prompt=prompt, prompt_file=str(prompt_file), task=task, worktree=str(worktree))
    known = {
        "LIFEFOLD_AGENT": agent.name,
        "LIFEFOLD_TASK": task,
        "LIFEFOLD_CLAIM": str(brief.epoch),
        "LIFEFOLD_DB": str(folder.log),
        "LIFEFOLD_ATTEMPT": str(activity.attempt),
        "LIFEFOLD_HEARTBEAT": str(folder.heartbeat(agent.name, activity.attempt)),
        "LIFEFOLD_PROMPT_FILE": str(prompt_file),
        "LIFEFOLD_STATE_FILE": str(folder.state(task, brief.kept)),
        "LIFEFOLD_GRACE_MS": str(fleet.grace_ms(agent) if agent.target else activity.grace_ms),
        **_left(occasion),
    }
    return SessionSpec(
        argv=tuple(argv),
        cwd=str(worktree),
        env={**os.environ, **agent.env, **known},
        timeout_ms=activity.timeout_ms,
        grace_ms=activity.grace_ms,
        output_limit_bytes=agent.output_limit_bytes,
        generation=f"{agent.name}-{activity.attempt}",
    )


def _left(occasion: Occasion) -> dict[str, str]:
    """Return how much of its budget is left to a session, as far as it has one."""
    left = metering.left(occasion.within)
    dollars = {} if left.microusd is None else {"LIFEFOLD_BUDGET_USD": f"{left.microusd / 1_000_000:.6f}"}
    tokens = {} if left.tokens is None else {"LIFEFOLD_BUDGET_TOKENS": str(left.tokens)}
    return dollars | tokens


def write_whole(file: Path, text: str) -> None:
    """Write a file as a whole: who reads it meanwhile finds the old text or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)


def _fits(prompt: str) -> bool:
    return len(prompt.encode()) <= ARGUMENT_BYTES
