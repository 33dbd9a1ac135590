"""What came of all mistakes in the fleet's rules, as ``tests/mutants/results`` has it, and what the page says of it."""

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
from rule_campaign import Fate, Tried, campaign_of
from rule_mutation import Mistake
from rule_sources import FEATURES, SOURCES
from simulated_results import kept as simulated
from simulated_results import section as simulated_section
from small_fleets import SMALL

PARTS: Final = {f"fleet-{source.name}": source for source in (*SOURCES, *FEATURES)}
"""The parts of the campaign: the rules of each type of aggregate, and those of what only some fleets have."""

NAMES: Final = tuple(PARTS)

HEAD: Final = """
## Mutants of the fleet's rules

The fleet's rules are functions, not rows. So a program changes their source (`tests/support/rule_mutation.py`):

- a rule is lost, or runs after the next one;
- a rule action is lost or doubled, goes to another receiver or number, or has another event;
- a condition is inverted, always or never true, or loses a part;
- a state is replaced, added to a set or removed from it;
- an index of the board omits something.

Texts for people are left unchanged. Mutants of the board and of the worker are checked in these {fleets} small fleets:

{names}

Optional features have fleets of their own, in which they are on:

| rules of | fleets |
| --- | --- |
{featured}

- *killed*: `lifefold check` finds a broken property in one of its fleets, or an error of a rule.
- *equivalent*: no reachable behaviour differs: every input, in every reachable state of an aggregate, has the same
  outcome.
- *needless*: the mutant sends additional messages only, and they change nothing wherever they arrive.
- *survived*: none of these. The reason is listed below, if it is known.

These fleets have witnesses (`tests/support/witnessed_fleet.py`). A witness remembers data that the rules do not need:
the merges of a worker, its urgent messages, the longest wait. Some mutants are found by witnesses alone.

"""


class Left(msgspec.Struct, frozen=True):
    """A mistake that no property has found, and the fleets in which it is none the less another one."""

    mistake: str
    differs: tuple[str, ...]


class Rules(msgspec.Struct, frozen=True):
    """What came of the mistakes in one type's rules."""

    name: str
    mistakes: int
    fates: dict[str, int]
    found: dict[str, int]
    """By small fleet: how many were found there first."""
    killers: dict[str, int]
    """By promise: how many it was the first to find."""
    survivors: tuple[Left, ...]
    untried: int = 0
    """Of how many is not known what comes of them."""

    def unexplained(self) -> tuple[str, ...]:
        """Return the mistakes that survived for no known reason."""
        return tuple(each.mistake for each in self.survivors if not reason(each.mistake))


def result(name: str, ended: Iterable[Tried]) -> Rules:
    """Sum up a part of the campaign."""
    every = tuple(ended)
    killed = [each for each in every if each.fate is Fate.KILLED]
    return Rules(
        name,
        len(every),
        _counted(str(each.fate) for each in every),
        _counted(each.where for each in killed),
        _counted(each.by for each in killed),
        tuple(Left(each.mistake.name, each.differs) for each in every if each.fate is Fate.SURVIVED),
    )


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def run(name: str, within_s: float = math.inf) -> Rules:
    """Try all mistakes of a part, or as many as there is time for; what was tried before of the same need not be again.

    They are tried in an order that takes from everywhere: so those that are left are not all of the same rules.
    """
    campaign = campaign_of(PARTS[name])
    until_s, tried = monotonic() + within_s, Records(name)
    every = sorted(campaign.mistakes, key=lambda each: sha256(each.name.encode()).digest())
    ended = {each.name: known for each in every if (known := tried.known(each)) is not None}
    for each in every:
        if each.name not in ended and monotonic() < until_s:
            ended[each.name] = campaign.attempt(each)
            tried.keep(ended[each.name])
    found = result(name, (ended[each.name] for each in campaign.mistakes if each.name in ended))
    return replace(found, mistakes=len(campaign.mistakes), untried=len(campaign.mistakes) - len(ended))


