"""Commands that tell a fleet something: ``send`` and ``stop``.

A running runner takes what is said from its log and answers there. When none runs, the command itself becomes the
writer for a moment, decides by the same rules, and leaves the effects to the next runner.
"""

import time
from argparse import Namespace
from functools import partial
from typing import Final

import anyio

from lifefold.core.fleet import intent, mailbox, worker
from lifefold.core.kernel import Envelope, Event, Refusal, encode, replace
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.store import Batch, Locked, SqliteStore

ANSWER_TIMEOUT_S: Final = 30.0

TEXT_CHARACTERS: Final = 10_000
"""How long a message may be: it becomes a part of a prompt, which may become an argument of a command."""


def send(arguments: Namespace) -> int:
    """Say something to one agent, or to all."""
    if not arguments.text.strip() or len(arguments.text) > TEXT_CHARACTERS:
        raise BadInput(f"the text must have 1 to {TEXT_CHARACTERS} characters, not {len(arguments.text)}")
    if _undecoded(arguments.text):
        raise BadInput("the text has bytes that are no text in this terminal's encoding; write it in UTF-8")
    event = mailbox.LetterArrived(arguments.text, urgent=not arguments.no_interrupt)
    return _tell(arguments, "mailbox", event, replace(event, urgent=False))


def _undecoded(text: str) -> bool:
    """Tell whether a word of the command line had bytes that could not be decoded: Python keeps them as surrogates."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def stop(arguments: Namespace) -> int:
    """Stop one agent, or all, for good."""
    event = intent.StopWanted("stopped by the operator")
    return _tell(arguments, "intent", event, event)


def _tell(arguments: Namespace, ref: str, event: Event, unattended: Event) -> int:
    """Tell the runner ``event``, or the log ``unattended``: without a runner nobody can interrupt a session."""
    with logs.peek(arguments.db) as store:
        agents = _agents(store, arguments.agent)
        path = store.path
        answers = None
        if not store.is_written():
            answers = _tell_log(store, agents, ref, unattended)
        if answers is None:
            answers = anyio.run(partial(_tell_runner, store, agents, ref, event))
    refused = 0
    for agent, answer in answers.items():
        print(f"{agent}: {_in_words(answer)}")
        refused += answer.startswith("refused")
    if refused == len(agents):
        raise BadInput(f"nobody is there to take it; lifefold status --db {path} shows the agents")
    return 0


def _in_words(answer: str) -> str:
    """Say what a refusal of the kernel's means to somebody who does not know its machines."""
    if "not possible in Stop" in answer:
        return "has stopped already, and for good"
    return "refused: it has stopped, for good" if "not possible in Closed" in answer else answer


def _agents(store: SqliteStore, wanted: str) -> list[str]:
    names = [
        name.removeprefix(f"{worker.KIND}/") for name in logs.fold(store).aggregates if name.startswith(worker.KIND)
    ]
    if wanted == "all":
        return sorted(names)
    if wanted not in names:
        raise BadInput(f"{store.path}: there is no agent {wanted!r}; there are {', '.join(sorted(names))}, or 'all'")
    return [wanted]


def _envelope(ref: str, event: Event) -> Envelope:
    return Envelope(ref, event, time.time_ns() // 1_000_000, "operator")


async def _tell_runner(store: SqliteStore, agents: list[str], ref: str, event: Event) -> dict[str, str]:
    """Leave posts for the runner and wait for its answers."""
    numbers = {await store.post(f"{worker.KIND}/{agent}", encode(_envelope(ref, event))): agent for agent in agents}
    answers: dict[str, str] = {}
    with anyio.move_on_after(ANSWER_TIMEOUT_S):
        while len(answers) < len(numbers):
            for post in await store.posts(unanswered=False):
                if post.id in numbers and post.answer is not None:
                    answers[numbers[post.id]] = post.answer
            await anyio.sleep(0.05)
    return {agent: answers.get(agent, "left in the log; the runner has not answered yet") for agent in agents}


def _tell_log(store: SqliteStore, agents: list[str], ref: str, event: Event) -> dict[str, str] | None:
    """Decide as the writer; None if a runner has come first."""
    try:
        writing = SqliteStore.open(store.path, patient=False)
    except Locked:
        return None
    with writing:
        ledger = logs.fold(writing)
        decisions = {agent: ledger.decide(f"{worker.KIND}/{agent}", _envelope(ref, event)) for agent in agents}
        entries = [each.entry for each in decisions.values() if not isinstance(each, Refusal)]
        anyio.run(partial(writing.append, Batch(entries)))
    return {
        agent: f"refused: {each.reason}" if isinstance(each, Refusal) else "accepted; the next run acts on it"
        for agent, each in decisions.items()
    }
