"""The command ``show``: everything about one task or one agent on a page."""

import json
import shlex
import shutil
import textwrap
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

import anyio
import msgspec

from lifefold.core.fleet.worker import assignment
from lifefold.interpreters.cli import excerpts, logs
from lifefold.interpreters.cli.account import usage_json
from lifefold.interpreters.cli.addressees import addressee
from lifefold.interpreters.cli.commands.diff import verified_lines
from lifefold.interpreters.cli.commands.explaining import command
from lifefold.interpreters.cli.wording import age, coming, is_missing, moment, plain_state, spent, this_command
from lifefold.interpreters.desk.history import ClaimRecord, SessionRecord
from lifefold.interpreters.desk.pages import AgentPage, TaskPage, agent_page, task_page
from lifefold.interpreters.desk.seen import Seen, Sums
from lifefold.interpreters.explain import why
from lifefold.interpreters.explain.task_words import OF_TASKS
from lifefold.interpreters.explain.words import of_agent
from lifefold.interpreters.fleet_runner.agent_looks import marked
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.store import LogStore

LABEL: Final = 14
"""The width of the labels at the left."""

MOST_SESSIONS: Final = 6
"""The most claims and sessions of a list; the first ones are left out."""

MOST_PROMPT: Final = 12
"""The most lines of a prompt."""

VERIFIED_LINES: Final = 5
"""The last lines of a verification command's output."""


def show(arguments: Namespace) -> None:
    """Print the page of a task or an agent."""
    with logs.peek(arguments.db, arguments.at) as store:
        ledger, account = logs.fold_with_account(store)
        of = addressee(ledger.aggregates, arguments.name)
        sums = Sums(account.spending, account.attempts, account.authors())
        seen = Seen(store, ledger, sums, of.name if of.is_task else "")
        for decision in (excerpts.of_task if of.is_task else excerpts.of_agent)(store, ledger, of.name):
            seen.observe(decision)
        page: TaskPage | AgentPage
        page = anyio.run(task_page, seen, of.name) if of.is_task else anyio.run(agent_page, seen, of.name)
        option, runs = logs.option(store.path), store.is_written()
        if arguments.json:
            costs = [{**msgspec.to_builtins(each), "cost": usage_json(each.cost)} for each in page.sessions]
            found = {**msgspec.to_builtins(page), "sessions": costs, "cost": usage_json(page.cost), "runs": runs}
            print(json.dumps(found, indent=2))
            return
        width = shutil.get_terminal_size().columns
        if then := logs.then(store):
            print(then)
        for line in _task(page, store, width) if isinstance(page, TaskPage) else _agent(page, store, width, runs=runs):
            print(plain(line.encode("utf-8", "surrogateescape")))
        for line in _next([each for each in page.options if each.command in arguments.known], option):
            print(line)


def _task(page: TaskPage, store: LogStore, width: int) -> Iterator[str]:
    of, now_ms = page.task, logs.now_ms(store)
    yield from textwrap.wrap(page.sentence, width)
    yield ""
    yield from _field("since", f"{moment(of.since_ms)} ({age(now_ms - of.since_ms)})", width)
    yield from _field("next", coming(of.timer, now_ms) if of.timer else "", width)
    yield from _field("prompt", page.prompt, width, most=MOST_PROMPT)
    yield from _field("after", ", ".join(of.depends_on), width)
    yield from _field("held up", of.held_up, width)
    yield from _field("needed by", ", ".join(page.needed_by), width)
    yield from _field("part of", of.parent, width)
    yield from _field("role, files", ", ".join(filter(None, (of.role, *of.files))), width)
    yield from _field("agent", of.owner, width)
    yield from _field("retries", f"{of.retries} of {of.max_retries}" if of.retries else "", width)
    yield from _field("conversation", page.conversation, width)
    yield from _field("cost", spent(page.cost), width)
    yield from _field("time at work", age(page.duration_ms) if page.sessions else "", width)
    attempts = accumulate(int(not each.handed) for each in page.claims)
    claims = zip(page.claims, attempts, strict=True)
    yield from _list("attempts", [_claim(each, number, page.sessions, now_ms) for each, number in claims], width)
    yield from _work(page, width)
    yield from _output(page.output, page.output_path, width)
    if page.verifications:
        yield ""
        brief = [msgspec.structs.replace(each, output=each.output[-VERIFIED_LINES:]) for each in page.verifications]
        yield from list(verified_lines(brief))[1:]
    yield ""
    yield from textwrap.wrap(logs.typed(page.onward, store), width)


def _work(page: TaskPage, width: int) -> Iterator[str]:
    """Yield where the work is: what is compared, the branch, the worktree."""
    if page.changes is None:
        yield from _field("work", page.no_changes, width)
    else:
        yield from _field("work", page.changes.said, width)
        yield from _field("branch", page.changes.branch, width)
    yield from _field("worktree", page.worktree, width)
    yield from _field("verified by", "; ".join(map(shlex.join, page.verify)), width)


def _claim(of: ClaimRecord, number: int, sessions: Sequence[SessionRecord], now_ms: int) -> str:
    """Return a claim in a line: its attempt, when, by which agent, how it ended, and its sessions."""
    took = age((of.ended_ms or now_ms) - of.began_ms)
    what = " to verify or merge" if of.handed else ""
    word = OF_TASKS.get(of.outcome, of.outcome)
    ended = f"{word}{f': {of.reason}' if of.reason else ''}" if of.ended_ms else "goes on"
    mine = [each for each in sessions if each.claim == of.number]
    counted = "".join(f"; session {each.number}: {each.outcome}" for each in mine)
    return f"{number}  {moment(of.began_ms)}  {of.agent}{what}, {took}: {' '.join(ended.split())}{counted}"


