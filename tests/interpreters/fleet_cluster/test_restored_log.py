"""A log of a cluster that is lost as a whole, and restored from a backup, with the commands of the documentation."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cluster_sandbox import ClusterSandbox, cluster
from lifefold.interpreters.store.anchor_file import END
from postgres_server import NoServer, PostgresServer
from postgres_server import server as postgres_server
from temporal_server import program

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

PAGE: Final = Path(__file__).parents[3] / "docs" / "operating-a-cluster.md"
NAME: Final = "docs"


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    try:
        with postgres_server() as running:
            yield running
    except NoServer as missing:
        pytest.skip(str(missing))


def commands(heading: str) -> list[str]:
    """Return the commands of a section of the page."""
    section = PAGE.read_text().partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    return re.findall(r"^\$ (.+)$", section, re.MULTILINE)


def run(command: str, sandbox: ClusterSandbox, postgres: PostgresServer) -> str:
    """Run a command of the page, with the addresses, names and programs that are here; return what it prints."""
    url = "postgresql://fleets@db.example.org/agents"
    assert command.count(url) == ("temporal" not in command)
    words = [word.replace(url, postgres.url) for word in shlex.split(command.replace(f":{NAME}.", ":clustered."))]
    programs = {"temporal": [program(), "--address", sandbox.server.address, "--namespace", "default"]}
    first = programs.get(words[0], [str(postgres.programs / words[0])])
    ended = subprocess.run([*first, *words[1:]], cwd=sandbox.folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


async def test_a_restored_log_goes_on_without_the_workflows_of_the_lost_one(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """What was decided after the backup is decided again. The backup is taken while the fleet works."""
    backup, restore = commands("Save a log"), commands("Restore a log")
    assert (len(backup), len(restore)) == (1, 4)
    db = f"{postgres.url}?log={NAME}"
    async with cluster(tmp_path, tasks=6, steps=30, db=db, own_server=True) as sandbox:
        sandbox.begin_brain()
        sandbox.begin_host("one")
        await sandbox.until(lambda: len(sandbox.lives()) >= 3)
        run(backup[0], sandbox, postgres)
        whole = {life.task for life in sandbox.lives() if life.is_whole}
        await sandbox.until(lambda: len({life.task for life in sandbox.lives() if life.is_whole}) > len(whole) + 1)
        sandbox.processes["brain"].terminate()
        await sandbox.until_over()
        sandbox.kill("one")
        await sandbox.until(lambda: not sandbox.working())
        *first, last = restore
        assert "Total: 0" not in run(last, sandbox, postgres)
        for command in first:
            run(command, sandbox, postgres)
        await sandbox.until(lambda: "Total: 0" in run(last, sandbox, postgres))
        sandbox.log.with_name(f"{sandbox.log.name}{END}").rename(tmp_path / "anchor-of-the-lost-log")
        saved = (await sandbox.journal()).closed
        assert saved
        sandbox.begin_brain()
        sandbox.begin_host("two")
        assert await sandbox.until_over() == 0, sandbox.output("brain")
        journal = await sandbox.journal()
        assert journal.settled == sandbox.expected
        assert journal.out_of_order == journal.doubles == []
        again = {life.task for life in sandbox.lives() if life.host == "two"}
        assert saved.isdisjoint(again)
        assert again
