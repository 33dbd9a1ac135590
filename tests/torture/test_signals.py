"""No signal reaches a process whose identity is not proven, also when the kernel reuses pids."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import interposing
import reuse
from reuse import ReuseCampaign
from signals import judge, read

BEGINS = "begin {pid} {pid} 0 0 R 1 {pid} {start} python+-I+/x/{program}\n"
RUNNER = BEGINS.format(pid=10, start=100, program="tortured_runner.py")
SHIM = BEGINS.format(pid=20, start=200, program="shim/__main__.py")


SENDERS = {
    "processes/identity.py": "through a pidfd, after the identity was compared; without pidfds right after that",
    "processes/command.py": "to the group of a child that is not reaped",
    "processes/session_process.py": "to a child that is not reaped: a shim that has not begun",
    "processes/shim/agent.py": "to children that are not reaped, and to the group of one",
    "campaign/campaign.py": "to child processes of a simulation, by their handles",
    "cli/desk_beside.py": "to a child, by its handle",
    "fleet_cluster/brain.py": "to no process: it ends workflows on a server",
}
"""The files that send signals, each with its proof."""

NAMES = {"kill", "killpg", "pidfd_send_signal", "send_signal", "terminate"}
OWN = {"process.kill"}
"""Calls of ``SessionProcess.kill``, which is an order to a shim."""


def sending(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that send signals."""
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        passed = node.args if isinstance(node, ast.Call) else []  # such as a function that is called quietly
        for each in filter(None, (called, *passed)):
            if isinstance(each, ast.Attribute) and each.attr in NAMES and ast.unparse(each) not in OWN:
                yield ast.unparse(each)


def test_only_files_with_a_proof_send_signals() -> None:
    """A new place needs a proof, and a line here."""
    root = Path(__file__).parents[2] / "interpreters"
    found = {file for file in root.rglob("*.py") if [*sending(ast.parse(file.read_text()))]}
    assert {str(file.relative_to(root)) for file in found} == SENDERS.keys()


def judged(tmp_path: Path, *lines: str) -> tuple[dict[str, int], int]:
    """Judge a record of signals; return the proofs, and how many signals have none."""
    (tmp_path / "signals").write_text("".join(lines))
    found = judge(read(tmp_path / "signals"))
    return dict(found.proofs), len(found.unproven)


@pytest.mark.parametrize(
    ("line", "proof"),
    [
        ("pid 10 30 9 0 Z 10 30 300 \n", "runner: child"),
        ("group 20 30 15 0 S 20 30 300 \n", "shim: child"),
        ("pidfd 10 20 18 0 S 1 20 200 \n", "runner: pidfd"),
        ("pid 10 30 9 -1 - 0 0 0 \n", "runner: no process reached"),
        ("pid 10 10 15 0 R 1 10 100 \n", "runner: self"),
    ],
)
def test_a_signal_with_a_proof_is_counted(tmp_path: Path, line: str, proof: str) -> None:
    assert judged(tmp_path, RUNNER, SHIM, line) == ({proof: 1}, 0)


@pytest.mark.parametrize(
    "line",
    [
        "pid 10 30 9 0 S 1 30 300 \n",
        "group 10 30 9 0 - 0 0 0 \n",
        "pidfd 10 20 9 0 S 1 20 201 \n",
        "pidfd-group 20 30 9 0 S 1 30 300 \n",
    ],
    ids=["no child", "a group without its leader", "another start time", "no process of the fleet"],
)
def test_a_signal_without_a_proof_is_found(tmp_path: Path, line: str) -> None:
    assert judged(tmp_path, RUNNER, SHIM, line) == ({}, 1)


def test_the_kills_of_the_test_itself_are_not_judged(tmp_path: Path) -> None:
    """After it has said so, a runner kills for the test."""
    line = "pid 10 30 9 0 S 1 30 300 \n"
    assert judged(tmp_path, RUNNER, "strike 10 0 0 0 - 0 0 0\n", line) == ({}, 0)


@pytest.mark.skipif(not reuse.is_possible(), reason=reuse.MISSING)
@pytest.mark.skipif(interposing.library() is None, reason=interposing.MISSING)
def test_the_processes_that_get_the_pids_of_a_dead_fleet_live() -> None:
    """Every pid that the killed fleet has recorded is another process, and no signal of the next run reaches it."""
    verdict = ReuseCampaign().attempt(0)
    assert verdict.wrong == ()
    assert verdict.counted["taken pids"] >= 2
    assert verdict.counted["runner: child"]


def test_a_leader_that_its_parent_notes_again_is_no_signal_and_is_still_judged(tmp_path: Path) -> None:
    """The parent and the child each note the child before it leads its group, in any order."""
    again = "begin 10 20 0 0 R 10 20 200 \n"
    assert judged(tmp_path, RUNNER, SHIM, again, "pidfd 10 20 9 0 Z 1 20 200 \n", "pid 20 30 9 0 Z 20 30 300 \n") == (
        {"runner: pidfd": 1, "shim: child": 1},
        0,
    )


@pytest.mark.skipif(interposing.library() is None, reason=interposing.MISSING)
@pytest.mark.parametrize("led", ["start_new_session=True", "process_group=0"])
def test_a_leader_is_known_before_its_program_begins(tmp_path: Path, led: str) -> None:
    """The death of its parent can kill it between the two, and its group is ended all the same."""
    record = tmp_path / "signals"
    program = f"import subprocess; subprocess.run(['true'], {led})"
    subprocess.run((sys.executable, "-c", program), env=interposing.environment(signals=record), check=True)
    own, leader, begun = [each for each in read(record) if each.how == "begin"]
    assert (leader.target, leader.start, leader.words) == (begun.target, begun.start, "")
    assert leader.target != own.target
    assert leader.group != leader.target  # noted before it leads: a kill between the two leaves no leader unknown