def _agent(page: AgentPage, store: LogStore, width: int, *, runs: bool) -> Iterator[str]:
    of, now_ms = page.agent, logs.now_ms(store)
    is_now = store.past is None
    seen = plain_state(of, page.evidence, runs=runs) if is_now else of_agent(of.state, of.task, of.desired_state)
    state = marked(page.looks, seen) if is_now else seen
    yield f"{'service' if of.kind == 'service' else 'agent'} {of.name}: {state}"
    yield ""
    yield from _field("asked of it", ", ".join(filter(None, (of.desired_state, of.reason))), width)
    in_log = of_agent(of.state, of.task, of.desired_state)
    yield from _field("in the log", f"{in_log} since {moment(of.since_ms)} ({age(now_ms - of.since_ms)})", width)
    yield from _field("evidence", _evidence(page, now_ms, runs=runs, then=not is_now), width)
    yield from _field("next", coming(of.timer, now_ms) if of.timer else "", width)
    at = "" if of.doing in {assignment.State.IDLE, assignment.State.WANTING} else of.doing
    yield from _field("task", f"{of.task}, {at.lower()}" if of.task and at else of.task or "none", width)
    if of.turn is not None and not of.turn.is_over:
        counted = f", {of.turn.tools} tools used" if of.turn.tools else ""
        yield from _field("turn", f"{of.turn.number}: {of.turn.in_words()}{counted}", width)
    yield from _field("program", page.program, width)
    yield from _field("account", f"{page.account}, {page.account_state}" if page.account else "", width)
    yield from _field("conversation", of.conversation, width)
    yield from _field("trust", of.level, width)
    yield from _field("cost", spent(page.cost), width)
    yield from _field("closed tasks", ", ".join(page.done), width)
    yield from _field("worktree", page.worktree, width)
    yield from _list("questions", page.questions, width)
    yield from _list("messages", [" ".join(each.split()) for each in page.messages], width)
    yield from _list("sessions", [_session(each, now_ms) for each in page.sessions], width)
    yield from _output(page.output, page.output_path, width)


def _evidence(page: AgentPage, now_ms: int, *, runs: bool, then: bool) -> str:
    """Return what is known of the process, apart from what the log says; ``then`` is a page of the past."""
    found = page.evidence
    if found is None:
        return "the past has none" if then else "no process" if page.agent.processes else ""
    if not found.alive:
        missing = is_missing(page.agent, found, runs=runs)
        return f"process {found.pid} is gone, although the log has it" if missing else f"process {found.pid} is gone"
    silent = "" if found.silent_ms is None else f", last sign of life {age(found.silent_ms)} ago"
    return f"process {found.pid} is alive{silent} (looked up {age(now_ms - found.observed_ms)} ago)"


def _session(of: SessionRecord, now_ms: int) -> str:
    took = age((of.ended_ms or now_ms) - of.began_ms)
    reason = f": {' '.join(of.reason.split())}" if of.reason else ""
    cost = f"; {spent(of.cost)}" if spent(of.cost) else ""
    return f"{of.number}  {moment(of.began_ms)}  {of.task}, claim {of.claim}, {took}: {of.outcome}{reason}{cost}"


def _output(lines: Sequence[Any], path: str, width: int) -> Iterator[str]:
    """Yield the last lines of an output; without its file, what is known of the session otherwise."""
    if lines and not path:
        yield from _list("last session", [each.line() for each in lines], width)
    elif lines:
        yield f"{'output':<{LABEL}}{path}"
        yield ""
        yield "the last lines of its last session:"
        yield from (line if len(line) < width else f"{line[: width - 2]}…" for line in (each.line() for each in lines))


def _field(label: str, text: str, width: int, *, most: int = 4) -> Iterator[str]:
    """Yield a label with its text, wrapped; nothing without a text. More lines than ``most`` are counted."""
    if not text:
        return
    room = max(20, width - LABEL)
    given = [line for each in text.splitlines() for line in textwrap.wrap(each, room, break_on_hyphens=False) or [""]]
    lines = given if len(given) <= most else [*given[: most - 1], f"and {len(given) - most + 1} lines more"]
    for place, line in enumerate(lines):
        yield f"{'' if place else label:<{LABEL}}{line}"


def _list(label: str, items: Iterable[str], width: int) -> Iterator[str]:
    """Yield the last items of a list below each other."""
    every = list(items)
    left_out = [f"({len(every) - MOST_SESSIONS} earlier ones)"] if len(every) > MOST_SESSIONS else []
    for place, item in enumerate([*left_out, *every[-MOST_SESSIONS:]]):
        yield from _field("" if place else label, item, width)


def _next(options: Sequence[why.Option], log: str) -> Iterator[str]:
    commands = [(f"{this_command()} {command(option)}{log}", option.about) for option in options]
    width = max((len(each) for each, _ in commands), default=0)
    if commands:
        yield "\nWhat can be done next:"
    yield from (f"  {each:<{width}}  # {about}" for each, about in commands)
