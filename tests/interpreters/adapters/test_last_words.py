"""The search for a sentence in an object of JSON takes steps for what is there, and none for what is missing."""

from typing import Any

import pytest

from lifefold.interpreters.adapters import last_words


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, ""),
        ({"type": "step", "error": {"data": {}}}, ""),
        ({"error": {"data": {"message": "no key"}}}, "no key"),
        ({"result": 5, "content": [{"text": "first"}, {"text": "last"}]}, "last"),
    ],
)
def test_a_key_that_is_missing_leads_no_search(
    found: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each object asks for its ten keys; before, each key that was missing asked for ten more."""
    steps = 0
    search = last_words._sentence

    def counted(of: object, depth: int = 0) -> str:
        nonlocal steps
        steps += 1
        return search(of, depth)

    monkeypatch.setattr(last_words, "_sentence", counted)
    assert last_words.of_line(b"", (found,)).said == said
    assert 1 < steps < 50
