"""All about one task, or about one agent, on a page: values for the command line, ``--json`` and the web."""

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import accounts
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.worker import desired_state, mailbox
from lifefold.core.kernel import replace
from lifefold.core.lifecycles.session import Usage
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.desk.changes import LOOK_S, Changes, NoChangesError, Repository, Then
from lifefold.interpreters.desk.elsewhere import host_of, known
from lifefold.interpreters.desk.history import ClaimRecord, SessionRecord, open_claims
from lifefold.interpreters.desk.output_lines import OutputLine
from lifefold.interpreters.desk.seen import Seen
from lifefold.interpreters.desk.session_output import SessionOutput, secrets_of_log
from lifefold.interpreters.desk.verifications import Verification, begun_by, verifications
from lifefold.interpreters.explain import questions, status, task_status, why
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.fleet_runner.agent_looks import Looks, looks
from lifefold.interpreters.fleet_runner.hosts import Host, evidence_of, hosts_of
from lifefold.interpreters.fleet_runner.process_evidence import Evidence
from lifefold.interpreters.fleet_runner.redaction import Secrets
from lifefold.interpreters.worktrees.git import path_name

LAST_LINES: Final = 8
"""The lines of a session's output on a page."""


class TaskPage(msgspec.Struct, frozen=True):
    """A task. ``changes`` is the compared work; without any, ``no_changes`` says why. Times are Unix milliseconds.

    ``duration_ms`` is the time of its sessions, up to now for one that runs. ``needed_by`` are the tasks that depend on
    it. ``options`` are the commands that help it on, and ``onward`` says what would.
    """

    task: TaskStatus
    sentence: str
    prompt: str
    verify: tuple[tuple[str, ...], ...]
    needed_by: tuple[str, ...]
    claims: tuple[ClaimRecord, ...]
    sessions: tuple[SessionRecord, ...]
    conversation: str
    cost: Usage
    duration_ms: int
    changes: Changes | None
    no_changes: str
    worktree: str
    output: tuple[OutputLine, ...]
    output_path: str
    verifications: tuple[Verification, ...]
    onward: str
    options: tuple[why.Option, ...]


class AgentPage(msgspec.Struct, frozen=True):
    """An agent or a service: ``agent`` has the desired and the believed state, ``evidence`` what its process shows.

    ``account`` is its account with a model service and the account's state, both empty without one. ``done`` are the
    closed tasks whose last author it is. ``messages`` are the undelivered operator messages, oldest first.
    """

    agent: AgentStatus
    evidence: Evidence | None
    looks: Looks | None
    program: str
    account: str
    account_state: str
    cost: Usage
    done: tuple[str, ...]
    sessions: tuple[SessionRecord, ...]
    messages: tuple[str, ...]
    questions: tuple[str, ...]
    worktree: str
    output: tuple[OutputLine, ...]
    output_path: str
    options: tuple[why.Option, ...]


async def task_page(seen: Seen, name: str) -> TaskPage:
    """Return the page of a task that the board has; ``seen`` has observed the decisions about it."""
    there, now_ms = seen.ledger.aggregates, seen.now_ms
    record: FleetTask = there[board.NAME].record(f"task:{name}")
    every = task_status.tasks(there)
    explained = why.explain(why.look(there, name, now_ms), seen.story)
    sessions = seen.history.sessions(task=name)
    secrets = secrets_of_log(seen.store)
    changes, no_changes = await _changes(seen, record)
    output, path = _last(seen, sessions, secrets, await hosts_of(seen.store))
    checked = await verifications(seen.folder, name, record.epoch, secrets)
    return TaskPage(
        task=next(each for each in every if each.id == name),
        sentence=explained.sentence,
        prompt=secrets.hidden(record.prompt),
        verify=record.verify,
        needed_by=tuple(each.id for each in every if name in each.depends_on),
        claims=seen.history.claims(name),
        sessions=sessions,
        conversation="" if record.conversation is None else record.conversation.id,
        cost=seen.sums.spending.of_task(name),
        duration_ms=sum((each.ended_ms or now_ms) - each.began_ms for each in sessions),
        changes=changes,
        no_changes=no_changes,
        worktree=(changes.worktree if changes else "") or _worktree(seen, record.owner),
        output=output,
        output_path=path,
        verifications=checked if seen.is_now else begun_by(checked, seen.now_ms),
        onward=explained.onward,
        options=(*explained.options, *_to_look(name, sessions, changes)) if seen.is_now else (),
    )


