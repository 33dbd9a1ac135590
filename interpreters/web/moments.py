"""The facts that pages share: the moment, the agents with their evidence, the costs, and the waiting decisions."""

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Self

from lifefold.core.fleet.system import board
from lifefold.core.fleet.system.rerun import is_over
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles.session import Usage
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import awaited
from lifefold.interpreters.cli.account import usage_json
from lifefold.interpreters.cli.wording import age, asked, by_number, coming, is_missing, next_of, plain_state, spent
from lifefold.interpreters.desk.session_output import secrets_of_log
from lifefold.interpreters.explain import status, task_status
from lifefold.interpreters.explain.pending import Awaited, Waiting
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.explain.words import of_agent
from lifefold.interpreters.fleet_runner.agent_looks import looks
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.hosts import Host, evidence_of
from lifefold.interpreters.fleet_runner.process_evidence import Evidence
from lifefold.interpreters.fleet_runner.redaction import Secrets
from lifefold.interpreters.web.followed_log import FollowedLog
from lifefold.interpreters.web.structs import Action, Agent, At, Cost, Task, Wait
from lifefold.interpreters.web.telling import Moment


class View:
    """One moment of one log, with what is observed beside it: the time, the runner, the folder of the fleet."""

    def __init__(self, log: FollowedLog, seq: int | None = None) -> None:
        """Look at a position; None is now. Raises ``UnknownPosition``."""
        self.log = log
        self.moment: Moment = log.at(seq)
        self.folder = FleetFolder(log.path)
        self.runs = log.runs and self.moment.is_now
        self.now_ms = time.time_ns() // 1_000_000 if self.moment.is_now else self.moment.at_ms

    def told(self) -> Self:
        """Return the view itself, if the past shortly before it is known. Raises ``StillReading``."""
        self.log.must_be_told(self.moment.seq)
        return self

    def whole(self) -> Self:
        """Return the view itself, if the whole past of its log is known. Raises ``StillReading``."""
        self.log.must_be_told()
        return self

    @property
    def there(self) -> Mapping[str, Aggregate]:
        """The aggregates; empty before the fleet begins."""
        return self.moment.aggregates

    @cached_property
    def secrets(self) -> Secrets:
        """The values that no page shows, as no command does."""
        return secrets_of_log(self.log.store)

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts of a fleet on several machines, as each has said it last; none in the past."""
        return self.log.hosts if self.moment.is_now else ()

    @property
    def has_board(self) -> bool:
        """Whether the fleet has begun."""
        return board.NAME in self.there

    def at(self) -> At:
        """Return which moment this is."""
        moment, log = self.moment, self.log
        runner = "unknown"
        if moment.is_now:
            runner = "at work" if self.runs else "over" if self.is_over else "gone"
        return At(
            log.key,
            log.fleet,
            str(log.path),
            moment.seq,
            log.now.seq,
            moment.at_ms,
            moment.is_now,
            runner,
            log.trouble,
            log.is_told,
            log.told_from,
        )

    @property
    def is_over(self) -> bool:
        """Whether the fleet is over."""
        return self.has_board and is_over(self.there)

    @cached_property
    def tasks(self) -> tuple[TaskStatus, ...]:
        """The status of every task, with the number of its claims."""
        return self.moment.account.attempted(task_status.tasks(self.there)) if self.has_board else ()

    def task(self, of: TaskStatus) -> Task:
        """Return a task with its costs."""
        goes_on = awaited.goes_on(self.there)
        after = coming(of.timer if goes_on else None, self.now_ms)
        has_failed = self.moment.is_now and goes_on and of.state == State.FAILED and not of.is_retried
        retry = Action("Retry", {"command": "retry", "names": [of.id]}, "it is tried once more")
        said = cost(self.moment.account.spending.of_task(of.id))
        return Task(of, of.in_words, said, "" if after == "-" else after, (retry,) if has_failed else ())

    def agents(self) -> tuple[Agent, ...]:
        """Return all agents and services by name."""
        found = status.at_attempts(status.agents(self.there), self.tasks) if self.has_board else ()
        return tuple(map(self.agent, sorted(found, key=lambda each: by_number(each.name))))

    def agent(self, of: AgentStatus) -> Agent:
        """Return an agent with its evidence, which the past does not have."""
        evidence = evidence_of(self.folder, of, self.hosts) if self.moment.is_now else None
        gone = self.moment.is_now and is_missing(of, evidence, runs=self.runs)
        account = self.moment.account
        after = next_of(of, self.now_ms, is_gone=gone)
        return Agent(
            of,
            asked(of),
            plain_state(of, evidence, runs=self.runs)
            if self.moment.is_now
            else of_agent(of.state, of.task, of.desired_state),
            _evident(of, evidence) if self.moment.is_now else "the past has no evidence",
            looks(of, evidence, self.now_ms, runs=self.runs) if self.moment.is_now else None,
            evidence,
            gone,
            "" if after == "-" else after,
            account.stopped_by.get(of.name, ""),
            cost(account.spending.of_agent(of.name)),
        )

    @cached_property
    def waits(self) -> tuple[Wait, ...]:
        """What waits for an operator, as the status of the command line has it."""
        return tuple(self._wait(each) for each in awaited.waiting(self.there)) if self.has_board else ()

    def _wait(self, each: Waiting) -> Wait:
        (line,) = awaited.parted([each], self.moment.account.paused_by)
        found = tuple(actions(each)) if self.moment.is_now else ()
        return Wait(str(each.about), each.names, line.whole(), line.said(), each.since_ms, each.until_ms, found)


def _evident(of: AgentStatus, evidence: Evidence | None) -> str:
    """Return what was observed of the process of an agent, in words."""
    if evidence is None:
        return "no process was found" if of.processes else "no process"
    if not evidence.alive and not of.processes:
        return "no process"
    if not evidence.alive:
        return f"process {evidence.pid} is gone"
    silent = "" if evidence.silent_ms is None else f", last sign of life {age(evidence.silent_ms)} ago"
    where = f" on {evidence.host}" if evidence.host else ""
    return f"process {evidence.pid} is alive{where}{silent}"


def cost(usage: Usage) -> Cost:
    """Return costs for programs and for people."""
    return Cost(**usage_json(usage), words=spent(usage))


def actions(each: Waiting) -> Iterator[Action]:
    """Yield the commands that let something go on."""
    names = list(each.names)
    match each.about:
        case Awaited.QUESTION:
            yield from _of_question(each.command, names)
        case Awaited.TASK:
            yield Action("Approve", {"command": "approve", "names": names}, "its work is merged")
            yield Action("Reject", {"command": "reject", "names": names}, asks="reason", is_optional=False)
        case Awaited.PLAN:
            yield Action("Approve the plan", {"command": "approve"}, "agents get its tasks")
            yield Action("Reject the plan", {"command": "reject"}, asks="reason", is_optional=False)
        case Awaited.AGENT:
            yield Action("Resume", {"command": "resume", "names": names})
        case Awaited.TASKS:
            yield Action("Finish", {"command": "finish"}, "no more tasks come")
        case Awaited.ACCOUNT | Awaited.TRUST | Awaited.BUDGET:
            yield from of_words(shlex.split(each.command), "")


def _of_question(verb: str, names: list[str]) -> Iterator[Action]:
    if verb == "answer":
        yield Action("Answer", {"command": "answer", "name": names[0]}, asks="text", is_optional=False)
    else:
        yield Action("Approve", {"command": "approve", "names": names})
    yield Action("Reject", {"command": "reject", "names": names}, asks="reason")


def of_words(words: Sequence[str], about: str) -> Iterator[Action]:
    """Yield the actions of a command of the command line about an account, about trust, or about a budget."""
    match words:
        case ["resume", "--account", name]:
            yield Action(f"Try account {name}", {"command": "try-account", "name": name}, about)
        case ["trust", name, "--promote"]:
            command = {"command": "trust", "name": name, "move": "promote"}
            yield Action(f"Promote {name}", command, about, "reason", is_optional=False)
        case ["budget", ("--agent" | "--task") as whose, name, *adds]:
            yield from _raises(whose.removeprefix("--"), name, adds, about)
        case ["budget", *adds]:
            yield from _raises("fleet", "", adds, about)
        case _:
            pass


def _raises(whose: str, name: str, adds: Sequence[str], about: str) -> Iterator[Action]:
    """Yield the commands that raise a budget, each with the amount that was named."""
    for option, amount in pairwise((*adds, "")):
        if option.startswith("--add-"):
            resource = option.removeprefix("--add-")
            command = {"command": "budget", "whose": whose, "name": name}
            yield Action(f"Add {resource}", command, about, resource, is_optional=False, proposed=amount.strip("."))
