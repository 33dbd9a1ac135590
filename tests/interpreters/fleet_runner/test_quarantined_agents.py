"""A handler that fails for good quarantines its entity: that is shown everywhere, and one command lets it go on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_sandbox import Sandbox

FRAGILE = """
import pathlib

from lifefold.effects import StorePrompt
from lifefold.interpreters.engine import OnError, handles

class Fragile:
    def __init__(self, context):
        self.below = context.below

    @handles(StorePrompt, on_error=OnError(retries=0))
    async def store(self, effect, context):
        if pathlib.Path("broken").exists():
            raise OSError("no shelf for prompts")
        await self.below.effects[StorePrompt](effect, context)
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """Return the sandbox of a fleet whose agent cannot have its prompt stored while there is a file ``broken``."""
    sandbox = Sandbox(tmp_path)
    sandbox.prepare("plain-1", gates=["plain-1"])
    (sandbox.folder / "fragile.py").write_text(FRAGILE)
    with sandbox.fleet.open("a") as file:
        file.write('\n[[interpreters]]\nuse = "fragile:Fragile"\nfor = ["StorePrompt"]\n')
    (sandbox.folder / "broken").touch()
    yield sandbox
    sandbox.kill_all()


def test_a_quarantined_agent_is_shown_and_goes_on_when_it_is_released(sandbox: Sandbox) -> None:
    """The runner, ``status`` and ``why`` say what, since when, which handler, the error, and the command."""
    with sandbox.running() as run:
        told = run.until("quarantined", "the handler of StorePrompt has failed 1 times: OSError: no shelf for prompts")
        assert "lifefold release agent" in told
        for words in (("status",), ("why", "plain-1")):
            shown = next(line for line in sandbox.call(*words).stdout.splitlines() if "quarantined" in line)
            assert "agent: its session is quarantined since " in shown
            assert "the handler of StorePrompt has failed 1 times: OSError: no shelf for prompts" in shown
            assert "lifefold release agent" in shown
        (found,) = sandbox.json("status")["quarantined"]
        assert (found["name"], found["aggregate"], found["entity"]) == ("agent", "worker/agent", "session")
        assert found["since_ms"] > 0
        (sandbox.folder / "broken").unlink()
        assert "agent: is released" in sandbox.call("release", "agent").stdout
        with sandbox.at_gate("plain-1"):
            assert sandbox.json("status")["quarantined"] == []
            assert "quarantined" not in sandbox.call("why", "plain-1").stdout
        assert "1 of 1 tasks closed" in run.rest()


def test_what_is_not_quarantined_cannot_be_released(sandbox: Sandbox) -> None:
    """Exit code 2, and what is; also where no runner is at work, a release is taken."""
    with sandbox.running() as run:
        run.until("quarantined", "lifefold release")
        refused = sandbox.call("release", "plain-1", code=2)
        assert "'plain-1' is not quarantined; quarantined: agent" in refused.stderr
        run.process.kill()
        run.rest()
    (sandbox.folder / "broken").unlink()
    assert "the next run acts on it" in sandbox.call("release", "agent").stdout
    refused = sandbox.call("release", "agent", code=2)
    assert "nothing is quarantined" in refused.stderr
    with sandbox.running() as run:
        with sandbox.at_gate("plain-1"):
            pass
        assert "1 of 1 tasks closed" in run.rest()