class Records:
    """What became of the mistakes of a part that were tried, as long as nothing of what they depend on is changed."""

    def __init__(self, name: str) -> None:
        """Read it."""
        text = b"".join(path.read_bytes() for path in sorted(_depended_on()))
        self._file: Final = CACHE / sha256(text).hexdigest()[:16] / f"{name}.jsonl"
        lines = self._file.read_bytes().splitlines() if self._file.exists() else []
        self._known: Final = {each.mistake: each for each in (msgspec.json.decode(one, type=One) for one in lines)}

    def known(self, mistake: Mistake) -> Tried | None:
        """Return what became of a mistake; None if that is not known."""
        one = self._known.get(mistake.name)
        return None if one is None else Tried(mistake, Fate(one.fate), one.where, one.by, one.differs)

    def keep(self, ended: Tried) -> None:
        """Write down what became of one."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        one = One(ended.mistake.name, str(ended.fate), ended.where, ended.by, ended.differs)
        with self._file.open("ab") as file:
            file.write(msgspec.json.encode(one) + b"\n")


class One(msgspec.Struct, frozen=True):
    """What became of one mistake."""

    mistake: str
    fate: str
    where: str
    by: str
    differs: tuple[str, ...]


CACHE: Final = ROOT / ".cache" / "mutants"
"""Where that is kept, so that a campaign that was broken off goes on where it was."""


def _depended_on() -> Iterator[Path]:
    yield from (ROOT / "core").rglob("*.py")
    yield from (ROOT / "interpreters" / "check").rglob("*.py")
    yield from (each for each in Path(__file__).parent.glob("*.py") if "results" not in each.name)


def keep(found: Rules) -> None:
    """Write a result down."""
    text = msgspec.json.format(msgspec.json.encode(found), indent=1)
    (FOLDER / f"{found.name}.json").write_bytes(text + b"\n")


def kept() -> tuple[Rules, ...]:
    """Return what was written down."""
    files = [FOLDER / f"{name}.json" for name in NAMES]
    return tuple(msgspec.json.decode(file.read_bytes(), type=Rules) for file in files if file.exists())


def whole_page() -> str:
    """Return all of the page: what came of the lifecycles, of the fleet's rules, and of simulating both."""
    return page(kept_of_lifecycles()) + section(kept()) + simulated_section(simulated())


def section(results: Iterable[Rules]) -> str:
    """Return what the page says of the fleet's rules."""
    every = tuple(results)
    columns = ("rules of", "mutants", *("equivalent" if fate is Fate.SAME else str(fate) for fate in Fate))
    lines = [f"| {' | '.join(columns)} |", f"| --- |{' ---: |' * (len(columns) - 1)}"]
    for each in every:
        counts = (each.mistakes, *(each.fates.get(fate, 0) for fate in Fate))
        lines.append(f"| {each.name} | {' | '.join(f'{count:,}' for count in counts)} |")
    for each in every:
        lines += ["", f"Of {each.name}, {each.untried:,} were not tried yet."] if each.untried else []
    for each in every:
        lines += ["", f"**{each.name}**", ""] if each.survivors else []
        lines += [f"- `{left.mistake.replace('`', chr(39))}`: {reason(left.mistake)}" for left in each.survivors]
    featured = "\n".join(f"| {source.name} | {'; '.join(fleets)} |" for source, fleets in FEATURES.items())
    head = HEAD.format(fleets=len(SMALL), names="\n".join(f"- {name}" for name in SMALL), featured=featured)
    return head + "\n".join(lines) + "\n"


def reason(mistake: str) -> str:
    """Return why a mistake survives although nothing is missing; nothing if that is not known."""
    return next((why for words, why in EXPLAINED.items() if words in mistake), "")


