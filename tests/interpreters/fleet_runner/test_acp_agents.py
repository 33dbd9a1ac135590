"""Agents of ``kind = "acp"``: a program that speaks the Agent Client Protocol, in sessions of real fleets."""

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from acp_sandbox import AcpSandbox

pytest.importorskip("acp")

QUESTIONS = """
[fleet.questions]

[[answers]]
tool = "execute"
matches = "pytest*"
answer = "allow"
"""


def test_a_session_has_its_conversation_its_cost_and_its_success_in_the_log(tmp_path: Path) -> None:
    of = AcpSandbox(tmp_path)
    of.cast(of.speaker("quick"), of.speaker("unpriced", "free"))
    of.run()
    (quick,), (unpriced,) = of.ends()["quick"], of.ends()["unpriced"]
    assert quick["outcome"] == {"type": "Success"}
    assert (quick["conversation"], quick["is_total"]) == ("talk-1", True)
    assert quick["usage"] == {"cost_microusd": 10_000, "input_tokens": 100, "output_tokens": 5}
    assert unpriced["usage"] == {"cost_microusd": 0, "input_tokens": 100, "output_tokens": 5}
    assert not unpriced.get("is_total", False)
    assert {each["state"] for each in of.tasks().values()} == {"CLOSED"}


def test_a_request_for_leave_is_a_question_in_the_log_and_its_answer_reaches_the_agent(tmp_path: Path) -> None:
    """Allowed, refused with a reason, and decided by a standing answer. A refused agent goes on."""
    of = AcpSandbox(tmp_path)
    agents = (of.speaker("writer", "ask"), of.speaker("refused", "ask"), of.speaker("tester", "command"))
    of.cast(*agents, fleet=QUESTIONS)
    with of.running() as run:
        run.until("writer asks: may it use edit")
        of.call("approve", "writer/Q1")
        while not any(each["names"] == ["refused/Q1"] for each in of.json("status")["waiting"]):
            pass
        of.call("reject", "refused/Q1", "--reason", "not this file")
        run.rest()
    assert {name: each["state"] for name, each in of.tasks().items()} == {
        "writer": "CLOSED",
        "refused": "FAILED",
        "tester": "CLOSED",
    }
    assert {name: each[0]["outcome"]["type"] for name, each in of.ends().items()} == dict.fromkeys(
        ("writer", "refused", "tester"), "Success"
    )
    assert "rejected Q1: not this file" in of.call("why", "refused").stdout
    assert "asked (Q1): may it run `pytest -q`?; entry 1 of [[answers]] allows it" in of.call("why", "tester").stdout


def test_a_question_survives_its_runner_and_is_answered_without_one(tmp_path: Path) -> None:
    of = AcpSandbox(tmp_path)
    of.cast(of.speaker("writer", "ask"), fleet=QUESTIONS)
    with of.running() as run:
        run.until("writer asks: may it use edit")
        run.signal(signal.SIGKILL)
        run.rest()
    of.call("approve", "writer/Q1")
    of.run()
    assert [each["outcome"]["type"] for each in of.ends()["writer"]] == ["Success"]
    assert len(of.prompts()) == 1


def test_a_refused_request_fails_a_session_of_a_fleet_without_questions(tmp_path: Path) -> None:
    of = AcpSandbox(tmp_path)
    of.cast(of.speaker("writer", "ask"))
    of.run(code=1)
    (end,) = of.ends()["writer"]
    assert end["outcome"]["message"] == "edit: the fleet file has no table [fleet.questions], so no operator is asked"


def test_permissions_of_the_fleet_file_answer_before_an_operator(tmp_path: Path) -> None:
    """An agent that may edit writes in its worktree; one that may read is refused."""
    of = AcpSandbox(tmp_path)
    of.cast(
        of.speaker("editor", "ask", lines=('permissions = "edit"',)),
        of.speaker("reader", "ask", lines=('permissions = "read"',)),
        of.speaker("runner", "command", lines=('permissions = "all"',)),
    )
    of.run(code=1)
    ends = of.ends()
    assert ends["editor"][0]["outcome"] == ends["runner"][0]["outcome"] == {"type": "Success"}
    assert ends["reader"][0]["outcome"]["message"] == "edit: the permissions of the agent do not allow it"


