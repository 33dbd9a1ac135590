"""The remote of a fleet on several machines, before a host begins: its branch, and the log that goes on with it."""

from contextlib import closing
from pathlib import Path

import anyio
import pytest

pytest.importorskip("temporalio", reason="needs the extra temporal")

from git_sandbox import git, new_repository
from lifefold.interpreters.desk.changes import NoChangesError, Repository
from lifefold.interpreters.fleet_cluster.repository import must_be_of_cluster, target_of
from lifefold.interpreters.fleet_file import Fleet, load
from lifefold.interpreters.fleet_runner import OtherFleetError
from lifefold.interpreters.store import create_log
from lifefold.interpreters.worktrees.errors import WorkplaceError

FLEET = """
[fleet]
name = "demo"
{repository}
[[agents]]
name = "ann"
command = ["true"]
[[tasks]]
id = "t"
prompt = "x"
[cluster]
{cluster}
"""
REPOSITORY = 'repository = "."'
REMOTE = 'remote = "remote.git"'


def fleet_of(folder: Path, *cluster: str, repository: str = REPOSITORY) -> Fleet:
    """Return a fleet with these lines of ``[cluster]``."""
    file = folder / "fleet.toml"
    file.write_text(FLEET.format(repository=repository, cluster="\n".join(cluster)))
    return load(file)


def test_the_work_of_a_new_log_is_merged_into_the_branch_of_the_remotes_head(tmp_path: Path) -> None:
    """Or into the branch that the fleet file names, if the remote has it."""
    origin = new_repository(tmp_path / "origin")
    git(tmp_path, "clone", "--quiet", "--bare", str(origin), "remote.git")
    git(tmp_path / "remote.git", "branch", "next", "main")
    assert anyio.run(target_of, fleet_of(tmp_path, REMOTE)) == "main"
    assert anyio.run(target_of, fleet_of(tmp_path, REMOTE, 'branch = "next"')) == "next"
    with pytest.raises(WorkplaceError, match=r"remote\.git has no branch last .*fleet\.toml"):
        anyio.run(target_of, fleet_of(tmp_path, REMOTE, 'branch = "last"'))


@pytest.mark.parametrize(
    ("began", "cluster", "repository", "said"),
    [
        ("", (REMOTE,), REPOSITORY, "had no repository; use another --db"),
        ("main", (), "", "had a repository, and the fleet file has none"),
        ("main", (REMOTE, 'branch = "next"'), REPOSITORY, "is merged into main since the log began, and not into next"),
    ],
)
def test_a_log_goes_on_with_its_branch_only(
    tmp_path: Path, began: str, cluster: tuple[str, ...], repository: str, said: str
) -> None:
    """The claims in the log would not be found in another place."""
    fleet = fleet_of(tmp_path, *cluster, repository=repository)
    store = create_log(tmp_path / "log.db", {"fleet": "demo", "branch": began})
    with closing(store), pytest.raises(OtherFleetError, match=said):
        must_be_of_cluster(fleet, store)


def test_a_log_goes_on_with_its_remote_at_another_address(tmp_path: Path) -> None:
    """The log has no address, and a log that began on one machine goes on, too."""
    meta = {"fleet": "demo", "branch": "main", "git_directory": "/elsewhere/.git", "first_commit": "c0ffee"}
    fleets = [fleet_of(tmp_path, REMOTE, 'branch = "main"'), fleet_of(tmp_path, 'remote = "other.git"')]
    with closing(create_log(tmp_path / "log.db", meta)) as store:
        for fleet in fleets:
            must_be_of_cluster(fleet, store)
    assert len({fleet.cluster.remote for fleet in fleets}) == len(fleets)


def test_the_desk_says_where_the_work_of_a_cluster_is(tmp_path: Path) -> None:
    """No fleet file here names the remote."""
    store = create_log(tmp_path / "log.db", {"fleet": "demo", "branch": "main", "run": "1f"})
    said = "at its git remote, in refs/lifefold/demo/1f/, and no fleet file of demo with remote in"
    with closing(store), pytest.raises(NoChangesError, match=said):
        Repository(store)
