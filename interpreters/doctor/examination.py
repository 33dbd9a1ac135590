"""The examination of a machine, for a fleet file or for fleets in general."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
import msgspec

from lifefold.interpreters.adapters import Brief, adapter_names, adapter_of
from lifefold.interpreters.adapters.adapter import Spoken, refused_to_root
from lifefold.interpreters.doctor import machine
from lifefold.interpreters.doctor.finding import Finding, ProgramFinding, Verdict
from lifefold.interpreters.doctor.programs import AgentProgram, examined
from lifefold.interpreters.fleet_file import Agent, Fleet, expand
from lifefold.interpreters.fleet_runner.variables import environment

PROMPT: Final = "-"
"""The prompt of a command line whose first word is looked at."""


ROOT: Final = 0
"""The user to whom some programs refuse permissions."""


class Examination(msgspec.Struct, frozen=True):
    """All findings: ``programs`` are agent programs, ``machine`` is everything else."""

    programs: tuple[ProgramFinding, ...]
    machine: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing that is needed is missing."""
        return not any(each.fails for each in (*self.programs, *self.machine))


async def examine(fleet: Fleet | None, log_folder: Path, problems: str = "") -> Examination:
    """Examine this machine for a fleet, or without one for fleets of any agents.

    ``problems`` are those of a fleet file that cannot be loaded.
    """
    env = dict(os.environ)
    wanted = programs_of(fleet, env) if fleet else all_programs(env)
    programs: dict[int, ProgramFinding] = {}
    async with anyio.create_task_group() as group:
        for place, program in enumerate(wanted):
            group.start_soon(_into, programs, place, program)
    has_repository = fleet is not None and fleet.repository is not None
    found: list[Finding] = []
    if fleet is not None or problems:
        verdict = Verdict.MISSING if problems else Verdict.OK
        found.append(Finding("fleet file", verdict, problems or "has no errors", str(fleet.source) if fleet else ""))
    found += [machine.python(), machine.sqlite(), await machine.git(env, needed=has_repository)]
    if fleet is not None and fleet.repository is not None and not found[-1].fails:
        if fleet.cluster.remote:
            found.append(await machine.remote(fleet))
        else:
            found.append(await machine.repository(fleet.repository))
    found.append(machine.log_folder(log_folder))
    return Examination(tuple(programs[place] for place in sorted(programs)), tuple(found))


async def _into(found: dict[int, ProgramFinding], place: int, program: AgentProgram) -> None:
    found[place] = await examined(program)


def all_programs(env: Mapping[str, str]) -> tuple[AgentProgram, ...]:
    """Return the programs of all adapters that have one."""
    adapters = [adapter_of(name) for name in adapter_names()]
    return tuple(AgentProgram(each, each.argv(Brief(PROMPT), None)[0], env) for each in adapters if each.version_argv)


def programs_of(fleet: Fleet, around: Mapping[str, str]) -> tuple[AgentProgram, ...]:
    """Return the programs of a fleet's agents, each with the agents that use it in the same way.

    The way is the environment, and whether the program refuses the agents' permissions.
    """
    found: dict[tuple[str, str, tuple[str, ...]], dict[str, list[Agent]]] = {}
    for agent in fleet.agents:
        if agent.program is None:
            continue
        adapter = adapter_of(agent.program.adapter)
        arguments = agent.program.arguments if isinstance(adapter, Spoken) else ()
        if adapter.version_argv or isinstance(adapter, Spoken):
            name = expand(agent.command[:1], prompt="", prompt_file="", task="", worktree="")[0]
            place = found.setdefault((agent.program.adapter, name, arguments), {})
            env = environment(around, agent)
            place.setdefault(repr((_refusal(agent, env), sorted(env.items()))), []).append(agent)
    return tuple(
        AgentProgram(
            adapter_of(kind),
            name,
            env := environment(around, agents[0]),
            tuple(each.name for each in agents),
            arguments,
            _refusal(agents[0], env),
        )
        for (kind, name, arguments), groups in found.items()
        for agents in groups.values()
    )


def _refusal(agent: Agent, env: Mapping[str, str]) -> str:
    """Return why a program refuses the permissions of an agent here; empty if it does not."""
    if agent.program is None or os.geteuid() != ROOT:
        return ""
    refused = refused_to_root(adapter_of(agent.program.adapter))
    if agent.program.permissions not in refused or env.get(refused[agent.program.permissions]):
        return ""
    return f'permissions = "{agent.program.permissions}" is refused by the program to root'
