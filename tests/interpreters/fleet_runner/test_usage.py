"""The reported cost of a session: each known form is read, and no output does harm."""

import json
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet_sandbox import Sandbox
from lifefold.core.lifecycles.session import Usage
from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import Ended, Now, adapter_of
from lifefold.interpreters.adapters.hostile import MOST_TOKENS, MOST_USD
from lifefold.interpreters.fleet_runner.session_facts import SessionFacts, facts_of
from lifefold.interpreters.processes import SessionExit
from lifefold.interpreters.store import SqliteStore
from session_scripts import Bell

MOST_MICROUSD = MOST_USD * 10**6


def usage_of(output: bytes) -> Usage:
    """Return the cost of a session of a command with this output."""
    adapter, found = adapter_of("command"), SessionFacts(Ended(Outcome.SUCCESS))
    state = adapter.initial
    for line in output.split(b"\n"):
        state, facts = adapter.read(state, line, Now(0))
        for fact in facts:
            found = found.after(fact)
    return found.usage


async def spent(directory: Path) -> Usage:
    """Return the cost of a session of a command in a directory."""
    return (await facts_of(adapter_of("command"), directory, SessionExit(outcome="exited", at_ms=0, code=0))).usage


def lines(*values: Any) -> bytes:
    """Return an output of one line of JSON for each value."""
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def claude(cost: Any = 0.0712, *, conversation: str = "c1", **more: Any) -> dict[str, Any]:
    """Return what Claude Code prints last."""
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "duration_ms": 41_204,
        "num_turns": 3,
        "result": 'Done: "type": "result" né à 0,01 $ 😀.\n',
        "session_id": conversation,
        "total_cost_usd": cost,
        "usage": {
            "input_tokens": 12,
            "cache_creation_input_tokens": 3_000,
            "cache_read_input_tokens": 45_000,
            "output_tokens": 678,
            "server_tool_use": {"web_search_requests": 0},
            "service_tier": "standard",
        },
        "permission_denials": [],
        **more,
    }


CLAUDE = Usage(71_200, 48_012, 678)

MODELS = {
    "large": {
        "inputTokens": 12,
        "outputTokens": 700,
        "cacheReadInputTokens": 50_000,
        "cacheCreationInputTokens": 3_000,
    },
    "small": {"inputTokens": 1_000, "outputTokens": 50, "costUSD": 0.001},
}


def turn(read: int, written: int) -> dict[str, Any]:
    """Return what Codex prints when a turn is over."""
    used = {"input_tokens": read, "cached_input_tokens": read - 1, "output_tokens": written}
    return {"type": "turn.completed", "usage": used}


def thread(name: str) -> dict[str, str]:
    """Return what Codex prints first."""
    return {"type": "thread.started", "thread_id": name}


def own(**figures: Any) -> dict[str, Any]:
    """Return what any agent may print."""
    return {"lifefold": figures}


STREAM = (
    {"type": "system", "subtype": "init", "session_id": "c1", "tools": ["Bash"]},
    {"type": "assistant", "message": {"usage": {"input_tokens": 4, "output_tokens": 5}}, "session_id": "c1"},
    claude(),
)

ITEM = {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "Done."}}


