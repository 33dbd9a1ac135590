"""Merges: the log gets the commit to merge first, and a target branch moved by an agent is not merged into."""

import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

from lifefold.core.fleet.worker import assignment, nothing_done
from lifefold.effects import MergeWork, Notification, NotificationKind, WatchBranch
from lifefold.interpreters.engine import ActivityContext, handles
from lifefold.interpreters.fleet_runner.retry_until import patiently
from lifefold.interpreters.worktrees.branch_guard import MovedError
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError
from lifefold.interpreters.worktrees.workplace import Workplace

Waiting = Callable[[str, str], AbstractContextManager[Callable[[str], None]]]
"""Returns, for an agent and its next step, a context whose function shows why it waits."""


class DisplacedError(Exception):
    """The target branch is still where an agent has moved it."""


class Merging:
    """Performs merges into the target branch; ``rest`` pauses the blocked merge of an agent."""

    def __init__(
        self,
        workplace: Workplace,
        waits: Waiting,
        rest: Callable[[str], Awaitable[None]],
        tell: Callable[[str, str], None],
        blocked: Callable[[Notification, str], None],
    ) -> None:
        """Take the worktrees, the function that shows waits, and the one that shows notices.

        ``blocked`` is called for a blocked merge, perhaps repeatedly, with the same key for the same claim.
        """
        self._blocked: Final = blocked
        self._workplace: Final = workplace
        self._waits: Final = waits
        self._rest: Final = rest
        self._tell: Final = tell

    @handles(MergeWork)
    async def merge(self, activity: MergeWork, context: ActivityContext) -> None:
        """Merge the work, or make its ready branch; wait for obstacles, because the work is done."""
        agent = context.origin.within.key
        rest = partial(self._rest, agent)
        collect, merge = partial(self._collected, activity, context), partial(self._merge, activity, agent)
        try:
            with self._waits(agent, f"merge {activity.task}") as show:
                tell = partial(self._observe, show, context)
                result = await patiently(collect, (InTheWayError, OSError), tell, pause=rest)
                merged = await patiently(partial(merge, result), (InTheWayError, OSError), tell, pause=rest)
        except MovedError as error:
            await context.report(assignment.Displaced(error.found, str(error)))
        except WorkplaceError as error:
            await context.report(assignment.Conflicted(str(error)))
        else:
            if not merged.commit and not activity.result:
                await self._tell_what_is_hidden(activity, agent)
            await context.report(merged)

    def _observe(self, show: Callable[[str], None], context: ActivityContext, why: str) -> None:
        """Show why a merge waits, and report the blocked merge, which notifiers know by its claim."""
        show(why)
        agent, brief = context.origin.within.key, context.origin.entity.record.brief
        said = f"the merge of {brief.task} waits: {why}"
        notification = Notification(NotificationKind.BLOCKED_MERGE, said, brief.task, agent)
        self._blocked(notification, f"{brief.task}/{brief.epoch}")

    async def _tell_what_is_hidden(self, activity: MergeWork, agent: str) -> None:
        """Show the ignored files of a task without a change; its verification may have used them."""
        with contextlib.suppress(WorkplaceError, OSError):
            hidden = await self._workplace.ignored(agent, activity.task, activity.epoch)
            if hidden:
                self._tell(agent, f"{activity.task} is done, and {nothing_done.reason_of(hidden)}")

    async def _collected(self, activity: MergeWork, context: ActivityContext) -> str:
        """Return the commit to merge. It is in the log before the merge, so that a later run merges the same commit."""
        work: assignment.Assignment = context.origin.entity.record
        if work.collected:
            return work.collected
        agent, claim = context.origin.within.key, activity.result or activity.epoch
        found = await self._workplace.park(agent, activity.task, claim, activity.title)
        if work.guarded:
            await context.report(assignment.Collected(found))
        return found

    async def _merge(self, activity: MergeWork, agent: str, result: str) -> assignment.Merged:
        claim, accepted = activity.result or activity.epoch, activity.accepted
        if activity.to_branch:
            branch = await self._workplace.make_ready(activity.task, claim, result)
            return assignment.Merged(result if branch else "", branch)
        merge = self._workplace.merge
        return assignment.Merged(
            await merge(agent, activity.task, claim, activity.title, result=result, accepted=accepted)
        )

    @handles(WatchBranch)
    async def watch_branch(self, activity: WatchBranch, context: ActivityContext) -> None:
        """Wait until the target branch is restored; meanwhile the operator sees why nothing is merged."""
        if context.cleanup_only:
            return
        agent = context.origin.within.key
        look = partial(self._still_displaced, activity.found)
        with self._waits(agent, f"merge {activity.task}") as show:
            tell = partial(self._observe, show, context)
            await patiently(look, (DisplacedError, OSError), tell, pause=partial(self._rest, agent))
        await context.report(assignment.BranchBack())

    async def _still_displaced(self, found: str) -> None:
        """Raise ``DisplacedError`` while the branch is where an agent has moved it."""
        try:
            why = await self._workplace.displaced(found)
        except WorkplaceError:
            return  # the merge finds this error, too, and reports it
        if why:
            raise DisplacedError(why)