async def agent_page(seen: Seen, name: str) -> AgentPage:
    """Return the page of an agent or a service that the log has; ``seen`` has observed its decisions."""
    there = seen.ledger.aggregates
    of = there.get(f"{worker.KIND}/{name}") or there[f"{service.KIND}/{name}"]
    found = next(each for each in status.agents(there) if each.name == name)
    agent = replace(found, attempt=seen.sums.attempts.get(found.task, 0))
    hosts = await hosts_of(seen.store)
    evidence = evidence_of(seen.folder, agent, hosts) if seen.is_now else None
    secrets, sessions = secrets_of_log(seen.store), seen.history.sessions(agent=name)
    output, path = _last(seen, sessions, secrets, hosts)
    account = accounts.account_of(there[board.NAME], name)
    is_worker = of.kind == worker.KIND
    asked = tuple(questions.of_agent(of)) if is_worker else ()
    messages: tuple[str, ...] = of.record(mailbox.machine.name).messages if is_worker else ()
    program = SessionOutput(seen.folder, sessions[-1], secrets).kind if sessions else ""
    return AgentPage(
        agent=agent,
        evidence=evidence,
        looks=_looks(seen, agent, evidence),
        program=program,
        account="" if account is None else account.ref.partition(":")[2],
        account_state="" if account is None else str(account.state),
        cost=seen.sums.spending.of_agent(name),
        done=tuple(each.id for each in task_status.tasks(there) if _author(seen, each) == name),
        sessions=sessions,
        messages=tuple(map(secrets.hidden, messages)),
        questions=tuple(each.sentence() for each in asked),
        worktree=_worktree(seen, name),
        output=output,
        output_path=path,
        options=tuple(_of_agent(seen, agent, asked, has_output=bool(sessions))) if seen.is_now else (),
    )


def _author(seen: Seen, of: TaskStatus) -> str:
    """Return the agent that has done a closed task; one that only verified or merged it does not count."""
    return seen.sums.authors.get(of.id, "") if of.state == State.CLOSED else ""


def _looks(seen: Seen, agent: AgentStatus, evidence: Evidence | None) -> Looks | None:
    """Return how an agent looks; None in the past, which has no evidence."""
    if not seen.is_now:
        return None
    return looks(agent, evidence if agent.processes else None, seen.now_ms, runs=seen.store.is_written())


async def _changes(seen: Seen, record: FleetTask) -> tuple[Changes | None, str]:
    then = None if seen.is_now else Then(seen.now_ms, open_claims(seen.history.claims(record.id)))
    try:
        return await Repository(seen.store, LOOK_S).changes(record, then), ""
    except NoChangesError as error:
        return None, str(error)


def _last(
    seen: Seen, sessions: Sequence[SessionRecord], secrets: Secrets, hosts: Sequence[Host]
) -> tuple[tuple[OutputLine, ...], str]:
    """Return the last lines of the last session's output, and its file; without it what is known otherwise."""
    if not sessions or not seen.is_now:  # a file of output is that of today
        return (), ""
    output = SessionOutput(seen.folder, sessions[-1], secrets)
    if not output.is_there:
        host = host_of(sessions[-1], hosts)
        return tuple(known(sessions[-1], host)) if host is not None or sessions[-1].ended_ms else (), ""
    return tuple(deque(output.read(), maxlen=LAST_LINES)), str(output.path)


def _worktree(seen: Seen, agent: str) -> str:
    folder = seen.folder.worktrees / path_name(agent)
    return str(folder) if agent and seen.is_now and folder.is_dir() else ""


def _to_look(name: str, sessions: Sequence[SessionRecord], changes: Changes | None) -> tuple[why.Option, ...]:
    """Return the commands that show more of a task."""
    output = (why.Option("output", name, "all that its last session has printed"),) if sessions else ()
    diff = (why.Option("diff", name, "the changes of its work"),) if changes is not None else ()
    return (*output, *diff, why.Option("why", name, "how it came there"))


def _of_agent(
    seen: Seen, agent: AgentStatus, asked: Sequence[questions.Asked], *, has_output: bool
) -> Sequence[why.Option]:
    """Return the commands that an operator can give about an agent."""
    name = agent.name
    found = [option for each in asked for option in why.of_question(each)]
    is_gone = agent.state in {"Stopped", "stopped"} or board.finished(seen.ledger.aggregates[board.NAME])
    if not is_gone and agent.desired_state == desired_state.State.PAUSE:
        found.append(why.Option("resume", name, "it goes on"))
    elif not is_gone:
        found.append(why.Option("pause", name, "its session is interrupted, and it begins nothing until it is resumed"))
    if not is_gone:
        found.append(why.Option("send", name, "its next prompt has the text"))
        found.append(why.Option("stop", name, "it ends for good"))
    if has_output:
        found.append(why.Option("output", name, "all that its last session has printed"))
    return found
