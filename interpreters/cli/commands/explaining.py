"""The command ``why``: prints the explanation of a task or service that ``interpreters.explain.why`` derives.

Three facts are not in the log, and are observed here: a runner at work, a living process of a session, and obstacles of
merges.
"""

import json
import shlex
import time
from argparse import Namespace
from collections.abc import Collection, Container, Iterator, Sequence
from typing import Final

import anyio
import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.system import board, worker
from lifefold.core.kernel import RunnerRecovered, replace
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import awaited, excerpts, logs
from lifefold.interpreters.cli.earlier import found_earlier
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.names import UnknownName, must_be_there
from lifefold.interpreters.cli.wording import age, clock_time, is_missing, this_command
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.explain import status, task_status, unread, words
from lifefold.interpreters.explain import why as projection
from lifefold.interpreters.explain.appearance import appearance
from lifefold.interpreters.explain.notifications import troubles
from lifefold.interpreters.explain.why.phrases import enumerated
from lifefold.interpreters.fleet_runner import quarantines
from lifefold.interpreters.fleet_runner.agent_looks import Looks, looks, marked
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.hosts import evidence_of, hosts_of, waits_of
from lifefold.interpreters.fleet_runner.unmerged_work import UnmergedWork
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.store import LogStore

MOST_CAUSES: Final = 20
"""The most tasks shown that a task waits for, directly or not."""

BY_CHARACTERS: Final = 14
MOST_BY_CHARACTERS: Final = 24
"""The least and the greatest width of the column of actors."""


def why(arguments: Namespace) -> None:
    """Explain a task, or a service."""
    with logs.peek(arguments.db, arguments.at) as store:
        ledger, account = logs.fold_with_account(store)
        if f"{service.KIND}/{arguments.task}" in ledger.aggregates and f"task:{arguments.task}" not in _tasks(ledger):
            in_the_way = tuple(_in_the_way(store, ledger, {arguments.task}))
            _explain_service(store, ledger, arguments, in_the_way)
            return
        _must_be_there(store, ledger, arguments.task)
        story = projection.Story(arguments.task)
        for decision in excerpts.of_task(store, ledger, arguments.task):
            story = _told(story, decision)
        said = projection.explain(projection.look(ledger.aggregates, story.task, logs.now_ms(store)), story)
        runs = store.is_written()
        doubts = tuple(_doubts(store, ledger, said, runs=runs)) if store.past is None else (_then(store),)
        in_the_way = tuple(_in_the_way(store, ledger, {arguments.task, *_owners(ledger, said)}))
        agent = _owner(store, ledger, said, runs=runs) if store.past is None else None
        unmerged, output = UnmergedWork(store), account.output_of(arguments.task, FleetFolder(store.path))
        said = replace(said, onward=logs.typed(said.onward, store))
        untold = tuple(f"{line[0].upper()}{line[1:]}." for line in _undelivered(ledger, arguments.task))
    open_tasks = () if said.state == State.CLOSED else (said.task,)
    known = arguments.known if arguments.at is None else ()  # a command acts on the present
    said = replace(said, options=tuple(option for option in said.options if option.command in known))
    if arguments.json:
        runner = "running" if runs else "not running"
        doubts += unmerged.doubts(open_tasks)
        places = [place for task in open_tasks for place in unmerged.of(task)]
        found = {"runner": runner, "doubts": doubts, "in_the_way": in_the_way, "unmerged": places, "output": output}
        found["untold"] = untold
        found["agent"] = msgspec.to_builtins(agent)
        print(json.dumps({**msgspec.to_builtins(said), **found}, indent=2))
        return
    lies = (f"{line[0].upper()}{line[1:]}." for line in unmerged.lines(open_tasks))
    outputs = (f"The output of its last session is in {output}.",) if output and open_tasks and not said.owner else ()
    looks_like = () if agent is None or agent.is_missing else (agent.in_words(),)
    for line in lines(said, (*looks_like, *in_the_way, *doubts, *lies, *outputs, *untold), arguments.db):
        print(plain(line.encode()))


def _then(store: LogStore) -> str:
    """Return of which moment an explanation of the past is."""
    return f"This is the fleet {logs.then(store)}."


