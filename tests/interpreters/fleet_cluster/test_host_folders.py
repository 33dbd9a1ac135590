"""The folders of tasks on hosts that share no disk, and the fleet file of the demonstration."""

import tomllib
from pathlib import Path

import pytest

pytest.importorskip("temporalio", reason="needs the extra temporal")

from cluster_demo import CLUSTER
from lifefold.interpreters.fleet_cluster.host import HostFolders
from lifefold.interpreters.fleet_file import load
from small_fleet_file import SMALL_FLEET


def test_a_task_of_a_lost_host_has_an_empty_folder_on_the_next_one(tmp_path: Path) -> None:
    """Its check-out was on the lost host. What the folder has stays there."""
    folders = HostFolders.open(tmp_path / "work")
    folder = folders.folder("ann", "t")
    assert folder.is_dir()
    (folder / "kept").touch()
    assert [each.name for each in folders.folder("bob", "t").iterdir()] == ["kept"]


def test_the_demonstration_needs_five_lines_more_than_a_fleet_of_one_machine(tmp_path: Path) -> None:
    """They change where the fleet runs, and nothing of its plan."""
    added = CLUSTER.format(temporal="127.0.0.1:7233", postgres="postgresql://db/agents?log=demo", detection_s=10)
    assert len(added.splitlines()) <= 5
    local, clustered = tmp_path / "local.toml", tmp_path / "clustered.toml"
    local.write_text(SMALL_FLEET)
    clustered.write_text(SMALL_FLEET + added)
    assert tomllib.loads(added).keys() == {"cluster"}
    assert load(clustered).meaning == load(local).meaning
    assert load(clustered).cluster.engine == "temporal://127.0.0.1:7233"
