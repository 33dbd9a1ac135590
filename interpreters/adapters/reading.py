"""What the shipped adapters remember of a session while they read its output: a value of bounded size.

The functions return the next reading and the facts that are new: a repeated line has none. ``closed`` says how a
session ended if its program has not said so itself.
"""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import verdicts
from lifefold.interpreters.adapters.adapter import Now
from lifefold.interpreters.adapters.facts import (
    ConversationBegan,
    Cost,
    Counted,
    Ended,
    Fact,
    Limited,
    ModelCost,
    PermissionDenied,
    Said,
    Spent,
    Tokens,
    Work,
    WorkEnded,
    WorkStarted,
)
from lifefold.interpreters.adapters.until import until_of

MOST_OPEN: Final = 64
"""The most works that are remembered as begun, and the most tools as denied."""

MOST_SEEN: Final = 256
"""The most identifiers that are remembered to recognise a repeated line."""

MOST_TOTALS: Final = 16
"""The most conversations of a session whose totals are remembered."""

SENTENCE_CHARS: Final = 400
"""The longest reason of an end, which screens and prompts repeat."""

_EXACT: Final = "="
"""The beginning of a remembered limit whose end the program told exactly."""

_ERROR: Final = re.compile(
    r"\b(?:errors?|fatal|failed|exception|panic\w*|cannot|can't|invalid|unknown|unexpected|not found|denied|refused)\b",
    re.IGNORECASE,
)


class Total(msgspec.Struct, frozen=True):
    """The last total of a conversation, by its coverage, with its first one at the beginning of the session."""

    conversation: str
    counted: Counted
    cost: Cost
    before: Cost | None = None


class Reading(msgspec.Struct, frozen=True):
    """What was read so far.

    ``open`` has the works under way as (identifier, name), ``denied`` the refused tools as (name, reason) unless a
    later use of the tool succeeded. ``seen`` has identifiers of lines that must not count twice. ``spent`` is the sum
    of the steps of this session. ``outcome`` and ``reason`` are the agent's own word about its end. ``trouble`` is an
    error and ``limit`` a limit that nothing followed. ``last`` is the last text for people, ``paragraph`` the beginning
    of one that goes on in the next line. ``chosen`` is a conversation that the command line names, and no line does.
    """

    conversation: str = ""
    chosen: str = ""
    open: tuple[tuple[str, str], ...] = ()
    denied: tuple[tuple[str, str], ...] = ()
    seen: tuple[str, ...] = ()
    spent: Cost = Cost()
    totals: tuple[Total, ...] = ()
    outcome: Outcome | None = None
    reason: str = ""
    trouble: str = ""
    limit: str = ""
    last: str = ""
    paragraph: str = ""


Facts = tuple[Fact, ...]

Step = tuple[Reading, Facts]
"""The next reading, and the new facts."""


def began(reading: Reading, conversation: str) -> Step:
    """Note the conversation; its name is news once. One that a command line would take for an option is none."""
    if not conversation or conversation.startswith("-") or conversation == reading.conversation:
        return reading, ()
    return msgspec.structs.replace(reading, conversation=conversation), (ConversationBegan(conversation),)


def once(reading: Reading, identifier: str) -> Reading | None:
    """Remember an identifier; None if it is known, so that its line counts once."""
    if identifier in reading.seen:
        return None
    return msgspec.structs.replace(reading, seen=(*reading.seen, identifier)[-MOST_SEEN:])


def started(reading: Reading, work: Work, identifier: str, name: str = "", subject: str = "") -> Step:
    """Note the beginning of some work."""
    fresh = once(reading, f"started {identifier}")
    if fresh is None or len(reading.open) >= MOST_OPEN:
        return reading, ()
    under_way = (*reading.open, (identifier, name))
    begun = WorkStarted(work, identifier, name, subject)
    return msgspec.structs.replace(fresh, open=under_way, trouble="", limit=""), (begun,)


def ended(reading: Reading, work: Work, identifier: str, *, ok: bool = True) -> Step:
    """Note the end of some work that has begun; a tool that succeeds is no longer denied."""
    name = next((name for known, name in reading.open if known == identifier), None)
    if name is None:
        return reading, ()
    under_way = tuple(each for each in reading.open if each[0] != identifier)
    denied = tuple(each for each in reading.denied if not (ok and each[0] == name))
    return msgspec.structs.replace(reading, open=under_way, denied=denied, trouble="", limit=""), (
        WorkEnded(work, identifier, ok),
    )


def denied(reading: Reading, identifier: str, tool: str, reason: str) -> Step:
    """Note that a tool was refused."""
    fresh = once(reading, f"denied {identifier}")
    if fresh is None:
        return reading, ()
    tools = (*(each for each in reading.denied if each[0] != tool), (tool, reason[:SENTENCE_CHARS]))[-MOST_OPEN:]
    return msgspec.structs.replace(fresh, denied=tools), (PermissionDenied(identifier, tool, reason),)


