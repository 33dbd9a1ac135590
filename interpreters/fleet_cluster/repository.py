"""The repository of a fleet on several machines: the target branch at its remote, and each host's clone of it."""

from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.log_owner import OtherFleetError, must_be_of
from lifefold.interpreters.store import LogStore
from lifefold.interpreters.worktrees.cloned_workplace import ClonedWorkplace
from lifefold.interpreters.worktrees.git import path_name
from lifefold.interpreters.worktrees.survey import survey_remote
from lifefold.interpreters.worktrees.workplace import Workplace


async def target_of(fleet: Fleet) -> str:
    """Return the short name of the branch at the remote into which the work of a new log is merged.

    Raises WorkplaceError.
    """
    return (await survey_remote(fleet.cluster.remote, fleet.cluster.branch, fleet.source))[1]


def must_be_of_cluster(fleet: Fleet, store: LogStore) -> None:
    """Raise ``OtherFleetError`` unless this fleet may continue the log with its remote."""
    must_be_of(fleet, store)
    began, wanted = store.meta("branch") or "", fleet.cluster.branch
    if bool(began) is not (fleet.repository is not None):
        why = "had a repository, and the fleet file has none" if began else "had no repository"
        raise OtherFleetError(f"{store.path}: {why}; use another --db")
    if wanted and began != wanted:
        said = f"work is merged into {began} since the log began, and not into {wanted}; use another --db"
        raise OtherFleetError(f"{store.path}: {said}")


async def clone_of(fleet: Fleet, folder: FleetFolder, store: LogStore, host: str) -> Workplace:
    """Return the workplace of a host for a fleet with a repository. Raises WorkplaceError."""
    run, branch = store.meta("run") or "", store.meta("branch") or ""
    root = folder.hosts / path_name(run) / path_name(host)
    return await ClonedWorkplace.open(fleet.cluster.remote, root, fleet.name, run, branch)
