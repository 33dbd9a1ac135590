"""Ready branches: verified work stays on a branch of its task, for a pull request, and is not merged (``to_branch``).

The merging step of an assignment decides by its plan. Its commit becomes the ready branch, and the task is closed with
the branch's name. New work begins at the target branch, which has none of this work. Therefore such a fleet has no
tasks that need the work of others: no dependencies, and no parts.
"""

from collections.abc import Iterator

from lifefold.core.fleet.system.plan import TaskPlan


def impossible_keys(each: TaskPlan) -> Iterator[tuple[str, str]]:
    """Yield the fields that a task cannot have in a fleet with ready branches, with the reason."""
    if each.depends_on:
        yield "depends_on", "the work that the task depends on would not be in its worktree"
    if each.most_subtasks:
        yield "most_subtasks", "the work of the parts would not be in the worktree of their verification"
