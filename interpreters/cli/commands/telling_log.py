"""The command ``log``: the story of a fleet, or every transition of it."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator

import msgspec

from lifefold.core.fleet import system
from lifefold.core.fleet.system import board
from lifefold.core.fleet.system.rerun import is_over
from lifefold.core.kernel import RunnerRecovered, SystemStep
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.colours import painted
from lifefold.interpreters.cli.earlier import found_earlier
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.fitting import terminal_width
from lifefold.interpreters.cli.log_filter import Chosen, since
from lifefold.interpreters.cli.pager import is_coloured
from lifefold.interpreters.cli.story import happenings
from lifefold.interpreters.cli.story_lines import story_lines
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.explain.chronicle import Chronicle

Lines = Callable[[Decision], Iterator[str]]


def log(arguments: Namespace) -> None:
    """Print the story, or the transitions, chosen by task, agent and time."""
    since_ms = since(arguments.since, time.time_ns() // 1_000_000) if arguments.since else 0
    chosen = Chosen(arguments.task, arguments.agent, since_ms)
    is_diagram = arguments.format == "sequence"
    if is_diagram and (arguments.json or arguments.follow):
        raise BadInput("--format sequence goes with neither --json nor --follow")
    if arguments.follow and arguments.at:
        raise BadInput("--follow and --at: accepted: one of them, because the past does not go on")
    ledger = Ledger(system)
    with logs.peek(arguments.db, arguments.at) as store:
        lines = _lines(arguments, chosen)
        decisions = logs.decisions(store, ledger)
        if is_diagram:
            printed = [_diagram(store.path.stem, chosen, decisions)]
        else:
            printed = [each for decision in decisions for each in lines(decision)]
        unknown = (str(found_earlier(store, each)) for each in chosen.missing(ledger.aggregates))
        _warn_or_refuse(unknown, may_come=arguments.follow)
        if arguments.json and not arguments.follow:
            print(json.dumps([json.loads(each) for each in printed], indent=2))
            return
        for line in printed:
            print(line)
        if arguments.follow:
            sys.stdout.flush()
            for decision in logs.decisions_as_they_come(store, ledger, lambda of: is_over(of.aggregates)):
                for line in lines(decision):
                    print(line, flush=True)


def _lines(arguments: Namespace, chosen: Chosen) -> Lines:
    """Return the function that makes lines of a decision; it is given every decision of the log."""
    if arguments.json or arguments.all:
        return lambda decision: _transitions(chosen, decision, as_json=arguments.json)
    chronicle, width, colours = Chronicle(), terminal_width(), is_coloured()
    return lambda decision: _story(chronicle, chosen, decision, width, colours=colours)


def _transitions(chosen: Chosen, decision: Decision, *, as_json: bool) -> Iterator[str]:
    """Yield the chosen transitions of one input."""
    name, reaction = decision.entry.stream, decision.reaction
    for happening, step in zip(happenings(name, reaction), reaction.transitions, strict=True):
        if chosen.accepts(name, reaction, step):
            yield msgspec.json.encode(happening.event).decode() if as_json else happening.line()


def _diagram(title: str, chosen: Chosen, decisions: Iterable[Decision]) -> str:
    """Return the inputs with a chosen transition as a sequence diagram, with all their transitions."""
    from lifefold.interpreters.views.sequence import mermaid_sequence, sequence  # noqa: PLC0415 - slow, seldom needed

    steps = (
        SystemStep(each.entry.stream, each.envelope, each.reaction)
        for each in decisions
        if any(chosen.accepts(each.entry.stream, each.reaction, step) for step in each.reaction.transitions)
    )
    return mermaid_sequence(sequence(title, steps)).rstrip("\n")


def _story(
    chronicle: Chronicle, chosen: Chosen, decision: Decision, width: int | None, *, colours: bool
) -> Iterator[str]:
    """Yield what has happened with one input, if it is chosen."""
    name, reaction, envelope = decision.entry.stream, decision.reaction, decision.envelope
    if name == board.NAME and isinstance(envelope.event, RunnerRecovered):
        news = chronicle.recovered(envelope.event, envelope.at_ms)
        if news is not None and news.at_ms >= chosen.since_ms:
            yield from (painted(line, news.mood, colours=colours) for line in story_lines(news, width))
    for news, steps in chronicle.told(name, reaction):
        if any(chosen.accepts(name, reaction, step) for step in steps):
            yield from (painted(line, news.mood, colours=colours) for line in story_lines(news, width))


def _warn_or_refuse(missing: Iterable[str], *, may_come: bool) -> None:
    """Raise ``BadInput`` for an unknown name; with ``may_come`` only warn, because later entries may add it."""
    for said in missing:
        if not may_come:
            raise BadInput(said)
        print(f"warning: {said}", file=sys.stderr)
