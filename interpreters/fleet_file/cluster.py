"""The ``[cluster]`` of a fleet file: the servers of a fleet on several machines, its times, and its pools of hosts.

Where a fleet runs is no part of its plan. So a log goes on with any ``[cluster]``, and without one.
"""

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.fleet_file import forms
from lifefold.interpreters.fleet_file.forms import Form, matching
from lifefold.interpreters.fleet_file.keys import Key, Section
from lifefold.interpreters.fleet_file.table import Names, Table
from lifefold.interpreters.fleet_file.values import RefusedError, shown

CLUSTER: Final = "cluster"
"""The key of the table."""

DEFAULT_POOL: Final = "default"
"""The pool of agents that are in no other one, and of hosts without ``--pool``."""

DEFAULT_DETECTION_MS: Final = 30_000
LEAST_DETECTION_MS: Final = 1_000
DEFAULT_CAPACITY: Final = 8
MOST_CAPACITY: Final = 10_000
DEFAULT_DRAIN_MS: Final = 600_000
API_KEY: Final = "TEMPORAL_API_KEY"
"""The variable with the key of a Temporal service: a key on a command line is visible to all users."""

_HOST: Final = r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])"

ENGINE: Final = matching(
    rf"temporal://{_HOST}:[0-9]{{1,5}}(?:/[A-Za-z0-9._-]+)?",
    'the address of a Temporal server, such as "temporal://127.0.0.1:7233" or "temporal://host:7233/NAMESPACE"',
    "`temporal://HOST:PORT` or `temporal://HOST:PORT/NAMESPACE`",
)
"""The address of an engine; without a namespace that is ``default``."""

LOG: Final = matching(
    r"postgres(?:ql)?://\S+",
    'the address of a log on a PostgreSQL server, such as "postgresql://fleets@db/agents?log=docs"',
    "a `postgresql://` address",
)

_PASSWORD: Final = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*@")


def _remote(value: object) -> str | None:
    if not isinstance(value, str) or not re.fullmatch(r"[^\s\0-][^\0\n]*", value):
        return None
    if _PASSWORD.search(value):
        accepted = "an address without a password: git gets it from a credential helper, or by ssh from a key"
        raise RefusedError(_PASSWORD.sub("...@", value), accepted)
    return value


REMOTE: Final = Form(
    'the address of a git repository, such as "ssh://git@git.example.org/docs.git"',
    "the address of a git repository",
    {"type": "string", "pattern": r"^[^\s-]"},
    _remote,
)
"""Any address that git accepts; git has the secrets, so none is in the file, in the log or in a message."""

BRANCH: Final = matching(
    r"(?!.*(?:\.\.|//|\.lock$|/$))[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}", "the name of a branch", "the name of a branch"
)

