"""What a fleet file may say of a cluster, and that none of it is part of the plan."""

from pathlib import Path

import pytest

from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_file.cluster import ClusterPlan, Pool

FILE = """
[fleet]
name = "demo"
{fleet}
[[agents]]
name = "coder"
count = 2
command = ["sh", "{{prompt}}"]

[[agents]]
name = "trainer"
command = ["sh", "{{prompt}}"]

[[tasks]]
id = "T1"
prompt = "do it"

{cluster}
"""
WHOLE = """
[cluster]
engine = "temporal://temporal.example.org:7233/agents"
log = "postgresql://fleets@db/agents?log=demo"
detection = "1m"
capacity = 4
drain = "5m"
tls = true
tls_ca = "ca.pem"
tls_cert = "/etc/client.pem"
tls_key = "client.key"
api_key_env = "KEY"
api_key_file = "key"

[[cluster.pools]]
name = "large"
agents = ["trainer"]
capacity = 1

[[cluster.pools]]
name = "small"
agents = ["coder"]
"""


def loaded(folder: Path, cluster: str, fleet: str = "") -> Fleet:
    """Return a fleet with this table, and with these lines of ``[fleet]``."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(cluster=cluster, fleet=fleet))
    return load(file)


def test_without_the_table_the_defaults_are_those_of_production(tmp_path: Path) -> None:
    """A host is lost after 30 s; all agents are in one pool."""
    plan = loaded(tmp_path, "").cluster
    assert plan == ClusterPlan()
    assert (plan.engine, plan.detection_ms, plan.pool_of("coder-1")) == ("", 30_000, "default")


def test_every_key_is_read_and_files_are_beside_the_fleet_file(tmp_path: Path) -> None:
    """An absolute path stays as it is."""
    assert loaded(tmp_path, WHOLE).cluster == ClusterPlan(
        engine="temporal://temporal.example.org:7233/agents",
        log="postgresql://fleets@db/agents?log=demo",
        detection_ms=60_000,
        capacity=4,
        drain_ms=300_000,
        tls=True,
        tls_ca=str(tmp_path / "ca.pem"),
        tls_cert="/etc/client.pem",
        tls_key=str(tmp_path / "client.key"),
        api_key_env="KEY",
        api_key_file=str(tmp_path / "key"),
        pools=(Pool("large", ("trainer",), 1), Pool("small", ("coder",), 4)),
    )


def test_a_pool_has_all_agents_of_a_count_and_its_own_capacity(tmp_path: Path) -> None:
    """A pool that the file does not name has the capacity of the table."""
    plan = loaded(tmp_path, WHOLE).cluster
    assert [plan.pool_of(name) for name in ("coder-1", "coder-2", "trainer")] == ["small", "small", "large"]
    assert [plan.capacity_of(name) for name in ("large", "small", "default")] == [1, 4, 4]


def test_one_agent_of_a_count_can_be_in_a_pool_of_its_own(tmp_path: Path) -> None:
    """The numbered name counts before that of the table."""
    pools = '[[cluster.pools]]\nname = "a"\nagents = ["coder"]\n[[cluster.pools]]\nname = "b"\nagents = ["coder-2"]\n'
    plan = loaded(tmp_path, pools).cluster
    assert [plan.pool_of(name) for name in ("coder-1", "coder-2")] == ["a", "b"]


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("ssh://git@git.example.org:22/docs.git", "ssh://git@git.example.org:22/docs.git"),
        ("git@git.example.org:docs.git", "git@git.example.org:docs.git"),
        ("file:///srv/docs.git", "file:///srv/docs.git"),
        ("/srv/docs.git", "/srv/docs.git"),
        ("../docs.git", "{folder}/../docs.git"),
    ],
)
def test_a_remote_is_an_address_or_a_path_from_the_fleet_file(tmp_path: Path, remote: str, address: str) -> None:
    """Git reads it from another folder than that of the file."""
    table = f'[cluster]\nremote = "{remote}"\nbranch = "release/1.x"'
    plan = loaded(tmp_path, table, 'repository = "."').cluster
    assert (plan.remote, plan.branch) == (address.format(folder=tmp_path), "release/1.x")


def test_a_password_in_the_address_of_a_remote_is_refused_and_not_shown(tmp_path: Path) -> None:
    """Git asks a credential helper for it."""
    with pytest.raises(FleetFileError, match="an address without a password") as refused:
        loaded(tmp_path, '[cluster]\nremote = "https://ann:xyzzy@git.example.org/d.git"', 'repository = "."')
    assert "xyzzy" not in str(refused.value)
    assert "https://...@git.example.org/d.git" in str(refused.value)


def test_where_a_fleet_runs_is_no_part_of_its_plan(tmp_path: Path) -> None:
    """A log goes on with the table and without it."""
    assert loaded(tmp_path, WHOLE).meaning == loaded(tmp_path, "").meaning


@pytest.mark.parametrize(
    ("cluster", "key", "said"),
    [
        ('[cluster]\nengine = "127.0.0.1:7233"', "cluster.engine", 'such as "temporal://127.0.0.1:7233"'),
        ('[cluster]\nengine = "temporal://host"', "cluster.engine", "the address of a Temporal server"),
        ('[cluster]\nlog = "fleet.db"', "cluster.log", "a log on a PostgreSQL server"),
        ('[cluster]\nremote = "-x"', "cluster.remote", "the address of a git repository"),
        ('[cluster]\nremote = "/srv/d.git"', "cluster.remote", "with repository in [fleet]"),
        ('[cluster]\nbranch = "a..b"', "cluster.branch", "the name of a branch"),
        ('[cluster]\nbranch = "main"', "cluster.branch", "accepted: with remote"),
        ('[cluster]\ndetection = "500ms"', "cluster.detection", 'at least "1s"'),
        ("[cluster]\ncapacity = 0", "cluster.capacity", "an integer from 1"),
        ('[cluster]\ntls_cert = "a"', "cluster.tls_cert", "tls_key is missing; accepted: both, or neither"),
        ('[cluster]\ntls_key = "a"', "cluster.tls_key", "tls_cert is missing; accepted: both, or neither"),
        ('[cluster]\nserver = "a"', "cluster.server", "unknown key"),
        ('[[cluster.pools]]\nagents = ["coder"]', "cluster.pools[1]", "name is missing"),
        ('[[cluster.pools]]\nname = "a"\nagents = ["x"]', "cluster.pools.a.agents[1]", 'found "x"; accepted: an agent'),
        (
            '[[cluster.pools]]\nname = "a"\nagents = ["coder"]\n[[cluster.pools]]\nname = "b"\nagents = ["coder"]',
            "cluster.pools.b.agents[1]",
            '"coder" is in the pool a already',
        ),
        ('[[cluster.pools]]\nname = "a"\n[[cluster.pools]]\nname = "A"', "cluster.pools.A.name", "is given twice"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_accepted(tmp_path: Path, cluster: str, key: str, said: str) -> None:
    """As for all keys of a fleet file."""
    with pytest.raises(FleetFileError) as raised:
        loaded(tmp_path, cluster)
    (problem,) = raised.value.problems
    assert problem.key == key
    assert said in problem.message