def test_a_killed_runner_loses_nothing_of_a_session(tmp_path: Path) -> None:
    """Shim, client and agent go on; the next run follows the same output, and no turn is repeated."""
    of = AcpSandbox(tmp_path)
    of.cast(of.speaker("slow", "gate"))
    of.gate("slow")
    with ExitStack() as stack:
        run = stack.enter_context(of.running())
        with of.at_gate("slow"):
            run.signal(signal.SIGKILL)
            run.rest()
            following = stack.enter_context(of.running())
            following.until("1 session adopted")
        following.rest()
    (end,) = of.ends()["slow"]
    assert (end["outcome"], end["conversation"]) == ({"type": "Success"}, "talk-1")
    assert end["usage"]["cost_microusd"] == 10_000
    assert [name for name, _ in of.prompts()] == ["talk-1"]
    assert of.tasks()["slow"]["state"] == "CLOSED"


@pytest.mark.parametrize(
    ("behaviours", "method"),
    [
        ((), "session/resume"),
        (("patient", "no-resume"), "session/load"),
        (("patient", "no-load"), "session/new"),
    ],
)
def test_an_interrupted_session_is_cancelled_and_the_next_one_resumes_its_conversation(
    tmp_path: Path, behaviours: tuple[str, ...], method: str
) -> None:
    """By ``session/resume`` or ``session/load``; an agent that offers neither begins anew.

    A total is charged once. An agent that ends at SIGTERM tells no cost, and the next total contains it.
    """
    of = AcpSandbox(tmp_path)
    of.cast(of.speaker("slow", "gate", *behaviours))
    of.gate("slow")
    with of.running() as run:
        with of.at_gate("slow"):
            of.call("pause", "slow")
            run.until("Interrupting", "BuildingPrompt")
        of.call("resume", "slow")
        run.rest()
    resumes, tells = method != "session/new", "patient" in behaviours
    names, prompts = zip(*of.prompts(), strict=True)
    assert names == ("talk-1", "talk-1" if resumes else "talk-2")
    assert "Your last session was interrupted." in prompts[1]
    assert len(of.heard(method)) == (1 if resumes else 2)
    interrupted, done = of.ends()["slow"]
    assert interrupted["conversation"] == "talk-1"
    assert interrupted["usage"]["cost_microusd"] == (10_000 if tells else 0)
    assert done["usage"]["cost_microusd"] == (20_000 if resumes else 10_000)
    assert done["usage"]["input_tokens"] == (200 if resumes and tells else 100)
    assert of.heard("session/cancel") == [{"sessionId": "talk-1"}] if tells else True


def test_a_forgotten_conversation_is_lost_and_the_next_session_begins_another(tmp_path: Path) -> None:
    of = AcpSandbox(tmp_path)
    of.cast(of.speaker("slow", "gate", "forget"))
    of.gate("slow")
    with of.running() as run:
        with of.at_gate("slow"):
            of.call("pause", "slow")
            run.until("Interrupting", "BuildingPrompt")
        of.call("resume", "slow")
        run.rest()
    _, lost, done = of.ends()["slow"]
    assert lost["outcome"]["diagnosis"]["trouble"] == "lost"
    assert (done["outcome"], done["conversation"]) == ({"type": "Success"}, "talk-2")
    assert "its conversation cannot be continued: this is a new one" in of.prompts()[-1][1]


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("login", "Authentication required; Run `speaker login`"),
        ("broken", "Internal error: no settings"),
        ("crash", "ended with status 3, without a result: panic: cannot go on"),
        ("old", "it speaks version 0 of the protocol, and lifefold 1"),
    ],
)
def test_a_session_that_fails_says_why_in_the_words_of_its_agent(tmp_path: Path, behaviour: str, message: str) -> None:
    of = AcpSandbox(tmp_path)
    of.cast(of.speaker("failing", behaviour))
    of.run(code=1)
    assert message in of.ends()["failing"][0]["outcome"]["message"]


def test_an_agent_has_the_model_and_the_mode_of_its_entry(tmp_path: Path) -> None:
    """The model is chosen by name, and an agent that may only read works in a mode that changes nothing."""
    of = AcpSandbox(tmp_path)
    of.cast(
        of.speaker("chosen", "models", lines=('model = "large"', 'permissions = "read"')),
        of.speaker("unknown", "models", lines=('model = "huge"',)),
        of.speaker("without", lines=('model = "large"',)),
    )
    of.run(code=1)
    chosen = [(each["configId"], each["value"]) for each in of.heard("session/set_config_option")]
    assert chosen == [("my-model", "large"), ("my-mode", "plan")]
    ends = {name: each[0]["outcome"].get("message", "") for name, each in of.ends().items()}
    assert ends["unknown"] == "model not found: huge; offered: small, large"
    assert ends["without"].startswith("the agent offers no choice of a model")
