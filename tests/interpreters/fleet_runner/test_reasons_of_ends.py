"""Document 004's reasons in the journal of real fleets: each is there that an agent's end can give, with its retry.

One fleet has a task for every kind of end. Its agents print what agent programs print, and end as those do.
"""

import sys
from typing import Any, Final, NamedTuple

import pytest

from fleet_sandbox import Sandbox
from lifefold.core.policy.reasons import AbortReason, TransitionReason

AGENT: Final = r"""
import os, pathlib, signal, sys

task = os.environ["LIFEFOLD_TASK"]
said, status = {ends}[task]
pathlib.Path(task + ".txt").write_text("work")
if said:
    print(said, flush=True)
if status < 0:
    os.kill(os.getpid(), -status)
    signal.pause()
sys.exit(status)
"""


class End(NamedTuple):
    """The last words of an agent, its end, the entries of the journal, and the number of its retries."""

    said: str
    status: int
    transition_reason: str
    abort_reason: str
    retries: int = 1
    role: str = "plain"


ENDS: Final = {
    "long-prompt": End("Prompt is too long", 1, "prompt_too_long", "compact_failure"),
    "long-answer": End("reached the 32000 output token maximum", 1, "max_output_tokens", "unknown"),
    "turns": End("Reached max turns (20)", 1, "max_turns", "unknown"),
    "large": End("API Error: (413) request_too_large", 1, "provider_413", "provider_error"),
    "busy": End("API Error: 529 overloaded", 1, "provider_529", "provider_error"),
    "compaction": End("Compaction failed: no summary", 1, "compaction_failed", "compact_failure"),
    "hook": End("Stop hook blocked: lint fails", 1, "stop_hook_blocked", "unknown"),
    "denied": End("Permission denied: /etc", 1, "permission_denied", "permission_denied", 0),
    "login": End("Invalid API key", 1, "permission_denied", "provider_error", 0),
    "credit": End("Credit balance is too low", 1, "aborted", "provider_error", 0),
    "tool": End("tool Bash failed: exit 2", 1, "retry", "bash_error"),
    "status-124": End("", 124, "retry", "timeout"),
    "status-126": End("", 126, "permission_denied", "permission_denied", 0),
    "status-137": End("", 137, "retry", "oom"),
    "killed": End("", -9, "retry", "oom"),
    "interrupted": End("", 130, "retry", "user_interrupt"),
    "terminated": End("", 143, "retry", "shutdown_signal"),
    "other": End("tests fail", 7, "retry", "unknown"),
    "claude-1": End("", 1, "retry", "provider_error", 1, "claude"),
    "claude-2": End("", 2, "aborted", "user_interrupt", 0, "claude"),
    "claude-3": End("", 3, "prompt_too_long", "compact_failure", 1, "claude"),
    "claude-4": End("", 4, "permission_denied", "permission_denied", 0, "claude"),
}
"""An abnormal end for every reason that one can give, by the name of its task."""

CLAUDE: Final = """
[[agents]]
name = "other"
roles = ["claude"]
command = ["{folder}/claude", "{{prompt_file}}"]
session_timeout = "60s"
"""
PATIENT: Final = """backoff_base = "10ms"
max_consecutive_errors = 1000
max_total_errors = 1000
"""


class Log(NamedTuple):
    """A fleet that is over: its sandbox, what its log has, and its tasks by their names."""

    sandbox: Sandbox
    events: list[dict[str, Any]]
    tasks: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Run the fleet to its end, once for all tests here."""
    folder = tmp_path_factory.mktemp("reasons")
    sandbox = Sandbox(folder).prepare(*ENDS, "good", "orphan", agents=2)
    ends = {name: (each.said, each.status) for name, each in ENDS.items()} | {"good": ("", 0), "orphan": ("", -9)}
    agent = AGENT.replace("{ends}", repr(ends))
    (folder / "agent.py").write_text(agent)
    claude = folder / "claude"
    claude.write_text(f"#!{sys.executable}\n{agent}")
    claude.chmod(0o700)
    for name, each in ENDS.items():
        sandbox.demand(name, "max_retries = 1", f'role = "{each.role}"')
    sandbox.demand("good", 'role = "plain"').demand("orphan", 'role = "plain"', 'orphaned = "verify"')
    sandbox.settle('backoff_base = "200ms"', f'roles = ["plain"]\n{PATIENT}')
    tasks = sandbox.fleet.read_text().partition("[[tasks]]")
    sandbox.fleet.write_text(f"{tasks[0]}{CLAUDE.format(folder=folder)}{PATIENT}\n{tasks[1]}{tasks[2]}")
    sandbox.run(code=1)
    return Log(sandbox, sandbox.json("log"), {each["id"]: each for each in sandbox.json("tasks")})


def reasons(log: Log, *events: str, of: str = "") -> set[tuple[str | None, str | None]]:
    """Return the reasons that events of these names have in the log, of one task or session or of all."""
    found = (each for each in log.events if each["metadata"]["event"] in events and of in {"", each["entity_id"]})
    return {(each["transition_reason"], each["abort_reason"]) for each in found}


@pytest.mark.parametrize("name", ENDS)
def test_an_abnormal_end_has_its_reasons_in_the_journal_in_why_and_for_the_retry(log: Log, name: str) -> None:
    """What cannot pass is not tried again; all else is, as often as its task may be."""
    end = ENDS[name]
    assert reasons(log, "Failed", of=name) == {(end.transition_reason, end.abort_reason)}
    assert (end.transition_reason, end.abort_reason) in reasons(log, "SessionExited")
    assert (log.tasks[name]["state"], log.tasks[name]["retries"]) == ("FAILED", end.retries)
    unsaid = {"retry", "aborted", "unknown", "oom"}  # a signal is not evidence of a lack of memory
    known = [each for each in (end.transition_reason, end.abort_reason) if each not in unsaid]
    said = log.sandbox.call("why", name).stdout
    assert f"failed ({', '.join(dict.fromkeys(known))}): " in said if known else "failed: " in said


def test_what_ends_well_has_no_abort_reason(log: Log) -> None:
    """Neither a task that is closed, nor an agent for which no work is left."""
    assert reasons(log, "Completed", "Verified", of="good") == {("completed", None)}
    assert reasons(log, "OperatorStop", "StopWanted") == {("completed", None), (None, None)}


def test_work_that_a_dead_session_has_left_is_recovered(log: Log) -> None:
    """Its session was killed; its task is closed without another one."""
    assert log.tasks["orphan"]["state"] == "CLOSED"
    assert {abort_reason for _, abort_reason in reasons(log, "Orphaned", of="orphan")} == {"oom"}
    assert reasons(log, "Salvaged", of="orphan") == {("orphan_recovered", None)}


def test_all_reasons_but_those_of_families_are_in_the_log_of_one_fleet(log: Log) -> None:
    """Those of families are in the log of a family (``test_aborted_families``)."""
    given: set[str] = {each["transition_reason"] for each in log.events}
    aborted: set[str] = {each["abort_reason"] for each in log.events}
    assert given - {None} == set(TransitionReason) - {TransitionReason.SIBLING_ABORTED}
    assert aborted - {None} == set(AbortReason) - {AbortReason.SIBLING_ABORTED, AbortReason.PARENT_ABORTED}