@pytest.mark.parametrize(
    ("output", "cost"),
    [
        pytest.param(b"", Usage(), id="nothing"),
        pytest.param(b"thinking\n{}\n[]\n[1]\nnull\n7\n", Usage(), id="nothing of use"),
        pytest.param(lines(claude()), CLAUDE, id="claude-json"),
        pytest.param(lines(*STREAM), CLAUDE, id="claude-stream-json"),
        pytest.param(lines(list(STREAM)), CLAUDE, id="claude-json-verbose"),
        pytest.param(lines(*STREAM)[:-1], CLAUDE, id="no last line feed"),
        pytest.param(lines(*STREAM).replace(b"\n", b"\r\n"), CLAUDE, id="carriage returns"),
        pytest.param(b"90%\r" + lines(claude()), CLAUDE, id="after a progress bar"),
        pytest.param(lines(claude(subtype="error_max_turns", is_error=True)), CLAUDE, id="claude-error"),
        pytest.param(lines(claude(modelUsage=MODELS)), Usage(71_200, 54_012, 750), id="claude-subagents"),
        pytest.param(lines(claude(modelUsage={"large": 1})), CLAUDE, id="claude-models-unknown"),
        pytest.param(lines(claude(None)), Usage(0, 48_012, 678), id="claude-without-money"),
        pytest.param(lines({"type": "result", "total_cost_usd": 1}), Usage(1_000_000), id="claude-only-money"),
        pytest.param(lines(claude(1), claude(2)), Usage(2_000_000, 48_012, 678), id="claude-goes-on"),
        pytest.param(
            lines(claude(1), {"type": "result", "status": "success"}), Usage(1_000_000, 48_012, 678), id="other"
        ),
        pytest.param(
            lines(claude(1), claude(2, conversation="c2")),
            Usage(3_000_000, 96_024, 1_356),
            id="claude-two-conversations",
        ),
        pytest.param(
            lines(thread("t1"), {"type": "turn.started"}, ITEM, turn(24_763, 122)), Usage(0, 24_763, 122), id="codex"
        ),
        pytest.param(lines(thread("t1"), turn(5, 1), thread("t1"), turn(9, 2)), Usage(0, 9, 2), id="codex-goes-on"),
        pytest.param(
            lines(thread("t1"), turn(5, 1), thread("t2"), turn(9, 2)), Usage(0, 14, 3), id="codex-two-threads"
        ),
        pytest.param(
            lines(thread("t1"), {"type": "turn.failed", "error": {"message": "no"}}), Usage(), id="codex-failed"
        ),
        pytest.param(lines(claude(), thread("t1"), turn(9, 2)), Usage(71_200, 48_021, 680), id="claude-and-codex"),
        pytest.param(lines(own(cost_usd=0.12, input_tokens=1, output_tokens=2)), Usage(120_000, 1, 2), id="own"),
        pytest.param(lines(own(cost_usd="0.12")), Usage(120_000), id="own-text"),
        pytest.param(lines(own(input_tokens=5)), Usage(0, 5), id="own-tokens"),
        pytest.param(lines(own(cost_usd=1), own(cost_usd=2)), Usage(2_000_000), id="own-last"),
        pytest.param(
            lines(own(cost_usd=1), {"lifefold": "fine"}, own(), own(cost_usd="?")), Usage(1_000_000), id="own-said"
        ),
        pytest.param(lines(own(cost_usd=1), claude()), Usage(1_000_000), id="own-first"),
        pytest.param(lines(own(cost_usd=0), claude()), Usage(), id="own-zero"),
        pytest.param(lines(own(cost_usd=1, ü="\ud83d\ude00 né")), Usage(1_000_000), id="unicode"),
    ],
)
def test_what_agents_say_of_their_cost_is_understood(output: bytes, cost: Usage) -> None:
    """The last word of each conversation, all conversations together; an agent's line of ours before all else."""
    assert usage_of(output) == cost


@pytest.mark.parametrize(
    ("dollars", "microusd"),
    [
        ("0.1", 100_000),
        ("0", 0),
        ("-0.0", 0),
        ("0.0000001", 1),
        ("1e-999999999999", 0),
        ("0.10000000000000000000000000000000000000000001", 100_000),
        ("0.30000000000000004", 300_000),
        ("1e6", MOST_MICROUSD),
        ("1000000.0000001", None),
        ("1e999", None),
        ("1e99999999999999999999", None),
        ("-0.01", None),
        ("-1", None),
        ("9" * 4_000, None),
        ("true", None),
        ("null", None),
        ("[1]", None),
        ('{"usd": 1}', None),
        ('"NaN"', None),
        ('"sNaN"', None),
        ('"-Infinity"', None),
        ('"1,5"', None),
        ('""', None),
    ],
)
def test_money_is_rounded_up_and_what_is_no_amount_is_not_said(dollars: str, microusd: int | None) -> None:
    """Digits of a sum of binary fractions do not count. A total never falls, and the figure beside stays as it is."""
    before = own(cost_usd=7)
    line = f'{{"lifefold": {{"cost_usd": {dollars}}}}}\n'.encode()
    assert usage_of(line) == Usage(microusd or 0)
    assert usage_of(lines(before) + line) == Usage(max(7_000_000, microusd or 0))
    beside = f'{{"lifefold": {{"cost_usd": {dollars}, "input_tokens": 3}}}}\n'.encode()
    assert usage_of(beside) == Usage(microusd or 0, 3)


@pytest.mark.parametrize("number", ["-1", "1.0", "1e3", str(MOST_TOKENS + 1), "9" * 5_000, '"7"', "true", "null", "[]"])
def test_only_a_whole_number_that_can_be_is_a_number_of_tokens(number: str) -> None:
    """Everything else is not said."""
    assert usage_of(f'{{"lifefold": {{"input_tokens": {number}}}}}\n'.encode()) == Usage()
    assert usage_of(f'{{"type": "turn.completed", "usage": {{"output_tokens": {number}}}}}\n'.encode()) == Usage()


def test_however_much_is_said_the_sum_is_a_number_that_can_be_kept() -> None:
    """A log keeps 64 bits; an agent that lies a thousand times gets no further than one that lies once."""
    most = {"inputTokens": MOST_TOKENS, "cacheReadInputTokens": MOST_TOKENS, "outputTokens": MOST_TOKENS}
    lies = [claude(MOST_USD, conversation=str(n), modelUsage={"a": most, "b": most}) for n in range(1_000)]
    assert usage_of(lines(*lies)) == Usage(MOST_MICROUSD, MOST_TOKENS, MOST_TOKENS)


