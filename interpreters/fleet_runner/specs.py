"""The specification of a session, or of a service's run: command, folder, environment and prompt."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lifefold.core.fleet import service
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.worker import usage
from lifefold.effects import RunSession
from lifefold.effects.service import Changed, Cron, Every, Source
from lifefold.interpreters.adapters.command import COMMAND
from lifefold.interpreters.engine import EffectContext
from lifefold.interpreters.fleet_file import Fleet, expand
from lifefold.interpreters.fleet_runner.agent_programs import program_argv
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.variables import environment
from lifefold.interpreters.processes import SessionSpec
from lifefold.interpreters.processes.session_files import SessionError
from lifefold.interpreters.telemetry.identifiers import Begun, session_place
from lifefold.interpreters.worktrees.workplace import Workplace

ARGUMENT_BYTES: Final = 120_000
"""The longest prompt that is passed as an argument; Linux accepts 131072 bytes for one."""

TOO_LONG: Final = "Your instructions are too long for an argument. Read all of the file {file} and do what it says."
"""The argument in place of a longer prompt."""


def session_spec(  # noqa: PLR0913, PLR0917 - the parts of a run, each with its name
    fleet: Fleet,
    folder: FleetFolder,
    workplace: Workplace,
    activity: RunSession,
    context: EffectContext,
    run: str = "",
) -> SessionSpec:
    """Return the specification of a session; the caller writes the file of its prompt.

    ``run`` is the identity of the log; ``TRACEPARENT`` is derived from it. Raises ``SessionError`` for an agent that is
    not in the fleet file any more.
    """
    if context.within.kind == service.KIND:
        return _run_of_service(fleet, folder, activity, context, run)
    agent = next((each for each in fleet.agents if each.name == context.within.key), None)
    if agent is None:
        raise SessionError(f"{context.within.key} is not in {fleet.source} any more")
    brief = context.within.record("assignment").brief
    task = brief.task
    worktree = workplace.folder(agent.name, task)
    prompt_file = folder.prompt(agent.name, activity.attempt)
    prompt = _argument(activity, prompt_file)
    inbox = str(folder.inbox(agent.name, activity.attempt))
    if agent.program is None:
        argv = expand(agent.command, prompt=prompt, prompt_file=str(prompt_file), task=task, worktree=str(worktree))
    else:
        argv = [*program_argv(agent, agent.program, prompt, context.within, inbox)]
    known = {
        "LIFEFOLD_TASK": task,
        "LIFEFOLD_CLAIM": str(brief.epoch),
        "LIFEFOLD_TOKEN": f"{brief.epoch}-{brief.token}",
        "LIFEFOLD_HEARTBEAT": str(folder.heartbeat(agent.name, activity.attempt)),
        "LIFEFOLD_STATE_FILE": str(folder.state(task, brief.kept)),
        **_redacted(fleet),
        **_known(folder, activity, agent.name, fleet.grace_ms(agent) if agent.target else activity.grace_ms),
        **_left(context),
        **_traced(run, context, task),
    }
    return SessionSpec(
        argv=tuple(argv),
        cwd=str(worktree),
        env=environment(os.environ, agent, known),
        timeout_ms=activity.timeout_ms,
        grace_ms=activity.grace_ms,
        output_limit_bytes=agent.output_limit_bytes,
        generation=f"{agent.name}-{activity.attempt}",
        kind=COMMAND if agent.program is None else agent.program.adapter,
    )


def _run_of_service(
    fleet: Fleet, folder: FleetFolder, activity: RunSession, context: EffectContext, run: str
) -> SessionSpec:
    """Return the specification of a service's run, in the service's folder, without a worktree or a merge."""
    of = next((each for each in fleet.services if each.name == context.within.key), None)
    if of is None:
        raise SessionError(f"{context.within.key} is not in {fleet.source} any more")
    waiting: inbox.Inbox = context.within.record(inbox.REF)
    prompt_file = folder.prompt(of.name, activity.attempt)
    place = str(fleet.place_of(of))
    prompt = _argument(activity, prompt_file)
    ref = "" if waiting.in_hand is None else waiting.in_hand.source
    known = {
        "LIFEFOLD_TRIGGER": _KINDS[type(context.within.record(ref).source)] if ref else "message",
        **_redacted(fleet),
        **_known(folder, activity, of.name, activity.grace_ms),
        **_traced(run, context),
    }
    return SessionSpec(
        argv=tuple(expand(of.command, prompt=prompt, prompt_file=str(prompt_file), task="", worktree=place)),
        cwd=place,
        env=environment(os.environ, of, known),
        timeout_ms=activity.timeout_ms,
        grace_ms=activity.grace_ms,
        output_limit_bytes=of.output_limit_bytes,
        generation=f"{of.name}-{activity.attempt}",
        kind=COMMAND,
    )


_KINDS: Final[Mapping[type[Source], str]] = {Every: "interval", Cron: "cron", Changed: "path"}
"""The name of the kind of a trigger, for the environment of a run."""


def _known(folder: FleetFolder, activity: RunSession, name: str, grace_ms: int) -> dict[str, str]:
    """Return the variables of every process of a fleet."""
    return {
        "LIFEFOLD_AGENT": name,
        "LIFEFOLD_DB": str(folder.log),
        "LIFEFOLD_ATTEMPT": str(activity.attempt),
        "LIFEFOLD_PROMPT_FILE": str(folder.prompt(name, activity.attempt)),
        "LIFEFOLD_GRACE_MS": str(grace_ms),
    }


def _traced(run: str, context: EffectContext, task: str = "") -> dict[str, str]:
    """Return the span of a session, so that its processes can add theirs to it; the export of the log has the same."""
    slot = RunSession.__name__
    begun = context.entity.find(slot)
    generation = 0 if begun is None else begun.generation
    return {
        "TRACEPARENT": session_place(run, Begun(context.within.name, context.ref, slot, generation), task).traceparent
    }


def _redacted(fleet: Fleet) -> dict[str, str]:
    """Return the names of further secrets, for commands that a session gives."""
    return {"LIFEFOLD_REDACT": " ".join(fleet.redact)} if fleet.redact else {}


def _argument(activity: RunSession, prompt_file: Path) -> str:
    """Return the prompt, or ``TOO_LONG`` for one that does not fit an argument."""
    return activity.prompt if _fits(activity.prompt) else TOO_LONG.format(file=prompt_file)


def _left(context: EffectContext) -> dict[str, str]:
    """Return the variables with the rest of a session's budget, if it has one."""
    left = usage.left(context.within)
    dollars = {} if left.microusd is None else {"LIFEFOLD_BUDGET_USD": f"{left.microusd / 1_000_000:.6f}"}
    tokens = {} if left.tokens is None else {"LIFEFOLD_BUDGET_TOKENS": str(left.tokens)}
    return dollars | tokens


def _fits(prompt: str) -> bool:
    return len(prompt.encode()) <= ARGUMENT_BYTES
