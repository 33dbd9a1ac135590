"""Each adapter of lifefold keeps the properties of the kit, with the recorded output of its program."""

import pytest

from agent_recordings import recordings
from lifefold.interpreters.adapters import Brief, adapter_of
from lifefold.interpreters.testing import AdapterBench, AdapterConformance, Recording
from lifefold.interpreters.testing.adapters import fuzz

PROGRAMS = ("claude", "codex", "opencode", "gemini", "aider", "acp")
OWN = b'working\n{"lifefold": {"cost_usd": 0.25, "input_tokens": 10, "output_tokens": 2}}\nno api key\n'


def bench_of(name: str) -> AdapterBench:
    """Return an adapter with its recordings; a command runs other agents, so it reads theirs."""
    if name != "command":
        return AdapterBench(adapter_of(name), tuple(recordings(name).values()), text=name == "aider")
    known = [recordings(program)["success"] for program in ("claude", "codex", "aider")]
    brief = Brief("", arguments=("sh", "-c", "agent", "--", "{prompt}"))
    return AdapterBench(adapter_of(name), (Recording("own form", OWN, 1), *known), brief, text=True)


class TestClaude(AdapterConformance):
    @pytest.fixture
    def bench(self) -> AdapterBench:
        return bench_of("claude")


class TestCodex(AdapterConformance):
    @pytest.fixture
    def bench(self) -> AdapterBench:
        return bench_of("codex")


class TestOpencode(AdapterConformance):
    @pytest.fixture
    def bench(self) -> AdapterBench:
        return bench_of("opencode")


class TestGemini(AdapterConformance):
    @pytest.fixture
    def bench(self) -> AdapterBench:
        return bench_of("gemini")


class TestAider(AdapterConformance):
    @pytest.fixture
    def bench(self) -> AdapterBench:
        return bench_of("aider")


class TestCommand(AdapterConformance):
    @pytest.fixture
    def bench(self) -> AdapterBench:
        return bench_of("command")


INPUTS = 10_000
"""The hostile lines of a campaign, for each adapter."""


@pytest.mark.campaign
@pytest.mark.parametrize("name", [*PROGRAMS, "command"])
def test_ten_thousand_hostile_lines_raise_no_error_and_stay_small(name: str) -> None:
    """They are torn, doubled, in another order, huge, deeply nested, of other types, and no UTF-8."""
    assert fuzz(bench_of(name), INPUTS) >= INPUTS
