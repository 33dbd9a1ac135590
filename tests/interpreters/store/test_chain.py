"""The link of an entry: the digest that the first logs have, for parts of any size."""

from hashlib import sha256

from hypothesis import example, given
from hypothesis import strategies as st

from lifefold.interpreters.store import Entry
from lifefold.interpreters.store.chain import FIRST, link

SIZES = st.sampled_from([0, 1, 2_047, 2_048, 2_049, 70_000])


TEXTS = st.text(max_size=9)
NUMBERS = st.integers(-(1 << 62), 1 << 62)
BYTES = SIZES.map(bytes)


@given(st.builds(Entry, TEXTS, NUMBERS, NUMBERS, TEXTS, BYTES, BYTES, TEXTS))
@example(Entry("agent/é", 1, 2, "", bytes(2_047), bytes(2_048)))
def test_a_link_is_the_digest_of_each_part_after_its_size(entry: Entry) -> None:
    """A size has eight bytes. Without rules, as in schema 4, an entry has no part for them."""
    parts = [entry.stream.encode(), f"{entry.version} {entry.at_ms}".encode(), entry.key.encode()]
    parts += [entry.envelope, entry.outcome, *([entry.rules.encode()] if entry.rules else [])]
    plain = FIRST + b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    assert link(FIRST, entry) == sha256(plain).digest()
