"""What an agent may do without a question, by the ``permissions`` of its fleet file."""

import pytest

from lifefold.core.policy.tool_leave import CHANGING, LOOKING, RUNNING, Leave, leave_of

KINDS = sorted({*LOOKING, *CHANGING, RUNNING, "fetch", "switch_mode", "other", ""})


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_without_permissions_asks_for_everything(kind: str) -> None:
    assert leave_of("", kind, is_inside=True) is Leave.ASKED


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_with_all_permissions_asks_for_nothing(kind: str) -> None:
    assert leave_of("all", kind, is_inside=False) is Leave.ALLOWED


@pytest.mark.parametrize("is_inside", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_that_may_read_changes_no_file_and_runs_no_command(kind: str, *, is_inside: bool) -> None:
    found = leave_of("read", kind, is_inside=is_inside)
    assert (found is Leave.ALLOWED) == (kind in LOOKING)
    assert (found is Leave.REFUSED) == (kind in CHANGING or kind == RUNNING)


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_that_may_edit_changes_files_of_its_worktree_and_asks_for_others(kind: str) -> None:
    expected = Leave.ALLOWED if kind in CHANGING | LOOKING else Leave.ASKED
    assert leave_of("edit", kind, is_inside=True) is expected
    if kind not in LOOKING:
        assert leave_of("edit", kind, is_inside=False) is Leave.ASKED
