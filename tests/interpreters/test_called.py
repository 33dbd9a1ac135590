"""The names of wrong values in messages: with the right article, and a class by its kind."""

from enum import Enum
from typing import Any

import pytest

import kiln
from lifefold.interpreters.called import called


class Hue(Enum):
    RED = 1


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (None, "None"),
        (5, "an int"),
        ((), "a tuple"),
        (pytest, "a module"),
        (kiln.Kiln(), "a Kiln"),
        (kiln.Kiln, "a Record class"),
        (kiln.Heat, "a State class"),
        (kiln.Lit, "an Event class"),
        (kiln.Announce, "an Effect class"),
        (Hue, "an Enum class"),
        (int, "a class"),
    ],
    ids=lambda each: str(each)[:20],
)
def test_a_value_is_called_by_its_common_name(given: Any, name: str) -> None:
    """No metaclass is spoken of."""
    assert called(given) == name
