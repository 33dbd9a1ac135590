"""The arguments of every facade: checked in one way, and kept as plain values."""

from enum import Enum
from typing import Any

import pytest

from lifefold.interpreters.facades.arguments import TEXT_CHARACTERS, one_of, string, text, whole, yes_or_no
from lifefold.interpreters.facades.process import ProcessState


class Loud(str, Enum):  # noqa: UP042 - such an enumeration prints its name, and that is the point
    """A text that prints as something else."""

    OUT_OF_MEMORY = "out of memory"


@pytest.mark.parametrize("check", [string, text])
def test_a_text_is_kept_as_what_it_is_equal_to(check: Any) -> None:
    """Also if it is a member of an enumeration, which may print as something else."""
    for given in (Loud.OUT_OF_MEMORY, ProcessState.RUNNING, "plain"):
        kept = check("reason", given)
        assert (type(kept), kept) == (str, given)


@pytest.mark.parametrize(
    ("check", "given", "raised", "said"),
    [
        (string, None, TypeError, "it must be a str, not NoneType"),
        (text, b"x", TypeError, "it must be a str, not bytes"),
        (text, "x" * (TEXT_CHARACTERS + 1), ValueError, "it must have at most 10000 characters, not 10001"),
        (text, "\ud800", ValueError, "it has half a surrogate pair"),
        (whole, True, TypeError, "it must be an int, not bool"),
        (whole, 1.0, TypeError, "it must be an int, not float"),
        (whole, 10**30, ValueError, "it must be between 1 and 9"),
        (yes_or_no, 1, TypeError, "it must be a bool, not int"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(
    check: Any, given: object, raised: type[Exception], said: str
) -> None:
    """The wrong type is one error, a wrong value another one."""
    more = (range(1, 10),) if check is whole else ()
    with pytest.raises(raised, match=said):
        check("it", given, *more)


@pytest.mark.parametrize("given", ["asleep", 5, None, ["idle"]])
def test_a_word_that_is_none_of_those_there_are_is_refused_with_all_of_them(given: object) -> None:
    """The error lists the accepted values."""
    with pytest.raises(ValueError, match="mood must be one of out of memory, not ") as raised:
        one_of("mood", Loud, given)
    assert repr(given) in str(raised.value)
    assert one_of("mood", Loud, "out of memory") is Loud.OUT_OF_MEMORY


def test_a_text_may_have_any_length_where_nothing_else_is_said() -> None:
    """Names must not be empty; what is only a string may be anything."""
    with pytest.raises(ValueError, match="it must not be empty"):
        text("it", "", empty=False)
    with pytest.raises(ValueError, match="it must not be empty"):
        string("it", "", empty=False)
    assert text("it", "") == ""
    assert len(string("it", "\ud800" * 20_000)) == 20_000
