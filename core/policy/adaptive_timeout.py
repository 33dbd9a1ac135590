"""Adaptive timeout: an estimate of a task's duration, from its description and from past runs of its role (E33).

``timeout = clamp(max(base * complexity * model + 30 s * files, 1.5 * mean of history), 300 s, 7200 s)``, where

- base is 900, 1800, 3600 or 7200 s for a small, medium, large or extra large task. A task is extra large if its scope
  is, if it is large and highly complex, or if its role is architect, security or manager;
- complexity is 0.7, 1 or 1.5 for low, medium or high;
- model is 0.5, 1 or 1.5 for haiku, sonnet or opus, and 1 for any other;
- words are compared without regard to case, and an unknown scope or complexity is refused;
- history are the runs of the same role that ended in ``done`` and took some time. It can only lengthen the estimate.

Confidence is 0.5, or 0.8 if there is a history. Factors are kept in percent, so that the arithmetic is exact.
"""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

BASE_S: Final = {"small": 900, "medium": 1_800, "large": 3_600, "xl": 7_200}
COMPLEXITY_PERCENT: Final = {"low": 70, "medium": 100, "high": 150}
MODEL_PERCENT: Final = {"haiku": 50, "sonnet": 100, "opus": 150}
XL_ROLES: Final = frozenset({"architect", "security", "manager"})
FILE_MS: Final = 30_000
SHORTEST_MS: Final = 300_000
LONGEST_MS: Final = 7_200_000


class Work(msgspec.Struct, frozen=True):
    """The properties of a task that decide its duration. The words are in lower case: ``work`` makes them so."""

    scope: str = "medium"
    complexity: str = "medium"
    model: str = ""
    role: str = ""
    owned_files: int = 0

    def __post_init__(self) -> None:
        """Refuse an unknown scope or complexity. Raises ``ValueError``, which lists the known ones."""
        one_of("scope", self.scope, BASE_S)
        one_of("complexity", self.complexity, COMPLEXITY_PERCENT)


def one_of(name: str, word: str, known: Collection[str]) -> None:
    """Raise ``ValueError``, which lists the known words, unless ``word`` is one of them."""
    if word not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {word!r}")


def work(scope: str, complexity: str, model: str = "", role: str = "", owned_files: int = 0) -> Work:
    """Return a task's size, from words in any case. Raises ``ValueError`` for an unknown scope or complexity."""
    return Work(scope.lower(), complexity.lower(), model.lower(), role.lower(), owned_files)


class PastRun(msgspec.Struct, frozen=True):
    """A past run: the role of its task, its outcome, its duration."""

    role: str
    status: str
    duration_ms: int


class Estimate(msgspec.Struct, frozen=True):
    """The expected duration of a task, the confidence (0 to 1), and the number of past runs behind it."""

    timeout_ms: int
    confidence: float
    samples: int


def bucket(work: Work) -> str:
    """Return the size class of a task: small, medium, large or xl."""
    if work.role in XL_ROLES or (work.scope == "large" and work.complexity == "high"):
        return "xl"
    return work.scope


def estimate(work: Work, history: Iterable[PastRun] = ()) -> Estimate:
    """Return the timeout of a task."""
    percent = COMPLEXITY_PERCENT[work.complexity] * MODEL_PERCENT.get(work.model, 100)
    expected_ms = BASE_S[bucket(work)] * percent // 10 + FILE_MS * max(0, work.owned_files)
    past = [run.duration_ms for run in history if counts(run, work.role)]
    longest_ms = max(expected_ms, 3 * sum(past) // (2 * len(past))) if past else expected_ms
    return Estimate(min(max(longest_ms, SHORTEST_MS), LONGEST_MS), 0.8 if past else 0.5, len(past))


def counts(run: PastRun, role: str) -> bool:
    """Tell whether a past run is evidence for tasks of this role."""
    return run.role.lower() == role and run.status.lower() == "done" and run.duration_ms > 0
