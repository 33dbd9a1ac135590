"""The results of the mutants of the fleet's rules in ``tests/mutants/results``, and their section of the page."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Final

import msgspec

from lifefold.core.kernel import replace
from mutation_results import FOLDER, ROOT, page
from mutation_results import kept as kept_of_lifecycles
from rule_campaign import Fate, Verdict, campaign_of
from rule_mutation import RuleMutant
from rule_sources import FEATURES, SOURCES
from simulated_results import kept as simulated
from simulated_results import section as simulated_section
from small_fleets import SMALL

PARTS: Final = {f"fleet-{source.name}": source for source in (*SOURCES, *FEATURES)}
"""The parts of the campaign: the rules of the board and the worker, and of the optional parts of a fleet."""

NAMES: Final = tuple(PARTS)

HEAD: Final = """
## The rules of the fleet

The fleet's rules are functions, so a program changes their source (`tools/mutation/rule_mutation.py`).

- A rule is lost, or runs after the next one.
- A trigger of a rule (`event=`, `leaves=`, `enters=`) is lost, lacks an event or a state, or has another state.
- A rule action is left out, is repeated, goes to another entity, or has another number.
- Another event is sent.
- A condition is negated, is always or never true, or loses a part.
- A state is replaced by another, or a set of states loses or gains one.
- The board's view loses a field.

Texts for operators stay as they are. Mutants of the board and the worker are checked in {fleets} small fleets:

{names}

The optional parts of a fleet have small fleets of their own:

{featured}

- *killed*: `lifefold check` finds a broken property, or an error that a rule raises;
- *equivalent*: every input has the same outcome in every state that an aggregate of the original reaches;
- *needless*: it differs only by additional messages, and these change nothing in any state in which they arrive;
- *survived*: none of these. The reason stands below, unless it is unknown.

These fleets have witnesses (`tests/support/witnessed_fleet.py`). They record facts that no rule needs: the work that a
worker has merged, its urgent messages, and the task that has waited longest. Some mutants break only their properties.

"""


class Left(msgspec.Struct, frozen=True):
    """A mutant that breaks no property, and the fleets in which it differs."""

    mutant: str
    differs: tuple[str, ...]


class Rules(msgspec.Struct, frozen=True):
    """The results for the mutants of one part."""

    name: str
    mutants: int
    fates: dict[str, int]
    found: dict[str, int]
    """The number of mutants that each small fleet was the first to find."""
    killers: dict[str, int]
    """The number of mutants that each property was the first to find."""
    survivors: tuple[Left, ...]
    untried: int = 0
    """The number of mutants without a verdict."""

    def unexplained(self) -> tuple[str, ...]:
        """Return the survivors without a known reason."""
        return tuple(each.mutant for each in self.survivors if not reason(each.mutant))


def result(name: str, ended: Iterable[Verdict]) -> Rules:
    """Return the results of a part of the campaign."""
    every = tuple(ended)
    killed = [each for each in every if each.fate is Fate.KILLED]
    return Rules(
        name,
        len(every),
        _counted(str(each.fate) for each in every),
        _counted(each.where for each in killed),
        _counted(each.by for each in killed),
        tuple(Left(each.mutant.name, each.differs) for each in every if each.fate is Fate.SURVIVED),
    )


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def run(name: str, within_s: float = math.inf) -> Rules:
    """Try all mutants of a part, or as many as there is time for; verdicts on the same code are reused.

    The order mixes the rules, so that the mutants without a verdict are not all of one rule.
    """
    campaign = campaign_of(PARTS[name])
    until_s, tried = monotonic() + within_s, VerdictFile(name)
    every = sorted(campaign.mutants, key=lambda each: sha256(each.name.encode()).digest())
    ended = {each.name: known for each in every if (known := tried.known(each)) is not None}
    for each in every:
        if each.name not in ended and monotonic() < until_s:
            ended[each.name] = campaign.attempt(each)
            tried.keep(ended[each.name])
    found = result(name, (ended[each.name] for each in campaign.mutants if each.name in ended))
    return replace(found, mutants=len(campaign.mutants), untried=len(campaign.mutants) - len(ended))


class VerdictFile:
    """The verdicts on the mutants of a part; they hold until code that they depend on changes."""

    def __init__(self, name: str) -> None:
        """Read the file of a part."""
        text = b"".join(path.read_bytes() for path in sorted(_depended_on()))
        self._file: Final = CACHE / sha256(text).hexdigest()[:16] / f"{name}.jsonl"
        lines = self._file.read_bytes().splitlines() if self._file.exists() else []
        self._known: Final = {
            each.mutant: each for each in (msgspec.json.decode(one, type=KeptVerdict) for one in lines)
        }

    def known(self, mutant: RuleMutant) -> Verdict | None:
        """Return the verdict on a mutant; None if there is none."""
        one = self._known.get(mutant.name)
        return None if one is None else Verdict(mutant, Fate(one.fate), one.where, one.by, one.differs)

    def keep(self, ended: Verdict) -> None:
        """Append a verdict."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        one = KeptVerdict(ended.mutant.name, str(ended.fate), ended.where, ended.by, ended.differs)
        with self._file.open("ab") as file:
            file.write(msgspec.json.encode(one) + b"\n")


