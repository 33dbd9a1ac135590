"""The command ``log``: the story of a fleet, or every transition of it."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator

import msgspec

from lifefold.core.fleet.system import board
from lifefold.core.fleet.system.rerun import is_over
from lifefold.core.kernel import RulesChanged, RunnerRecovered, SystemStep
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.colours import painted
from lifefold.interpreters.cli.commands.telling_own_log import diagram, rows, table, tell
from lifefold.interpreters.cli.earlier import found_earlier
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.fitting import terminal_width
from lifefold.interpreters.cli.log_filter import Chosen, since
from lifefold.interpreters.cli.log_pages import USUAL_LINES, Begun, Part, begun, newest_part
from lifefold.interpreters.cli.pager import is_coloured
from lifefold.interpreters.cli.positions import newest_position
from lifefold.interpreters.cli.recorded_logs import OneLog, one_log
from lifefold.interpreters.cli.story import happenings, rules_changed
from lifefold.interpreters.cli.story_lines import story_lines
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.explain.chronicle import Chronicle
from lifefold.interpreters.store import LogStore

Lines = Callable[[Decision], Iterator[str]]


def log(arguments: Namespace) -> None:
    """Print the story, or the transitions, chosen by task, agent and time."""
    since_ms = since(arguments.since, time.time_ns() // 1_000_000) if arguments.since else 0
    chosen = Chosen(arguments.task, arguments.agent, since_ms)
    _must_fit(arguments)
    arguments.json = arguments.json or arguments.format == "json"
    of = _own(arguments)
    if of is not None:
        tell(of, arguments, since_ms)
        return
    with logs.peek(arguments.db, arguments.at) as store:
        if chosen.tasks or chosen.agents:
            unknown = (str(found_earlier(store, each)) for each in chosen.missing(logs.fold(store).aggregates))
            _warn_or_refuse(unknown, may_come=arguments.follow)
        part = _part(store, arguments, chosen)
        if arguments.json and not arguments.follow:
            print(json.dumps([json.loads(each) for each in part.lines], indent=2))
            return
        for line in part.lines:
            print(line)
        if not part.is_whole and not arguments.since:
            said = f"these are the last lines; lifefold log{logs.LOG} --last 0 prints all of them"
            print(logs.typed(said, store), file=sys.stderr)
        if arguments.follow:
            _follow(store, part.begun.ledger, _lines(arguments, chosen, part.begun.chronicle))


def _follow(store: LogStore, ledger: Ledger, lines: Lines) -> None:
    """Print the lines of further entries, until the fleet is over."""
    sys.stdout.flush()
    for decision in logs.decisions_as_they_come(store, ledger, lambda of: is_over(of.aggregates)):
        for line in lines(decision):
            print(line, flush=True)


def _part(store: LogStore, arguments: Namespace, chosen: Chosen) -> Part:
    """Return the chosen lines: the last ones, or all since a time, or all."""
    most = _most(arguments)

    def read(of: Begun) -> Iterable[list[str]]:
        decisions = logs.decisions(store, of.ledger)
        if arguments.format == "sequence":
            return [[_diagram(store.path.stem, chosen, decisions, is_whole=arguments.all)]]
        if arguments.format == "table":
            return [_table(chosen, decisions, of.seq)]
        lines = _lines(arguments, chosen, of.chronicle)
        return (list(lines(decision)) for decision in decisions)

    if most:
        return newest_part(store, most, read)
    before = store.position_at(chosen.since_ms - 1) if chosen.since_ms else 0
    of = begun(store, min(before, newest_position(store)))
    return Part(of, (line for lines in read(of) for line in lines), not of.seq)


def _most(arguments: Namespace) -> int:
    """Return how many lines are printed; 0 for all."""
    if arguments.last is not None:
        return int(arguments.last)
    is_all = arguments.since or arguments.json or arguments.format != "lines"
    return 0 if is_all else USUAL_LINES


def _lines(arguments: Namespace, chosen: Chosen, chronicle: Chronicle) -> Lines:
    """Return the function that makes lines of a decision; it is given every further decision of the log."""
    if arguments.json or arguments.all:
        return lambda decision: _transitions(chosen, decision, as_json=arguments.json)
    width, colours = terminal_width(), is_coloured()
    return lambda decision: _story(chronicle, chosen, decision, width, colours=colours)


def _transitions(chosen: Chosen, decision: Decision, *, as_json: bool) -> Iterator[str]:
    """Yield the chosen transitions of one input."""
    name, reaction = decision.entry.stream, decision.reaction
    if isinstance(decision.envelope.event, RulesChanged) and chosen.accepts_whole(decision.entry.at_ms):
        happening = rules_changed(decision.envelope.event, decision.entry.at_ms)
        yield msgspec.json.encode(happening.event).decode() if as_json else happening.line()
    for happening, step in zip(happenings(name, reaction), reaction.transitions, strict=True):
        if chosen.accepts(name, reaction, step):
            yield msgspec.json.encode(happening.event).decode() if as_json else happening.line()


def _must_fit(arguments: Namespace) -> None:
    """Raise ``BadInput`` for options that exclude each other."""
    if arguments.format in {"sequence", "table"} and (arguments.json or arguments.follow):
        raise BadInput(f"--format {arguments.format} goes with neither --json nor --follow")
    if arguments.last is not None and (arguments.since or arguments.format in {"sequence", "table"}):
        other = "--since" if arguments.since else f"--format {arguments.format}"
        raise BadInput(f"--last and {other}: accepted: one of them")
    if arguments.follow and arguments.at:
        raise BadInput("--follow and --at: accepted: one of them, because the past does not go on")


def _own(arguments: Namespace) -> OneLog | None:
    """Return the log of a system of one's own; None for a fleet, whose log is found as for every other command."""
    if not arguments.log:
        return None
    of = one_log(arguments.log, arguments.db)
    if of.is_fleet and arguments.db is not None:
        raise BadInput("found LOG and --db; accepted: one of them")
    arguments.db = str(of.path)
    return None if of.is_fleet else of


