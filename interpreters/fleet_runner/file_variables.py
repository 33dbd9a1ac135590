"""The variables of a fleet file that has changed since: ``env``, ``env_pass`` and ``redact``.

They are no part of the plan, because their values may be secrets. So they need no plan change: each new session and
verification has those of the file at that time. A file with another plan, or with an error, changes nothing.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import replace

from lifefold.interpreters.fleet_file import Agent, Fleet, FleetFileError, Service, load

T = TypeVar("T", Agent, Service)


class FileVariables:
    """Compares the variables of a fleet with those of its file, whenever the file was written."""

    def __init__(self, source: Path) -> None:
        """Take the present file as read."""
        self._source: Final = source
        self._seen = _stamp(source)

    def of(self, fleet: Fleet) -> Fleet:
        """Return a fleet with the variables of its file, if the file was written since and has the same plan."""
        now = _stamp(self._source)
        if now is None or now == self._seen:
            return fleet
        self._seen = now
        try:
            found = load(self._source, watch=fleet.watch)
        except FleetFileError:
            return fleet
        return with_variables(fleet, found) if found.meaning == fleet.meaning else fleet


def with_variables(fleet: Fleet, of: Fleet) -> Fleet:
    """Return a fleet with the variables of another one."""
    return replace(
        fleet,
        env=of.env,
        env_pass=of.env_pass,
        redact=of.redact,
        agents=tuple(_with_variables(each, {new.name: new for new in of.agents}) for each in fleet.agents),
        services=tuple(_with_variables(each, {new.name: new for new in of.services}) for each in fleet.services),
    )


def _with_variables(each: T, of: Mapping[str, T]) -> T:
    found = of.get(each.name)
    return each if found is None else replace(each, env=found.env, env_pass=found.env_pass)


def changed_names(was: Fleet, now: Fleet) -> list[str]:
    """Return the names of the variables in which two fleets differ, and the keys of the file with names."""
    return sorted(set(_changed(was, now)))


def _changed(was: Fleet, now: Fleet) -> Iterator[str]:
    pairs: list[tuple[Fleet | Agent | Service, Fleet | Agent | Service]] = [(was, now)]
    pairs += zip(was.agents, now.agents, strict=True)
    pairs += zip(was.services, now.services, strict=True)
    for old, new in pairs:
        yield from (name for name in old.env.keys() | new.env.keys() if old.env.get(name) != new.env.get(name))
        if old.env_pass != new.env_pass:
            yield "env_pass"
    if was.redact != now.redact:
        yield "redact"


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Return what differs when a file was written; None for a missing file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
