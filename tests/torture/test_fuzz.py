"""No input makes a decoder or a reader raise an error that it does not document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz import PIECES, Change, FuzzCampaign, Reader, changed, readers, tried

CHANGES = st.lists(
    st.builds(
        Change,
        st.integers(0, 4),
        st.floats(0, 1),
        st.integers(0, 40),
        st.sampled_from(PIECES) | st.binary(max_size=8),
    ),
    max_size=4,
)

SLOW = "fleet file"
"""A reader that looks at programs and repositories, so the campaign alone tries it."""


@pytest.mark.parametrize("name", [name for name in readers() if name != SLOW])
def test_a_reader_takes_a_valid_input(name: str) -> None:
    """So the changed inputs are near to valid ones."""
    reader = readers()[name]
    assert reader.inputs
    for text in reader.inputs:
        reader.read(text)


@pytest.mark.parametrize("name", [name for name in readers() if name != SLOW])
@given(number=st.integers(0), changes=CHANGES)
def test_a_reader_raises_documented_errors_only(name: str, number: int, changes: list[Change]) -> None:
    reader = readers()[name]
    assert tried(reader, changed(reader.inputs[number % len(reader.inputs)], changes)) == ""


@pytest.mark.parametrize("name", [name for name in readers() if name != SLOW])
def test_a_reader_takes_any_depth(name: str) -> None:
    """Nesting that is deeper than the decoder's stack is no value, and no error of this program."""
    assert tried(readers()[name], b'{"a":' * 50_000) == ""
    assert tried(readers()[name], b"[" * 100_000) == ""


def test_an_error_that_is_not_documented_is_found() -> None:
    def read(text: bytes) -> object:
        return text.decode()

    assert tried(Reader([b""], read), b"\xff").startswith("UnicodeDecodeError")
    assert tried(Reader([b""], read, (UnicodeError,)), b"\xff") == ""


def test_the_trials_of_the_campaign_go_round_all_readers() -> None:
    campaign = FuzzCampaign()
    names = [name for name in readers() if name != SLOW]
    assert [campaign.attempt(n).point for n, name in enumerate(readers()) if name != SLOW] == names