_NO_RUNNER: Final = f"No runner is at work, so nothing happens by itself; to go on: `lifefold run {logs.FLEET_FILE}`."


def _undelivered(ledger: Ledger, task: str) -> Iterator[str]:
    yield from troubles(ledger.aggregates, task)
    yield from unread.sentences(ledger.aggregates, task)


def _tasks(ledger: Ledger) -> Container[str]:
    return ledger.aggregates[board.NAME].entities


def _explain_service(store: LogStore, ledger: Ledger, arguments: Namespace, in_the_way: Sequence[str]) -> None:
    runs = store.is_written()
    now_ms = logs.now_ms(store)
    said = projection.explain_service(ledger.aggregates[f"{service.KIND}/{arguments.task}"], now_ms)
    if arguments.json:
        runner = "running" if runs else "not running"
        print(json.dumps({**msgspec.to_builtins(said), "runner": runner, "in_the_way": in_the_way}, indent=2))
        return
    print(plain(said.sentence.encode()))
    for line in in_the_way:
        print(line)
    if store.past is not None:
        print(_then(store))
    elif not runs:
        print(logs.typed(_NO_RUNNER, store))
    if said.waits:
        print(plain(f"What waits to be run: {said.waits}".encode()))
    print(plain(f"What moves it on: {logs.typed(said.onward, store)}".encode()))


def _told(story: projection.Story, decision: Decision) -> projection.Story:
    name, envelope = decision.entry.stream, decision.envelope
    if name == board.NAME and isinstance(envelope.event, RunnerRecovered):
        return projection.resumed(story, envelope.at_ms)
    for transition in decision.reaction.transitions:
        story = projection.tell(story, name, transition)
    return story


def _must_be_there(store: LogStore, ledger: Ledger, task: str) -> None:
    """Raise ``BadInput`` for an unknown task, with similar names, or with the earlier log that has it.

    For an agent, it names the commands that show it.
    """
    if f"{worker.KIND}/{task}" in ledger.aggregates and f"task:{task}" not in _tasks(ledger):
        what, more = f"{task} is an agent, not a task", f"lifefold log --agent {task}{logs.LOG} its transitions"
        raise BadInput(logs.typed(f"{what}; lifefold status{logs.LOG} shows its state, and {more}", store))
    names = [each.id for each in task_status.tasks(ledger.aggregates)] if ledger.aggregates else []
    try:
        must_be_there("task", [task], names)
    except UnknownName as unknown:
        raise found_earlier(store, unknown) from None


def _doubts(store: LogStore, ledger: Ledger, said: projection.Explanation, *, runs: bool) -> Iterator[str]:
    """Yield what the log says and the processes contradict."""
    concerned = {each.task for each in said.causes}
    moves = any(not each.settled and each.id in concerned for each in task_status.tasks(ledger.aggregates))
    if moves and not runs and not board.finished(ledger.aggregates[board.NAME]):
        yield logs.typed(_NO_RUNNER, store)
    then = logs.next_log(store.path)
    if then.exists() and board.finished(ledger.aggregates[board.NAME]):
        yield f"The fleet is over in this log; {then} continues it."
    name = f"{worker.KIND}/{said.owner}"
    if name in ledger.aggregates:
        agent = status.agent_status(ledger.aggregates[name])
        evidence = evidence_of(FleetFolder(store.path), agent, anyio.run(hosts_of, store))
        if is_missing(agent, evidence, runs=runs):
            yield f"The log has a session of {said.owner} at work, but its process is not there."


class _Owner(msgspec.Struct):
    """How the owner of a task looks, and what it is in the words of documents 001 and 004."""

    name: str
    lifecycle: str
    status: str
    looks: Looks | None
    silent_ms: int | None
    is_missing: bool
    """Whether the log has a session whose process is not there; another line says so, and this one is wrong then."""

    def in_words(self) -> str:
        """Return it as a sentence."""
        silent = "" if self.silent_ms is None else f", with its last sign of life {age(self.silent_ms)} ago"
        look = marked(self.looks, words.of_look(self.looks.state) if self.looks is not None else "")
        return f"{self.name} is {self.lifecycle}: {look}{silent}."