class KeptVerdict(msgspec.Struct, frozen=True):
    """One verdict, as a line of the file."""

    mutant: str
    fate: str
    where: str
    by: str
    differs: tuple[str, ...]


CACHE: Final = ROOT / ".cache" / "mutants"
"""The folder of the verdicts, so that an interrupted campaign continues."""


def _depended_on() -> Iterator[Path]:
    yield from (ROOT / "core").rglob("*.py")
    for folder in ("interpreters/check", "interpreters/search", "tools/mutation", "tests/support"):
        yield from (each for each in (ROOT / folder).rglob("*.py") if "results" not in each.name)


def keep(found: Rules) -> None:
    """Write the results to their file."""
    text = msgspec.json.format(msgspec.json.encode(found), indent=1)
    (FOLDER / f"{found.name}.json").write_bytes(text + b"\n")


def kept() -> tuple[Rules, ...]:
    """Return the results that have a file."""
    files = [FOLDER / f"{name}.json" for name in NAMES]
    return tuple(msgspec.json.decode(file.read_bytes(), type=Rules) for file in files if file.exists())


def whole_page() -> str:
    """Return the whole page: the results of the lifecycles, of the fleet's rules, and of simulations of both."""
    return page(kept_of_lifecycles()) + section(kept()) + simulated_section(simulated())


def section(results: Iterable[Rules]) -> str:
    """Return the page's section on the fleet's rules."""
    every = tuple(results)
    columns = ("rules of", "mutants", *Fate)
    lines = [f"| {' | '.join(columns)} |", f"| --- |{' ---: |' * (len(columns) - 1)}"]
    for each in every:
        counts = (each.mutants, *(each.fates.get(fate, 0) for fate in Fate))
        lines.append(f"| {each.name} | {' | '.join(f'{count:,}' for count in counts)} |")
    for each in every:
        lines += ["", f"{each.untried:,} mutants of {each.name} have no verdict yet."] if each.untried else []
    for each in every:
        lines += ["", f"**{each.name}**", ""] if each.survivors else []
        lines += [f"- `{left.mutant.replace('`', chr(39))}`: {reason(left.mutant)}" for left in each.survivors]
    featured = "\n".join(f"- *{source.name}*, {fleet}" for source, fleets in FEATURES.items() for fleet in fleets)
    head = HEAD.format(fleets=len(SMALL), names="\n".join(f"- {fleet}" for fleet in SMALL), featured=featured)
    return head + "\n".join(lines) + "\n"


def reason(mutant: str) -> str:
    """Return why a mutant survives although no property is missing; an empty text if that is unknown."""
    return next((why for words, why in EXPLAINED.items() if words in mutant), "")


_GONE: Final = (
    "a worker that gives a task back has stopped, and reports it next: the board then takes the task back by itself"
)
_REPEATED: Final = (
    "a message that does not count as taken is in the next prompt again, as a message may be; the tests of the rules"
    " find it"
)
_TEXT: Final = "only a text for operators differs"
_ENDLESS: Final = (
    "every session reports it again, and each repetition is refused; the messages in flight have no bound,"
    " so no search ends"
)

_OPAQUE: Final = "only the agent reads it: no rule does, and no property may; the tests of the rules find it"
_ORDER: Final = "nothing depends on the order of the two"
_AGAIN: Final = (
    "a task that is unblocked too early is blocked again in the same macrostep, by the task that it still waits for"
)

_BY_TESTS: Final = "no property states it; the tests of the rules find it"

