"""The manifests of docs/deployment, read as what they are: objects of Kubernetes, and a project of Compose."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from lifefold.interpreters.fleet_file import Fleet, load

DEPLOYMENT: Final = Path(__file__).parents[2] / "docs" / "deployment"
COMPOSE: Final = DEPLOYMENT / "compose" / "compose.yaml"

Object = dict[str, Any]
"""An object of a manifest, as YAML has it."""


def objects() -> list[Object]:
    """Return all objects of Kubernetes, in the order of their files."""
    files = sorted((DEPLOYMENT / "kubernetes").glob("*.yaml"))
    return [each for file in files for each in yaml.safe_load_all(file.read_text())]


def named(kind: str, name: str) -> Object:
    """Return an object by its kind and name. Raises ``StopIteration`` if there is none."""
    return next(each for each in objects() if (each["kind"], each["metadata"]["name"]) == (kind, name))


def brain() -> Object:
    """Return the job of the brain."""
    return named("Job", "lifefold-brain")


def hosts() -> Object:
    """Return the set of the hosts."""
    return named("StatefulSet", "lifefold-host")


def container(workload: Object) -> Object:
    """Return the only container of a workload."""
    (only,) = workload["spec"]["template"]["spec"]["containers"]
    found: Object = only
    return found


def variables(workload: Object, *, pod: str) -> dict[str, str]:
    """Return the environment of the container of a workload, in a pod of this name.

    An optional secret is left out, as if it were not there. Raises ``KeyError`` for a key that no secret has.
    """
    of, found = container(workload), dict[str, str]()
    for each in of["envFrom"]:
        found |= named("Secret", each["secretRef"]["name"])["stringData"]
    for each in of["env"]:
        match each:
            case {"name": name, "value": value}:
                found[name] = value
            case {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}:
                found[name] = pod
            case {"valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": True}}}:
                assert key in named("Secret", secret)["stringData"]
            case _:
                raise AssertionError(each)
    return found


def arguments(workload: Object, *, pod: str) -> list[str]:
    """Return the words after ``lifefold`` in a pod of this name; references to variables are replaced."""
    known = variables(workload, pod=pod)
    words: list[str] = []
    for word in container(workload)["args"]:
        for name, value in known.items():
            word = word.replace(f"$({name})", value)  # noqa: PLW2901 - one reference after the other
        assert "$(" not in word
        words.append(word)
    return words


def fleet_text() -> str:
    """Return the fleet file of Kubernetes."""
    text: str = named("ConfigMap", "lifefold-fleet")["data"]["fleet.toml"]
    return text


def fleet_of(text: str) -> Fleet:
    """Return the fleet of a text. Raises ``FleetFileError``."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "fleet.toml")
        file.write_text(text)
        return load(file)


def compose() -> Object:
    """Return the project of Compose, with its anchors resolved and its variables as they are written."""
    project: Object = yaml.safe_load(COMPOSE.read_text())
    return project


def secrets_of(workload: Object) -> Iterator[str]:
    """Yield the names of the secrets that a workload needs; optional ones are no need."""
    yield from (each["secretRef"]["name"] for each in container(workload)["envFrom"])
    for volume in workload["spec"]["template"]["spec"]["volumes"]:
        if "secret" in volume:
            yield volume["secret"]["secretName"]
