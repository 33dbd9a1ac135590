"""The processes of the manifests for Kubernetes, with their arguments and variables, on servers of this machine."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
import psycopg
import pytest

import manifests
from cluster_journal import read_journal
from cluster_sandbox import LIFEFOLD, LONG_S
from postgres_server import NoServer, PostgresServer
from postgres_server import server as postgres_server
from temporal_server import NoTemporal, TemporalServer, temporal_server

pytestmark = pytest.mark.cluster

GRANTS: Final = (manifests.DEPLOYMENT / "roles.sql").read_bytes()


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    try:
        with postgres_server() as running:
            with psycopg.connect(running.url, autocommit=True) as session:
                session.execute("CREATE DATABASE agents")
            with psycopg.connect(database_of(running), autocommit=True) as session:
                session.execute(GRANTS)
            yield running
    except NoServer as missing:
        pytest.skip(str(missing))


@pytest.fixture
def temporal() -> Iterator[TemporalServer]:
    try:
        with temporal_server() as running:
            anyio.run(running.client)
            yield running
    except NoTemporal as missing:
        pytest.skip(str(missing))


def database_of(postgres: PostgresServer, role: str = "lifefold") -> str:
    return f"postgresql://{role}@127.0.0.1:{postgres.port}/agents"


def begin(workload: manifests.Object, pod: Path, fleet: str) -> "subprocess.Popen[bytes]":
    """Start the process of a pod in a folder that stands for its volume. The fleet file is read-only, as in a pod."""
    pod.mkdir()
    file = pod / "fleet.toml"
    file.write_text(fleet)
    file.chmod(0o400)
    words = [str(file) if each == "/srv/fleet/fleet.toml" else each for each in arguments(workload, pod)]
    known = manifests.variables(workload, pod=pod.name) | {"HOME": str(pod), "PATH": os.environ["PATH"]}
    with (pod / "output").open("wb") as out:
        return subprocess.Popen([str(LIFEFOLD), *words], stdout=out, stderr=out, cwd=pod, env=known)


def arguments(workload: manifests.Object, pod: Path) -> list[str]:
    return manifests.arguments(workload, pod=pod.name)


def test_the_pods_of_the_manifests_close_all_tasks(
    tmp_path: Path, postgres: PostgresServer, temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brain and a host have the roles of the page. The role of the host cannot write entries."""
    of = manifests.fleet_of(manifests.fleet_text()).cluster
    fleet = "\n".join(line for line in manifests.fleet_text().splitlines() if not line.startswith("tls_"))
    fleet = fleet.replace(of.engine, f"temporal://{temporal.address}")
    fleet = fleet.replace(of.log, f"postgresql://127.0.0.1:{postgres.port}/agents?log=docs")
    pods = tmp_path / "lifefold-brain", tmp_path / "lifefold-host-0"
    with begin(manifests.brain(), pods[0], fleet) as brain, begin(manifests.hosts(), pods[1], fleet) as host:
        ended = code_of(brain, pods[0])
        host.terminate()
        left = code_of(host, pods[1])
    assert ended == (0, "all tasks are closed")
    assert left == (0, "the host lifefold-host-0 has left")
    monkeypatch.setenv("PGUSER", manifests.variables(manifests.brain(), pod="lifefold-brain")["PGUSER"])
    journal = anyio.run(read_journal, pods[0] / ".lifefold" / "docs.db")
    assert journal.settled == {"install": "closed", "upgrade": "closed"}
    answers = pods[1].rglob("answer.txt")
    assert [int(each.read_text()) > 0 for each in answers] == [True, True]
    change(postgres, b"DELETE FROM docs.members")
    change(postgres, b"SELECT said FROM docs.writer_word")
    for table in (b"entries", b"writer_word"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            change(postgres, b"DELETE FROM docs." + table)


def code_of(process: "subprocess.Popen[bytes]", pod: Path) -> tuple[int, str]:
    """Wait for the end of a process; return its exit code and the last line that it has printed."""
    try:
        code = process.wait(LONG_S)
    finally:
        process.kill()
    lines = (pod / "output").read_text().splitlines()
    return code, lines[-1] if lines else ""


def change(postgres: PostgresServer, statement: bytes) -> None:
    """Change the log as a host."""
    role = manifests.variables(manifests.hosts(), pod="lifefold-host-0")["PGUSER"]
    with psycopg.connect(database_of(postgres, role), autocommit=True) as session:
        session.execute(statement)
