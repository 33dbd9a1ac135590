"""The outcome that an error sentence of an agent means.

A sentence is judged only where the agent says that its session has failed; the output of a tool is never judged. The
words are those of ``core/policy/ends.py``. Words that are told apart only here come first.
"""

import re
from typing import Final

from lifefold.core.policy import ends, outcomes
from lifefold.core.policy.outcomes import Outcome

_WORDS: Final = (
    (
        Outcome.CONVERSATION_LOST,
        (
            r"no conversation found|session id \S+ is already in use|no rollout found|session not found"
            r"|error resuming session|no previous sessions found"
        ),
    ),
    (Outcome.BUDGET_SPENT, r"reached maximum budget"),
    (Outcome.OUT_OF_CREDIT, r"credit balance|insufficient.quota|check your plan and billing|billing is not enabled"),
    (
        Outcome.LIMITED,
        (
            r"hit your (?:\S+ ){0,3}limit|(?:usage|rate|session|weekly) limit|rate_limit|ratelimit|\b429\b|quota"
            r"|resource has been exhausted|too many requests|limit reached"
        ),
    ),
    (
        Outcome.MODEL_UNKNOWN,
        (
            r"no such model|model_not_found|model not found|issue with the selected model"
            r"|model .{1,80} (?:does not exist|is not supported)"
        ),
    ),
    (Outcome.OVERLOADED, r"overloaded|at capacity"),
    (Outcome.LOGIN_REFUSED, r"\b401\b|api key not valid|not able to authenticate|no auth credentials|sign in again"),
    (Outcome.PROMPT_TOO_LONG, r"input token count|ran out of room|too large to compact|exceeds .{0,60}token"),
    (Outcome.TURN_LIMIT, r"max session turns"),
)
"""The patterns of sentences in order of precedence."""

_PATTERNS: Final = tuple((outcome, re.compile(words, re.IGNORECASE)) for outcome, words in _WORDS)


def verdict(sentence: str) -> Outcome:
    """Return the outcome that the error sentence of an agent means; FAILED for unknown words."""
    return known(sentence) or Outcome.FAILED


def known(sentence: str, status: int | None = None) -> Outcome | None:
    """Return the outcome that a sentence means, by its words or else by the exit status; None for unknown ones."""
    found = next((outcome for outcome, words in _PATTERNS if words.search(sentence)), None)
    return found or outcomes.by_diagnosis(ends.diagnosis(sentence, status))


_REFUSED_COMMAND: Final = re.compile(
    r"unknown option|option '.{1,80}' argument .{1,80} is invalid|missing required argument|too many arguments"
    r"|unexpected argument|invalid value .{1,200} for '|required arguments were not provided|a value is required for"
    r"|unrecognized (?:arguments?|subcommand|option)|expected (?:one|at least one) argument|invalid choice"
    r"|^unknown arguments?: |not enough non-option arguments|error loading config"
    r"|cannot be used with root",
    re.IGNORECASE,
)


def refuses_command(sentence: str) -> bool:
    """Tell whether a program says that it does not accept its arguments or settings.

    It counts only for a program that ended before it began. The words are those of commander.js (Claude Code), clap
    (Codex), yargs (opencode, Gemini CLI) and argparse (Aider).
    """
    return _REFUSED_COMMAND.search(sentence) is not None
