"""Reads a fleet file. All that is wrong with it is told together, with file, line and key, in one error."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from lifefold.interpreters.fleet import values
from lifefold.interpreters.fleet.agents import read_agents
from lifefold.interpreters.fleet.command import placeholders
from lifefold.interpreters.fleet.files import read_text
from lifefold.interpreters.fleet.interpreters import performs_effects_alone, read_interpreters
from lifefold.interpreters.fleet.meaning import meaning
from lifefold.interpreters.fleet.model import DEFAULT_LEASE_MS, DEFAULT_VERIFY_TIMEOUT_MS, Fleet
from lifefold.interpreters.fleet.problems import FleetFileError, Problem, Report
from lifefold.interpreters.fleet.table import Table
from lifefold.interpreters.fleet.tasks import read_tasks
from lifefold.interpreters.fleet.units import format_duration

LEAST_LEASE_MS = 1_000

_LINE = re.compile(r"\bat line (\d+)")


def load(path: Path | str) -> Fleet:
    """Return the fleet that a file describes. Raises ``FleetFileError`` with everything that is wrong with the file.

    Paths in the file are relative to the folder it lies in. Nothing is looked at but the file, its prompt files,
    whether the repository is a folder, and whether the programs are there.
    """
    file, source = str(path), Path(path).absolute()
    content = _content(source, file)
    root = Table(Report(file, content), _document(content, file))
    fleet = root.table("fleet")
    name = fleet.required("name", values.name, "")
    repository = _repository(fleet, source.parent)
    lease_ms = fleet.optional("lease", values.duration(LEAST_LEASE_MS), DEFAULT_LEASE_MS)
    verify_timeout_ms = fleet.optional("verify_timeout", values.duration(1), DEFAULT_VERIFY_TIMEOUT_MS)
    fleet.finish()
    agents = read_agents(root, source.parent)
    used = {placeholder for agent in agents for argument in agent.command for placeholder in placeholders(argument)}
    tasks = read_tasks(root, source.parent, prompt_is_argument="prompt" in used)
    interpreters = list(read_interpreters(root))
    root.finish()
    root.report.raise_problems()
    written = {
        "name": name,
        "repository": None if repository is None else Path(str(fleet.values["repository"])).as_posix(),
        "lease": format_duration(lease_ms),
        "verify_timeout": format_duration(verify_timeout_ms),
    }
    return Fleet(
        name=name,
        repository=repository,
        lease_ms=lease_ms,
        verify_timeout_ms=verify_timeout_ms,
        agents=tuple(agents),
        tasks=tuple(tasks),
        warnings=tuple(root.report.warnings),
        source=source,
        meaning=meaning(written, agents, tasks, [each for each in interpreters if not performs_effects_alone(each)]),
        interpreters=tuple(interpreters),
    )


def _content(source: Path, file: str) -> str:
    try:
        return read_text(source)
    except (OSError, ValueError) as error:
        raise _unreadable(file, f"cannot read this fleet file: {getattr(error, 'strerror', None) or error}") from error


def _document(content: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(content)
    except RecursionError as error:
        raise _unreadable(file, "this is nested too deeply") from error
    except ValueError as error:
        # Besides TOMLDecodeError: Python refuses to read an integer of thousands of digits.
        line = _LINE.search(str(error))
        raise _unreadable(file, f"this is not TOML: {error}", int(line[1]) if line else None) from error


def _unreadable(file: str, message: str, line: int | None = None) -> FleetFileError:
    return FleetFileError((Problem(file, "", line, message),))


def _repository(fleet: Table, folder: Path) -> Path | None:
    written = fleet.optional("repository", values.text, "")
    if not written:
        return None
    repository = Path(os.path.realpath(folder / written))
    if not os.path.isdir(repository):  # noqa: PTH112 - never raises
        accepted = "a folder, from the fleet file's folder; leave it out for plain folders"
        fleet.problem("repository", f"found {values.shown(written)}, which is no folder; accepted: {accepted}")
    return repository
