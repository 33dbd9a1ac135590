"""Limits: a value that cannot work is refused, by the name of its field."""

from typing import Any

import msgspec
import pytest

from lifefold.core.policy.limits import at_least, between, one_of


class Set(msgspec.Struct, frozen=True):
    """Some settings."""

    pause_ms: int = 1
    timeout_ms: int | None = None
    jitter: float = 0.0
    policy: str = "never"


def must_fit(limits: Set) -> None:
    """Check everything."""
    at_least(1, limits, "pause_ms", "timeout_ms")
    between(0, 1, limits, "jitter")
    one_of(("never", "always"), limits, "policy")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pause_ms": 0}, "pause_ms must be at least 1, not 0"),
        ({"timeout_ms": -3}, "timeout_ms must be at least 1, not -3"),
        ({"jitter": 1.5}, "jitter must be between 0 and 1, not 1.5"),
        ({"jitter": float("nan")}, "jitter must be between 0 and 1, not nan"),
        ({"policy": "often"}, "policy must be one of never, always, not 'often'"),
    ],
    ids=str,
)
def test_what_could_never_work_is_refused_by_name(fields: dict[str, Any], said: str) -> None:
    """With what it must be, and what it is."""
    with pytest.raises(ValueError, match=f"^{said}$"):
        must_fit(Set(**fields))


@pytest.mark.parametrize("fields", [{}, {"timeout_ms": 1}, {"jitter": 1.0}, {"policy": "always"}], ids=str)
def test_what_could_work_is_accepted(fields: dict[str, Any]) -> None:
    """The bounds included; None is no limit."""
    must_fit(Set(**fields))
