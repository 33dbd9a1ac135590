"""Repositories for the tests of worktrees, sandboxes for those of whole fleets, and a PostgreSQL server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_sandbox import Sandbox
from git_faults import Faults
from git_sandbox import GitScene, new_repository
from postgres_server import NoServer, PostgresServer, server


@pytest.fixture
def no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Git has no configured identity here, unless a test sets one."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_repository(tmp_path_factory.mktemp("template") / "repository")


@pytest.fixture
def scene(tmp_path: Path, template: Path, no_configuration: None) -> GitScene:
    del no_configuration
    return GitScene(tmp_path, template)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """A place for runs; its processes are killed in the end."""
    made = Sandbox(tmp_path)
    yield made
    made.kill_all()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for tests with the marker ``cluster``; each log there has a name of its own."""
    try:
        with server() as running:
            yield running
    except NoServer as why:
        pytest.skip(str(why))