def _table(chosen: Chosen, decisions: Iterable[Decision], before: int) -> list[str]:
    """Return the entries with a chosen transition as a table, with all their transitions.

    ``before`` is the position before the first one.
    """
    found = [
        row
        for seq, each in enumerate(decisions, before + 1)
        if any(chosen.accepts(each.entry.stream, each.reaction, step) for step in each.reaction.transitions)
        for row in rows(seq, SystemStep(each.entry.stream, each.envelope, each.reaction))
    ]
    return table(found)


def _diagram(title: str, chosen: Chosen, decisions: Iterable[Decision], *, is_whole: bool) -> str:
    """Return the inputs with a chosen transition as a sequence diagram, with all their transitions."""
    steps = (
        SystemStep(each.entry.stream, each.envelope, each.reaction)
        for each in decisions
        if any(chosen.accepts(each.entry.stream, each.reaction, step) for step in each.reaction.transitions)
    )
    return diagram(title, steps, is_whole=is_whole)


def _story(
    chronicle: Chronicle, chosen: Chosen, decision: Decision, width: int | None, *, colours: bool
) -> Iterator[str]:
    """Yield what has happened with one input, if it is chosen."""
    name, reaction, envelope = decision.entry.stream, decision.reaction, decision.envelope
    if name == board.NAME and isinstance(envelope.event, RunnerRecovered):
        news = chronicle.recovered(envelope.event, envelope.at_ms)
        if news is not None and news.at_ms >= chosen.since_ms:
            yield from (painted(line, news.mood, colours=colours) for line in story_lines(news, width))
    if isinstance(envelope.event, RulesChanged) and chosen.accepts_whole(envelope.at_ms):
        news = chronicle.rules_changed(envelope.event, envelope.at_ms)
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