_GONE: Final = (
    "a worker that gives a task back has stopped and reports that next: the board then takes the task back by itself"
)
_TEXT: Final = "only a text for people differs"
_ENDLESS: Final = (
    "every session repeats the message, and it is refused; its delivery can take any time, so messages in flight have"
    " no bound, and no search ends"
)

_OPAQUE: Final = "it is data for the agent: no rule reads it, and no property may; the tests of the rules find it"
_ORDER: Final = "nothing depends on the order of the two"
_AGAIN: Final = "a task that is opened in vain is blocked again in the same step, by the missing dependency"

_BY_TESTS: Final = "no property covers it; the tests of the rules find it"

EXPLAINED: Final[Mapping[str, str]] = {
    "worker: leave: `worker.record('desired_state').reason or ": _TEXT,
    "does not ask `work.sessions == 1`": _ENDLESS,
    "has no case `assignment.Dropped(reason=reason)`": _GONE,
    "`before is not assignment.State.WANTING`": _GONE,
    "report: `assignment.State.WANTING` is PREPARING": _GONE,
    "report: `yield Tell('board', to, _given_back(brief, reason))` is not asked for": _GONE,
    "_given_back: ": _GONE,
    "does not tell prompt": _OPAQUE,
    "does not tell failure": _OPAQUE,
    "does not tell kept": _OPAQUE,
    "does not tell result": _OPAQUE,
    "has `yield Tell('board', f'worker_slot:{worker.key}', worker_slot` before": _ORDER,
    "keep_watch on session: comes after work_begins": _ORDER,
    "bury on assignment: comes after report": _ORDER,
    "next_asked: `if not work.at: return None` is done never": (
        "while no agent works there is nothing to preempt, and a free agent gets the first task anyway"
    ),
    "service: leave: ": _ORDER,
    "service: has_failed: ": "of a service that had failed before its stop, either answer is right",
    "service: fire: `yield Dispatch(": "a waiting trigger runs once, and the process gets a known event once more",
    "service: obey: `yield Dispatch(PROCESS, process.SuspendRequested())` is asked for twice": (
        "a service that awaits its triggers is suspended at once, not at the next trigger; it begins no run either way"
    ),
    **dict.fromkeys(
        (
            "is_unmanned: `asked != ('', AccessLevel.UNTRUSTED)",
            "is_unmanned: `('', AccessLevel.UNTRUSTED)` begins with the other one",
            "does not ask `metering.is_used_up(worker)`",
            "go_on: `work.state is assignment.State.WORKING and work.sessions and metering",
            "decline: `paused and worker.record(",
            "decline: `worker.record('desired_state').state is desired_state.State.PAUSE` is compared otherwise",
            "abandon: `YieldWanted(within_ms) if within_ms else session.UrgentMessage()` is the other way round",
            "metering: spent: ",
            "metering: is_used_up: ",
        ),
        _BY_TESTS,
    ),
    "decline: `desired_state.State.PAUSE` is HOLD": (
        "no agent is paused in these fleets, and a held one may give back unbegun work; the tests of the rules find it"
    ),
    "begin_anew: `yield Tell('board', f'worker_slot:{worker.key}', worker_slot.RestartDone())` is asked for twice": (
        "the second message arrives before any other, when no permit is held any more; the tests of the rules find it"
    ),
    "_overlapping: `(path, *folders(path))` begins with the other one": "the order of these has no meaning",
    "folders: `yield path` is asked for twice": "a task that is found twice counts once",
    "does not ask `board.entities[ref].state is not worker_slot.State.GONE`": "an agent that is gone has stopped",
    "free_waiting: `if _was_lost(transition) and (not is_lost(record)): for each in _waiting_for(board, record` is done"
    " always": _AGAIN,
    "free_waiting: `_was_lost(transition) and (not is_lost(record))` has the other junction": _AGAIN,
    "free_waiting: `_was_lost(transition) and (not is_lost(record))` does not ask `not is_lost(record)`": _AGAIN,
}
"""By words of mistakes: why they survive although nothing is missing."""