@pytest.mark.parametrize(
    "line",
    [
        b'{"lifefold": {"cost_usd": 9}',
        b'note: {"lifefold": {"cost_usd": 9}}',
        b'{"lifefold": {"cost_usd": 9, "by": "\xff\xfe"}}',
        b'{"lifefold": {"cost_usd": NaN}}',
        b'{"lifefold": {"cost_usd": Infinity}}',
        b'{"lifefold": ' + b"[" * 100_000,
        b'[{"lifefold": {"cost_usd": 9}}, 1]',
        b'{"type": ["result"], "total_cost_usd": 9}',
        b'{"note": "{\\"lifefold\\": {\\"cost_usd\\": 9}}"}',
        b'{"message": {"lifefold": {"cost_usd": 9}}}',
        b"\x00" * 100_000,
    ],
)
def test_a_line_that_is_not_what_it_should_be_is_passed_over(line: bytes) -> None:
    """Whatever is before and after it counts as ever."""
    assert usage_of(line) == Usage()
    assert usage_of(lines(thread("t"), turn(4, 1)) + line + b"\n" + lines(claude())) == Usage(71_200, 48_016, 679)


WORDS = st.sampled_from(
    """type result turn.completed thread.started thread_id session_id usage modelUsage lifefold total_cost_usd cost_usd
    input_tokens output_tokens inputTokens NaN 1e400 -1""".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)
LINE = st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass"))


@given(st.lists(LINE, max_size=8).map(b"\n".join))
def test_any_output_gives_numbers_that_can_be_kept(output: bytes) -> None:
    """And never an error: an agent prints what it likes, and its end is reported all the same."""
    usage = usage_of(output)
    assert msgspec.convert(msgspec.to_builtins(usage), Usage) == usage
    assert 0 <= usage.cost_microusd <= MOST_MICROUSD
    assert 0 <= usage.input_tokens <= MOST_TOKENS
    assert 0 <= usage.output_tokens <= MOST_TOKENS


@pytest.mark.anyio
async def test_an_output_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    """Agents can reach it: it may be gone, a folder, or a FIFO without a writer."""
    assert await spent(tmp_path / "gone") == Usage()
    Bell(tmp_path / "output.log")
    assert await spent(tmp_path) == Usage()
    (tmp_path / "folder" / "output.log").mkdir(parents=True)
    assert await spent(tmp_path / "folder") == Usage()


def in_the_log(sandbox: Sandbox) -> list[Usage]:
    """Return what each session has cost, by the log."""
    with SqliteStore.peek(sandbox.log) as store:
        events = [msgspec.json.decode(entry.envelope)["event"] for entry in anyio.run(store.read)]
    return [msgspec.convert(event["usage"], Usage) for event in events if event["type"] == "SessionExited"]


SAYS = r"""
import os, pathlib, sys
prompt = pathlib.Path(sys.argv[1]).read_text()
print("x" * 100_000, flush=True)
if "failed" not in prompt:
    print('{"lifefold": {"cost_usd": 0.12, "input_tokens": 1, "output_tokens": 2}}', flush=True)
    sys.exit("no credit left")
pathlib.Path(os.environ["LIFEFOLD_TASK"] + ".txt").write_text(prompt)
print('{"type": "result", "session_id": "c1", "total_cost_usd": 0.5, "usage": {"input_tokens": 7, "output_tokens": 3}}')
"""


def test_the_log_says_of_every_session_what_it_has_cost(tmp_path: Path) -> None:
    """Of one that failed, too."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False)
    (sandbox.folder / "agent.py").write_text(SAYS)
    sandbox.run()
    assert in_the_log(sandbox) == [Usage(120_000, 1, 2), Usage(500_000, 7, 3)]


CRAFT = """
import os, pathlib
from lifefold.interpreters.facades.cooperative import Agent

class Writer(Agent):
    def process_work(self):
        pathlib.Path(os.environ["LIFEFOLD_TASK"] + ".txt").write_text("done")
        print('{"lifefold": {"cost_usd": 0.000001, "output_tokens": 2}}')
        print("good night")
"""


def test_an_agent_in_python_says_it_by_printing_the_same_line(tmp_path: Path) -> None:
    """To its standard output, like any command."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False)
    (sandbox.folder / "craft.py").write_text(CRAFT)
    kept = [line for line in sandbox.fleet.read_text().splitlines() if not line.startswith("command")]
    kept.insert(kept.index("[[agents]]") + 1, 'kind = "python"\ntarget = "craft:Writer"')
    sandbox.fleet.write_text("\n".join(kept))
    sandbox.run()
    assert in_the_log(sandbox) == [Usage(1, 0, 2)]
