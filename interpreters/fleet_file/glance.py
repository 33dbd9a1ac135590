"""The name of a fleet and its servers, read without the rest of the fleet file, which may not fit this machine."""

import tomllib
from pathlib import Path
from typing import NamedTuple

from lifefold.interpreters.fleet_file.cluster import LOG, named_remote
from lifefold.interpreters.fleet_file.files import read_text
from lifefold.interpreters.fleet_file.values import RefusedError, as_table


class Glance(NamedTuple):
    """The name of a fleet, its git remote, and the address of its log on a server; an empty text is an absent value.

    ``has_engine``: the fleet runs on a cluster by default.
    """

    name: str = ""
    remote: str = ""
    log: str = ""
    has_engine: bool = False


def glance(file: Path) -> Glance:
    """Return what a fleet file has of these; what cannot be read, or is unusable, counts as absent."""
    try:
        document = tomllib.loads(read_text(file))
    except (OSError, ValueError, RecursionError):
        return Glance()
    fleet, cluster = as_table(document.get("fleet")) or {}, as_table(document.get("cluster")) or {}
    name, remote = fleet.get("name"), named_remote(cluster.get("remote"), file.absolute().parent)
    return Glance(name if isinstance(name, str) else "", remote, _log(cluster.get("log")), bool(cluster.get("engine")))


def _log(written: object) -> str:
    try:
        return LOG.parse(written)
    except RefusedError:
        return ""