EXPLAINED: Final[Mapping[str, str]] = {
    "questions: _may_be_asked: `{session.State.SPAWNING, session.State.RUNNING}` has SESSION_COMPLETE too": (
        "the assignment leaves Working in the same macrostep, and closes the questions one rule action later"
    ),
    **dict.fromkeys(
        (
            "notifications: announce_task: ",
            "notifications: announce_plan",
            "notifications: announce_limit",
            "notifications: announce_budget: ",
            "notifications: announce_stop",
            "notifications: announce_service: ",
            "notifications: _announce_end: ",
            "notifications: _is_news: ",
            "announcer: note_question: ",
            "announcer: pass_on: ",
        ),
        "it tells more, in another order or with other names; a property only counts kinds, and the tests of the rules"
        " find it",
    ),
    "notifications: tell_workers on account: comes after announce_limit": _ORDER,
    "go_on: `work.state is assignment.State.WORKING and quota.rests(worker)` has the other junction": (
        "every task is given back as soon as it is claimed; claims have no bound, so no search ends, and the tests of"
        " the rules find it"
    ),
    "worker: leave: `worker.record('desired_state').reason or ": _TEXT,
    "does not ask `work.sessions == 1`": _ENDLESS,
    "work_begins: `work.state is assignment.State.WORKING and work.sessions == 1` has the other junction": _ENDLESS,
    "work_begins: `if work.state is assignment.State.WORKING and work.sessions == 1: yield Tell('board', f'ta` is done"
    " always": _ENDLESS,
    "has no case `assignment.Dropped(reason=reason)`": _GONE,
    "`before.state is not assignment.State.WANTING`": _GONE,
    "report: `assignment.State.WANTING` is PREPARING": _GONE,
    "report: `yield Tell('board', to, _given_back(brief, reason))` is not asked for": _GONE,
    "_given_back: ": _GONE,
    "does not tell prompt": _OPAQUE,
    "does not tell failure": _OPAQUE,
    "does not tell kept": _OPAQUE,
    "does not tell result": _OPAQUE,
    "has `yield Tell('board', f'worker_slot:{worker.key}', worker_slot` before": _ORDER,
    "begin_inspection on assignment: comes after report_death": _ORDER,
    "orphans: _found: `if isinstance(event, assignment.Rejected)": _TEXT,
    "next_asked: `if not work.at: return None` is done never": (
        "without a worker at work no preemption is needed, and a worker that gives back then gets the first task anyway"
    ),
    "service: leave: ": _ORDER,
    "service: has_failed: ": "a service that had failed when it was told to stop may report either",
    "service: fire: `yield Dispatch(": (
        "a trigger that waits already runs once, and the process gets a second report of a known fact"
    ),
    "service: obey: `yield Dispatch(PROCESS, process.SuspendRequested())` is asked for twice": (
        "a service that awaits its triggers is suspended at once, not at the next one; it starts nothing either way"
    ),
    **dict.fromkeys(
        (
            "is_unmet: `asked != ('', AccessLevel.UNTRUSTED)",
            "is_unmet: `('', AccessLevel.UNTRUSTED)` begins with the other one",
            "does not ask `usage.is_used_up(worker)`",
            "go_on: `work.state is assignment.State.WORKING and work.sessions and usage",
            "decline: `paused and worker.record(",
            "decline: `worker.record('desired_state').state is desired_state.State.PAUSE` is compared otherwise",
            "abandon: `YieldWanted(recalled.within_ms) if recalled.within_ms else urgent` is the other way round",
            "usage: spent: ",
            "usage: is_used_up: ",
            "usage: _exceeds_share: ",
        ),
        _BY_TESTS,
    ),
    "decline: `desired_state.State.PAUSE` is HOLD": (
        "no agent is paused in these fleets, and a held one may give back a task that it has not begun;"
        " the tests of the rules find it"
    ),
    "restart_agent: `yield Tell('board', f'worker_slot:{worker.key}', worker_slot.RestartDone())` is asked for twice": (
        "the board gets it again before any other message, when no permit is held; the tests of the rules find it"
    ),
    "steering: _taken: `if worker.record('mailbox').taken < number <= given.posted: yield Dispatch('mailbox', mail` is"
    " done always": _BY_TESTS,
    "steering: reaches: ": (
        "an urgent message then interrupts each session, as of an agent that is not steered; the tests of the rules"
        " find it"
    ),
    "steering: post_message: ": (
        "an urgent message for a session whose question waits is posted, and interrupts the session too;"
        " the tests of the rules find it"
    ),
    **dict.fromkeys(("steering: mark_taken", "steering: _taken: ", "steering: taken_by: "), _REPEATED),
    "conversations: choose": "which identifier is chosen decides nothing; the tests of the rules find it",
    "_overlapping: `(path, *folders(path))` begins with the other one": "the order has no meaning",
    "folders: `yield path` is asked for twice": "a worker that is found twice counts once",
    "does not ask `board.entities[ref].state is not worker_slot.State.GONE`": "a worker that is gone has stopped",
    "free_waiting: `if _was_lost(transition) and (not is_lost(record)): for each in _waiting_for(board, record` is done"
    " always": _AGAIN,
    "free_waiting: `_was_lost(transition) and (not is_lost(record))` has the other junction": _AGAIN,
    "free_waiting: `_was_lost(transition) and (not is_lost(record))` does not ask `not is_lost(record)`": _AGAIN,
}
"""By a part of their names: why mutants survive although no property is missing."""