def _owner(store: LogStore, ledger: Ledger, said: projection.Explanation, *, runs: bool) -> _Owner | None:
    """Return how the owner of the task looks; None without one."""
    of = ledger.aggregates.get(f"{worker.KIND}/{said.owner}")
    if of is None:
        return None
    agent, now_ms = status.agent_status(of), time.time_ns() // 1_000_000
    hosts = anyio.run(hosts_of, store) if agent.processes else ()
    evidence = evidence_of(FleetFolder(store.path), agent, hosts) if agent.processes else None
    silent_ms = None if evidence is None else evidence.silent_ms
    seen = appearance(of)
    look_of, gone = looks(agent, evidence, now_ms, runs=runs), is_missing(agent, evidence, runs=runs)
    return _Owner(said.owner, seen.lifecycle, seen.status, look_of, silent_ms, gone)


def _owners(ledger: Ledger, said: projection.Explanation) -> Collection[str]:
    """Return the owners of the tasks that this one waits for."""
    concerned = {each.task for each in said.causes}
    return {each.owner for each in task_status.tasks(ledger.aggregates) if each.id in concerned and each.owner}


def _in_the_way(store: LogStore, ledger: Ledger, agents: Collection[str]) -> Iterator[str]:
    """Yield the quarantines of these agents, and their blocked merges unless the fleet is over."""
    concerned = [each for each in quarantines.found(store, ledger) if each.name in agents]
    yield from (f"{line}." for line in awaited.quarantined(concerned, logs.option(store.path)))
    if store.past is None and not board.finished(ledger.aggregates[board.NAME]):
        waits = waits_of(FleetFolder(store.path), anyio.run(hosts_of, store))
        found = [each for each in waits if each.agent in agents]
        yield from (f"{line}." for line in awaited.in_the_way(found, time.time_ns() // 1_000_000))


def lines(said: projection.Explanation, doubts: tuple[str, ...], db: str | None) -> Iterator[str]:
    """Yield the lines of an explanation: state, doubts and obstacles, causes, history, commands that help."""
    yield said.sentence
    yield from doubts
    causes = said.causes[1:]
    if any(each.because_of for each in causes) or said.state != State.BLOCKED:
        yield from ("\nBecause of what:",) if causes else ()
        yield from (f"  {each.said}{_by(each.because_of)}" for each in causes[:MOST_CAUSES])
        yield from (f"  and {len(causes) - MOST_CAUSES} more",) if len(causes) > MOST_CAUSES else ()
    yield "\nHow it came there:"
    longest = max((len(line.by) for chapter in said.story for line in chapter.lines), default=0)
    for chapter in said.story:
        yield from _chapter(chapter, min(max(BY_CHARACTERS, longest), MOST_BY_CHARACTERS))
    yield "\nWhat moves it on:"
    yield f"  {said.onward}"
    log = f" --db {shlex.quote(db)}" if db else ""
    commands = [(f"{this_command()} {command(option)}{log}", option.about) for option in said.options]
    width = max((len(each) for each, _ in commands), default=0)
    yield from (f"  {each:<{width}}  # {about}" for each, about in commands)


def command(option: projection.Option) -> str:
    """Return a command as it is typed."""
    return " ".join((option.command, *map(shlex.quote, option.to.split()), *_ARGUMENTS.get(option.command, ())))


_ARGUMENTS: Final = {
    "send": ('"..."',),
    "answer": ('"..."',),
    "reject": ("--reason", '"..."'),
    "trust": ("--promote", "--reason", '"..."'),
}
"""The arguments that the operator chooses, by command."""


def _by(names: tuple[str, ...]) -> str:
    return f", because of {enumerated(names)}" if names else ""


def _chapter(chapter: projection.Chapter, by: int) -> Iterator[str]:
    if chapter.times == 1:
        yield from (f"  {_moment(line.at_ms)}  {line.by:<{by}} {line.words()}" for line in chapter.lines)
        return
    yield f"  {_moment(chapter.from_ms)}  {chapter.times} times until {_moment(chapter.to_ms)}:"
    yield from (f"      {line.by:<{by}} {line.words()}" for line in chapter.lines)


def _moment(at_ms: int) -> str:
    return clock_time(at_ms / 1_000).rpartition(".")[0]