VARIABLE: Final = matching(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable", "the name of a variable")


class PoolKeys(Section, header="[[cluster.pools]]", named_by="name"):
    """A pool: hosts of one kind, such as machines with a graphics card, and the agents that run there."""

    name = Key(forms.NAME, "the name, as `lifefold host --pool` has it", "", required=True)
    agents = Key(
        forms.NAMES,
        "the agents and services that run on hosts of this pool, each by its `name`; the others are in the pool"
        f" `{DEFAULT_POOL}`",
        (),
    )
    capacity = Key(
        forms.integer(1, MOST_CAPACITY),
        "how many of them run on one host at a time",
        0,
        absent="`capacity` of `[cluster]`",
    )


class ClusterKeys(Section, header="[cluster]"):
    """The servers of a fleet on several machines; see [a fleet on several machines](cluster.md)."""

    engine = Key(ENGINE, "the Temporal server; with it `lifefold run` decides there, and hosts run the sessions", "")
    log = Key(LOG, "the log on a PostgreSQL server, which all machines reach", "", absent="the log of `lifefold run`")
    remote = Key(
        REMOTE,
        "the git remote of a fleet with a `repository`: hosts clone it, and push verified work to it; a path counts"
        " from the fleet file's folder",
        "",
    )
    branch = Key(
        BRANCH, "the branch of the remote into which work is merged", "", absent="the one that the remote's HEAD names"
    )
    detection = Key(
        forms.duration(LEAST_DETECTION_MS),
        "a host without a heartbeat for so long is lost; its sessions end after 0.8 of it, at the latest",
        DEFAULT_DETECTION_MS,
    )
    capacity = Key(
        forms.integer(1, MOST_CAPACITY), "how many agents and services run on one host at a time", DEFAULT_CAPACITY
    )
    drain = Key(forms.duration(1), "how long a host that is asked to leave lets its sessions end", DEFAULT_DRAIN_MS)
    tls = Key(
        forms.BOOLEAN, "whether the connection is encrypted; a certificate or an API key implies it", default=False
    )
    tls_ca = Key(forms.TEXT, "the file with the certificate of the server's authority", "", absent="the system's")
    tls_cert = Key(forms.TEXT, "the file with the certificate of this client", "", absent="none")
    tls_key = Key(forms.TEXT, "the file with the key of this client", "", absent="none")
    api_key_env = Key(VARIABLE, "the variable with the API key of the service, if it is set", API_KEY)
    api_key_file = Key(forms.TEXT, "the file with the API key", "", absent="none")
    pools = PoolKeys


class Pool(msgspec.Struct, frozen=True):
    """A pool of hosts. ``capacity`` is the number of agents that run on one host at a time."""

    name: str
    agents: tuple[str, ...]
    capacity: int


class ClusterPlan(msgspec.Struct, frozen=True):
    """Where a fleet runs. Times are in milliseconds, paths are absolute, an empty text is an absent value."""

    engine: str = ""
    log: str = ""
    remote: str = ""
    branch: str = ""
    detection_ms: int = DEFAULT_DETECTION_MS
    capacity: int = DEFAULT_CAPACITY
    drain_ms: int = DEFAULT_DRAIN_MS
    tls: bool = False
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    api_key_env: str = API_KEY
    api_key_file: str = ""
    pools: tuple[Pool, ...] = ()

    def pool_of(self, agent: str) -> str:
        """Return the pool of an agent or a service; one of a ``count`` is in the pool of its table's name."""
        named = {name: pool.name for pool in self.pools for name in pool.agents}
        return named.get(agent) or named.get(_of_count(agent)) or DEFAULT_POOL

    def capacity_of(self, pool: str) -> int:
        """Return how many agents of a pool run on one host at a time."""
        return next((each.capacity for each in self.pools if each.name == pool), self.capacity)


def read_cluster(root: Table, folder: Path, names: Collection[str], *, has_repository: bool) -> ClusterPlan:
    """Return where the fleet of a file runs; paths are relative to ``folder``. Nothing is opened.

    ``names`` are those of the agents and services of the file.
    """
    table = root.table(ClusterKeys)
    capacity = table.read(ClusterKeys.capacity)

    def path(key: Key[str]) -> str:
        written = table.read(key)
        return str(folder / os.path.expanduser(written)) if written else ""  # noqa: PTH111 - never raises

    plan = ClusterPlan(
        engine=table.read(ClusterKeys.engine),
        log=table.read(ClusterKeys.log),
        remote=_address(table.read(ClusterKeys.remote), folder),
        branch=table.read(ClusterKeys.branch),
        detection_ms=table.read(ClusterKeys.detection),
        capacity=capacity,
        drain_ms=table.read(ClusterKeys.drain),
        tls=table.read(ClusterKeys.tls),
        tls_ca=path(ClusterKeys.tls_ca),
        tls_cert=path(ClusterKeys.tls_cert),
        tls_key=path(ClusterKeys.tls_key),
        api_key_env=table.read(ClusterKeys.api_key_env),
        api_key_file=path(ClusterKeys.api_key_file),
        pools=_pools(table, capacity, {*names, *map(_of_count, names)}),
    )
    for one, other in ((ClusterKeys.tls_cert, ClusterKeys.tls_key), (ClusterKeys.tls_key, ClusterKeys.tls_cert)):
        if one.name in table and other.name not in table:
            table.problem(one.name, f"{other.name} is missing; accepted: both, or neither")
    if plan.remote and not has_repository:
        table.problem(ClusterKeys.remote.name, "the fleet has no repository; accepted: with repository in [fleet]")
    if plan.branch and not plan.remote:
        table.problem(ClusterKeys.branch.name, "there is no remote; accepted: with remote")
    table.finish()
    return plan


def named_remote(written: object, folder: Path) -> str:
    """Return the address of a remote that a file in a folder names; empty for an unusable one."""
    try:
        return _address(_remote(written) or "", folder)
    except RefusedError:
        return ""


def _address(written: str, folder: Path) -> str:
    """Return the address of a remote; a path of this machine is made absolute."""
    is_path = written and ":" not in written.partition("/")[0]
    return str(folder / os.path.expanduser(written)) if is_path else written  # noqa: PTH111 - never raises


def _of_count(name: str) -> str:
    """Return the name in the file of an agent that may be one of a ``count``."""
    return re.sub(r"-[0-9]+$", "", name)


def _pools(table: Table, capacity: int, known: Collection[str]) -> tuple[Pool, ...]:
    names, placed, found = Names(), dict[str, str](), list[Pool]()
    for each in table.tables(PoolKeys):
        name = each.read(PoolKeys.name)
        names.is_new(each, "name", name)
        agents = each.read(PoolKeys.agents)
        for index, agent in enumerate(agents):
            if agent not in known:
                each.problem("agents", f"found {shown(agent)}; accepted: an agent or a service of this file", index)
            elif placed.setdefault(agent, name) != name:
                said = f"{shown(agent)} is in the pool {placed[agent]} already; accepted: one pool an agent"
                each.problem("agents", said, index)
        found.append(Pool(name, agents, each.read(PoolKeys.capacity) or capacity))
        each.finish()
    return tuple(found)