def spent(
    reading: Reading,
    total: Cost,
    counted: Counted,
    models: Iterable[ModelCost] = (),
    *,
    before: Cost | None = None,
) -> Step:
    """Note a new total; one that is not higher is no news.

    ``before`` is the program's total before this session, by the first total; later ones do not change it.
    """
    key = (reading.conversation, counted)
    known = next((each for each in reading.totals if (each.conversation, each.counted) == key), Total(*key, Cost()))
    total = highest(known.cost, total)
    if total.tokens == known.cost.tokens and (total.microusd or 0) == (known.cost.microusd or 0):
        return reading, ()
    before = before if known.cost == Cost() else known.before
    others = tuple(each for each in reading.totals if (each.conversation, each.counted) != key)
    totals = (*others, Total(*key, total, before))[-MOST_TOTALS:]
    return msgspec.structs.replace(reading, totals=totals), (Spent(key[0], total, counted, tuple(models), before),)


def step_spent(reading: Reading, identifier: str, cost: Cost) -> Step:
    """Add the cost of one step of this session; a step counts once."""
    fresh = once(reading, f"spent {identifier}")
    if fresh is None:
        return reading, ()
    summed = fresh.spent.plus(cost)
    return spent(msgspec.structs.replace(fresh, spent=summed, trouble="", limit=""), summed, Counted.SESSION)


def highest(one: Cost, other: Cost) -> Cost:
    """Return the higher of two totals, each number by itself."""
    tokens = Tokens(
        max(one.tokens.input, other.tokens.input),
        max(one.tokens.cache_read, other.tokens.cache_read),
        max(one.tokens.cache_write, other.tokens.cache_write),
        max(one.tokens.output, other.tokens.output),
    )
    named = [each for each in (one.microusd, other.microusd) if each is not None]
    return Cost(tokens, max(named) if named else None)


def limited(reading: Reading, reason: str, now: Now, *, until_ms: int | None = None, scope: str = "") -> Step:
    """Note a limit of the account; the sentence may tell its end.

    The same limit is no news until the agent has done something else. Nor is a sentence, after an exact ``until_ms``.
    """
    is_exact = until_ms is not None
    until_ms = until_of(reason, now) if until_ms is None else until_ms
    limit = f"{_EXACT if is_exact else ''}{until_ms}"
    known = limit == reading.limit or (reading.limit.startswith(_EXACT) and not is_exact)
    if known or (reading.limit and until_ms is None):
        return reading, ()
    return msgspec.structs.replace(reading, limit=limit), (Limited(until_ms, scope, reason),)


def said(reading: Reading, text: str) -> Step:
    """Note a text for people."""
    if not text:
        return reading, ()
    return msgspec.structs.replace(reading, last=text[:SENTENCE_CHARS], trouble="", limit=""), (Said(text),)


def noted(reading: Reading, text: str) -> Reading:
    """Note a line beside the program's own format, if it looks like an error; the reason of a crash quotes it.

    Lines in brackets are measurements and logs of a program.
    """
    wanted = _ERROR.search(text) and not text.startswith("[")
    return msgspec.structs.replace(reading, last=text[:SENTENCE_CHARS]) if wanted else reading


def troubled(reading: Reading, reason: str, now: Now) -> Step:
    """Note an error that need not be final, because the program tries again; a limit is a fact of its own."""
    if not reason:
        return reading, ()
    state = msgspec.structs.replace(reading, trouble=reason[:SENTENCE_CHARS])
    return limited(state, reason, now) if verdicts.verdict(reason) is Outcome.LIMITED else (state, ())


def judged(reading: Reading, outcome: Outcome, reason: str = "") -> Reading:
    """Note the agent's own word about its end; the last one counts."""
    return msgspec.structs.replace(reading, outcome=outcome, reason=reason[:SENTENCE_CHARS])


def failed(reading: Reading, reason: str, now: Now, outcome: Outcome | None = None) -> Step:
    """Note that the agent says that it has failed; a limit is a fact of its own.

    Without an ``outcome`` the words of the reason decide.
    """
    outcome = outcome or verdicts.verdict(reason)
    state = judged(reading, outcome, reason)
    return limited(state, reason, now) if outcome is Outcome.LIMITED else (state, ())


def closed(reading: Reading, status: int | None) -> Ended:
    """Return the end of a session.

    The agent's own word about a failure counts first, then an error that nothing followed, then a refused tool. A
    success is one only if the process has exited well, too. A program that ends before it begins may refuse its command
    line: another try gets the same answer.
    """
    if reading.outcome is not None and reading.outcome is not Outcome.SUCCESS:
        return Ended(reading.outcome, reading.reason)
    if reading.trouble and (outcome := verdicts.verdict(reading.trouble)) is not Outcome.FAILED:
        return Ended(outcome, reading.trouble)
    if status == 0 and reading.denied and not reading.trouble:
        tool, reason = reading.denied[-1]
        return Ended(Outcome.DENIED, f"{tool}: {reason}" if reason else f"{tool} was refused")
    if status == 0 and reading.outcome is Outcome.SUCCESS:
        return Ended(Outcome.SUCCESS, reading.reason)
    if status and status > 0 and not (reading.conversation or reading.seen) and verdicts.refuses_command(reading.last):
        return Ended(Outcome.REFUSED_COMMAND, reading.last)
    return Ended(Outcome.CRASHED, _crash(reading, status))


def _crash(reading: Reading, status: int | None) -> str:
    """Return why a session ended without a word of its own."""
    if status is None:
        how = "ended in an unknown way"
    elif status < 0:
        how = f"ended by signal {-status}"
    else:
        how = f"ended with status {status}"
    how = f"{how}, after its result" if reading.outcome else f"{how}, without a result"
    words = reading.trouble or reading.last
    return f"{how}: {words}" if words else how
