"""What a fleet file may say of prices, and the budgets that they make possible."""

from pathlib import Path

import pytest

from lifefold.interpreters.adapters.prices import Price
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load

FILE = """
[fleet]
name = "demo"

[fleet.budget]
usd = 5
session_usd = 1

[[agents]]
name = "coder"
kind = "codex"
program = "sh"
session_timeout = "1m"
{model}

[[tasks]]
id = "T1"
prompt = "do it"
verify = [["true"]]

{prices}
"""
GPT = '[[prices]]\nmodel = "gpt"\ninput = 1.25\noutput = 10\n'


def loaded(folder: Path, prices: str, model: str = 'model = "gpt"') -> Fleet:
    """Return a fleet with an agent that reports tokens, a budget in dollars, and these prices."""
    file = folder / "fleet.toml"
    file.write_text(FILE.format(model=model, prices=prices))
    return load(file)


def test_a_price_allows_a_budget_in_dollars_for_an_agent_that_reports_tokens(tmp_path: Path) -> None:
    """Cached input has the price of input unless it has its own."""
    assert loaded(tmp_path, GPT).prices == {"gpt": Price(1_250_000, 1_250_000, 10_000_000)}
    assert loaded(tmp_path, f"{GPT}cached_input = 0.125").prices["gpt"].cached_input == 125_000
    assert loaded(tmp_path, f"{GPT}cached_input = 0").prices["gpt"].cached_input == 0


@pytest.mark.parametrize(
    ("prices", "model", "what"),
    [
        ("", 'model = "gpt"', r'agents: .*accepted: \[\[prices\]\] for model = "gpt", or a budget of tokens'),
        (GPT, 'model = "other"', r'agents: .*accepted: \[\[prices\]\] for model = "other", or a budget of tokens'),
        (GPT, "", r"agents: .*accepted: a model with \[\[prices\]\], or a budget of tokens"),
        (GPT + GPT, 'model = "gpt"', r"prices\[2\]\.model.*has a price already; accepted: one price"),
        (GPT.replace("1.25", "-1"), 'model = "gpt"', r"prices\[1\]\.input.*accepted: a price in US dollars from 0"),
        (GPT.replace("1.25", "true"), 'model = "gpt"', r"prices\[1\]\.input"),
        (GPT.replace("output = 10", ""), 'model = "gpt"', r"prices\[1\].*output is missing"),
    ],
    ids=["no-price", "another-model", "no-model", "twice", "negative", "no-number", "incomplete"],
)
def test_a_mistake_is_named_by_its_place(tmp_path: Path, prices: str, model: str, what: str) -> None:
    """With what is accepted."""
    with pytest.raises(FleetFileError, match=what):
        loaded(tmp_path, prices, model)


def test_a_price_is_no_part_of_the_meaning(tmp_path: Path) -> None:
    """It decides about no task, so a new price is no plan change."""
    assert loaded(tmp_path, GPT).meaning == loaded(tmp_path, GPT.replace("1.25", "2")).meaning


def test_the_reservation_of_a_silent_session_is_no_price_for_one_that_reports_tokens(tmp_path: Path) -> None:
    """A session that reports tokens is not silent, so the error names the prices also with ``unreported``."""
    text = FILE.replace("session_usd = 1", 'session_usd = 1\nunreported = "share"')
    (tmp_path / "fleet.toml").write_text(text.format(model='model = "gpt"', prices=""))
    with pytest.raises(FleetFileError, match=r'\[\[prices\]\] for model = "gpt"'):
        load(tmp_path / "fleet.toml")
