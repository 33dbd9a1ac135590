"""What is said of sessions that fail: how they ended, and the agent's own last words."""

import json
import signal
from pathlib import Path
from typing import Final, get_args

import pytest

from fleet_sandbox import Sandbox
from lifefold.core.lifecycles import session
from lifefold.core.policy.ends import LEFT, Diagnosis, Program, Trouble, by_status, diagnosis
from lifefold.interpreters.adapters import adapter_of
from lifefold.interpreters.fleet_runner.redaction import NO_SECRETS, Secrets
from lifefold.interpreters.fleet_runner.session_facts import facts_of
from lifefold.interpreters.fleet_runner.session_outcome import (
    ANY_AGENT,
    LINE_CHARS,
    Agent,
    program_of,
    said_by,
)
from lifefold.interpreters.fleet_runner.session_outcome import exited as end_of
from lifefold.interpreters.processes import SessionExit, launch
from lifefold.interpreters.processes.session_files import Outcome
from session_scripts import Bell, script

FAILS = r"""
import os, pathlib, sys
prompt = pathlib.Path(sys.argv[1]).read_text()
if "failed" not in prompt:
    print("thinking", flush=True)
    sys.exit("\x1b[31moops\x07 no api key\x1b[0m\n")
pathlib.Path(os.environ["LIFEFOLD_TASK"] + ".txt").write_text(prompt)
"""


async def outcome(
    ended: SessionExit, directory: Path, secrets: Secrets = NO_SECRETS, agent: Agent = ANY_AGENT
) -> session.Success | session.Error | session.Timeout | session.Suspended | session.Limited:
    """Return the outcome of the session of a command in a directory."""
    return end_of(ended, await facts_of(adapter_of("command"), directory, ended), secrets, agent).outcome


async def last_said(directory: Path, secrets: Secrets = NO_SECRETS) -> str:
    """Return the last words of a command that has ended well."""
    ended = SessionExit(outcome="exited", at_ms=0, code=0)
    return said_by(await facts_of(adapter_of("command"), directory, ended), secrets)


def described(ended: session.Outcome) -> str:
    """Return what an error, or a limit, says."""
    assert isinstance(ended, session.Error | session.Limited)
    return ended.message


def exited(message: str = "exit status 1") -> SessionExit:
    return SessionExit(outcome="exited", at_ms=0, code=1, message=message)


def test_the_next_prompt_and_the_screen_have_the_last_line_of_what_a_failed_session_printed(tmp_path: Path) -> None:
    """Without what a terminal would take for a command."""
    sandbox = Sandbox(tmp_path).prepare("plain-1")
    (sandbox.folder / "agent.py").write_text(FAILS)
    assert ": exit status 1: oops no api key" in sandbox.run()
    told = "An earlier attempt at this task failed: Error(exit status 1: oops no api key)"
    assert told in sandbox.git("show", "main:plain-1.txt")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("output", "said"),
    [
        (b"", "exit status 1"),
        (b"\n \n\x1b[0m\n", "exit status 1"),
        (b"first\nlast\t one\r\n\n", "exit status 1: last one"),
        (b"10%\r90%\rgave up", "exit status 1: gave up"),
        (b"\xff\x00 bytes", "exit status 1: \N{REPLACEMENT CHARACTER} bytes"),
        (b"x" * 100_000, f"exit status 1: {'x' * LINE_CHARS}"[:LINE_CHARS] + "…"),
        (b'no credit\n{"lifefold": {"cost_usd": 0.1}}\n', "exit status 1: no credit"),
    ],
    ids=["nothing", "blank", "white", "progress", "binary", "long", "cost"],
)
async def test_an_error_ends_with_one_short_printable_line(tmp_path: Path, output: bytes, said: str) -> None:
    """Whatever the agent wrote last."""
    (tmp_path / "output.log").write_bytes(output)
    assert described(await outcome(exited(), tmp_path)) == said


@pytest.mark.anyio
async def test_an_output_that_cannot_be_read_makes_no_difference(tmp_path: Path) -> None:
    """Agents can reach it."""
    assert described(await outcome(exited(), tmp_path / "gone")) == "exit status 1"
    (tmp_path / "output.log").mkdir()
    assert described(await outcome(exited(), tmp_path)) == "exit status 1"


@pytest.mark.anyio
async def test_a_fifo_in_the_place_of_the_output_blocks_no_runner(tmp_path: Path) -> None:
    """There is nothing to read, and nothing is waited for."""
    Bell(tmp_path / "output.log")
    assert described(await outcome(exited(), tmp_path)) == "exit status 1"


@pytest.mark.anyio
async def test_only_errors_are_explained(tmp_path: Path) -> None:
    """A success is a success, and a time-out is one, whatever was printed."""
    (tmp_path / "output.log").write_bytes(b"nearly done\n")
    assert await outcome(SessionExit(outcome="exited", at_ms=0, code=0), tmp_path) == session.Success()
    assert await outcome(SessionExit(outcome="timeout", at_ms=0, signal=15), tmp_path) == session.Timeout()


@pytest.mark.anyio
async def test_a_time_out_names_its_limit_and_the_key(tmp_path: Path) -> None:
    """The operator can change it there."""
    ended = SessionExit(outcome="timeout", at_ms=0, signal=15)
    assert await outcome(ended, tmp_path, agent=Agent(limit_ms=90_000)) == session.Timeout(
        "session_timeout of 1m30s is over"
    )


RESULT: Final = '{"type": "result", "subtype": "success", "is_error": %s, "result": "%s", "uuid": "429-503"}'
LIMIT: Final = "API Error: Request rejected (429): your account's rate limit"
LIMITED: Final = "You have hit your usage limit; try again at 12:30"
FAILED_TURN: Final = f'{{"type": "turn.failed", "error": {{"message": "{LIMITED}"}}}}'


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("output", "said", "trouble"),
    [
        (RESULT % ("true", LIMIT), LIMIT, Trouble.TRANSIENT),
        (f"[{RESULT % ('true', 'Credit balance is too low')}]", "Credit balance is too low", Trouble.FATAL),
        ('{"type": "result", "is_error": true, "subtype": "error_max_turns"}', "error_max_turns", Trouble.OTHER),
        ('{"type": "result", "is_error": true, "errors": ["first", "last"]}', "last", Trouble.OTHER),
        (f"{RESULT % ('true', 'tests fail')}\nbye", "tests fail", Trouble.OTHER),
        (FAILED_TURN, LIMITED, Trouble.TRANSIENT),
    ],
    ids=["limit", "credit", "subtype", "errors", "text-after", "codex"],
)
async def test_a_result_that_reports_an_error_is_a_failure_whatever_the_exit_status(
    tmp_path: Path, output: str, said: str, trouble: Trouble
) -> None:
    """Programs report limits so, and exit with 0."""
    (tmp_path / "output.log").write_text(f'{{"type": "system"}}\n{output}\n')
    told = await outcome(SessionExit(outcome="exited", at_ms=0, code=0), tmp_path)
    assert described(told) == f"its result reports an error, with exit status 0: {said}"
    means = session.SessionExited(told).diagnosis
    assert means is not None
    assert means.trouble is trouble


@pytest.mark.anyio
@pytest.mark.parametrize(
    "output",
    [
        RESULT % ("false", "rate limit handling is fixed"),
        f"{RESULT % ('true', 'busy')}\n{RESULT % ('false', 'done')}",
        f'{FAILED_TURN}\n{{"type": "turn.completed"}}',
        "rate limit exceeded",
        '{"is_error": true',
        '["result", {"is_error": true}]',
        '{"type": "result", "is_error": "true"}',
        "[" * 100_000,
    ],
    ids=["no-error", "later-success", "later-turn", "text", "half", "other-json", "no-flag", "deep"],
)
async def test_any_other_output_leaves_exit_status_0_a_success(tmp_path: Path, output: str) -> None:
    """Agents write what they want; only the last result counts, and only in its own form."""
    (tmp_path / "output.log").write_text(output)
    assert await outcome(SessionExit(outcome="exited", at_ms=0, code=0), tmp_path) == session.Success()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (RESULT % ("true", "Credit balance is too low"), "Credit balance is too low"),
        (FAILED_TURN, LIMITED),
        ('{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', "Overloaded"),
        ('{"type": "error", "error": {"name": "APIError", "data": {"message": "No key"}}}', "No key"),
        ('{"type": "assistant", "message": {"content": [{"type": "text", "text": "I stop"}]}}', "I stop"),
        ('{"type": "step_finish"}', '{"type": "step_finish"}'),
        ("[1, 2]", "[1, 2]"),
        ('{"message": {"message": {"message": {"message": {"message": {"message": "deep"}}}}}}', None),
    ],
    ids=["claude", "codex", "service", "opencode", "message", "without", "numbers", "deep"],
)
async def test_the_sentence_is_reported_out_of_a_line_of_json(tmp_path: Path, line: str, said: str | None) -> None:
    """A line without one is quoted as it is; a line longer than what is quoted is read as a whole."""
    (tmp_path / "output.log").write_text(f"thinking\n{line}\n")
    assert described(await outcome(exited(), tmp_path)) == f"exit status 1: {said or line}"
    assert (await last_said(tmp_path)).endswith(said or line)


@pytest.mark.anyio
async def test_the_sentence_of_a_very_long_line_is_found(tmp_path: Path) -> None:
    """The result of a long session has many figures beside it."""
    (tmp_path / "output.log").write_text(f'{{"result": "No credit", "more": "{"x" * 50_000}"}}\n')
    assert described(await outcome(exited(), tmp_path)) == "exit status 1: No credit"


@pytest.mark.anyio
async def test_a_secret_in_a_sentence_is_hidden_also_if_json_writes_it_otherwise(tmp_path: Path) -> None:
    """JSON may write any character as a number."""
    secrets = Secrets([("API_KEY", "s3cr\u00e9t-value")])
    (tmp_path / "output.log").write_text('{"result": "bad key s3cr\\u00e9t-value", "type": "result", "is_error": true}')
    assert described(await outcome(exited(), tmp_path, secrets)) == "exit status 1: bad key [redacted API_KEY]"
    told = await outcome(SessionExit(outcome="exited", at_ms=0, code=0), tmp_path, secrets)
    assert described(told).endswith("bad key [redacted API_KEY]")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "value",
    ["first-part\nsecond-part", "two  spaces-value", "a\ttab-value"],
    ids=["lines", "spaces", "tab"],
)
async def test_a_secret_with_white_space_is_hidden_in_a_sentence_as_in_text(tmp_path: Path, value: str) -> None:
    """Of text the last line counts, so the lines of a value are secrets, too."""
    secrets = Secrets([("API_KEY", value)])
    in_text = "[redacted API_KEY]" if "\n" in value else "bad key [redacted API_KEY]"
    in_json = json.dumps({"type": "error", "message": f"bad key {value}"})
    for said, quoted in ((f"bad key {value}", in_text), (in_json, "bad key [redacted API_KEY]")):
        (tmp_path / "output.log").write_text(f"thinking\n{said}\n")
        shown = described(await outcome(exited(), tmp_path, secrets))
        assert shown == f"exit status 1: {quoted}", said
        assert await last_said(tmp_path, secrets) == quoted, said


@pytest.mark.anyio
@pytest.mark.parametrize(
    "line",
    [
        '{"status": 401, "header": "%s"}',
        '[{"status": 401}, {"header": "%s"}]',
        '{"status": 401, "header": "%s", "rest": "',
        '{"status": 401, "%s": true}',
    ],
    ids=["object", "array", "torn", "key"],
)
async def test_a_secret_in_a_line_of_json_without_a_sentence_is_hidden_however_it_is_written(
    tmp_path: Path, line: str
) -> None:
    """Such a line is quoted itself, and JSON may write any character of a value as a number or behind a backslash."""
    secrets = Secrets([("API_KEY", 's3cr/"t<\U0001f511>\n  \tval\\ue')])
    spellings = (
        's3cr/\\"t<\U0001f511>\\n  \\tval\\\\ue',
        's3cr\\/\\"t\\u003c\\ud83d\\udd11\\u003e\\u000a  \\u0009val\\u005Cue',
        "".join(f"\\u{ord(each):04x}" for each in 's3cr/"t<') + "\\uD83D\\uDD11>\\n  \\tval\\\\ue",
    )
    for spelling in spellings:
        (tmp_path / "output.log").write_text(f"thinking\n{line % spelling}\n", encoding="utf-8")
        said = line % "[redacted API_KEY]"
        assert described(await outcome(exited(), tmp_path, secrets)) == f"exit status 1: {said}", spelling
        assert await last_said(tmp_path, secrets) == said, spelling


@pytest.mark.anyio
@pytest.mark.parametrize(
    "fields", [{"result": "no\n\x1b[31mluck\x07"}, {"subtype": "no\n\x1b[31mluck\x07"}], ids=["sentence", "kind"]
)
async def test_a_sentence_is_one_line_without_control_characters(tmp_path: Path, fields: dict[str, str]) -> None:
    """JSON writes them as plain text, and the sentence is shown on terminals."""
    (tmp_path / "output.log").write_text(json.dumps({"type": "result", "is_error": True, **fields}))
    told = await outcome(SessionExit(outcome="exited", at_ms=0, code=0), tmp_path)
    assert described(told) == "its result reports an error, with exit status 0: no luck"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("code", "said"),
    [(126, "exit status 126 (the program is not executable)"), (127, "exit status 127 (the program was not found)")],
)
async def test_a_program_that_could_not_be_started_is_said_to_be_so(tmp_path: Path, code: int, said: str) -> None:
    """A shell has only the number for it."""
    (tmp_path / "output.log").write_text("sh: 1: claude: no luck\n")
    ended = SessionExit(outcome="exited", at_ms=0, code=code, message=f"exit status {code}")
    assert described(await outcome(ended, tmp_path)) == f"{said}: sh: 1: claude: no luck"


@pytest.mark.anyio
async def test_a_session_without_a_runner_is_said_to_have_ended_by_that(tmp_path: Path) -> None:
    """The number of a signal does not tell it."""
    bell = Bell(tmp_path / "bell")
    process = await launch(tmp_path / "run", script(f"echo > {bell}; exec sleep 1000"), lease_ms=1)
    ended = await process.wait()
    assert ended.message.startswith("the runner had ended or was away, so that no runner renewed the lease")


@pytest.mark.anyio
async def test_a_session_that_was_deaf_is_said_to_have_been_killed(tmp_path: Path) -> None:
    """The word for it is not that of a signal from somewhere."""
    bell = Bell(tmp_path / "bell")
    process = await launch(tmp_path / "run", script(f"trap '' TERM; echo > {bell}; while :; do sleep 1000; done"))
    await bell.heard()
    await process.end(0)
    ended = await process.wait()
    assert ended.signal == signal.SIGKILL
    told = await outcome(ended, tmp_path / "run")
    assert told == session.Error("it was asked to end; it did not end on TERM; killed", LEFT)


@pytest.mark.parametrize(
    ("kind", "how", "called"),
    [
        ("python", "exited", session.Suspended()),
        ("python", "lease-expired", session.Suspended(asked=True)),
        ("python", "timeout", session.Timeout()),
        ("command", "exited", session.Error("exit status 75", Diagnosis())),
    ],
)
@pytest.mark.anyio
async def test_only_a_cooperative_agent_whose_time_was_not_over_is_suspended_by_status_75(
    tmp_path: Path, kind: str, how: Outcome, called: session.Outcome
) -> None:
    """Our own cause wins (E39), and to any other command the number means nothing."""
    ended = SessionExit(outcome=how, at_ms=0, code=75, message="exit status 75")
    agent = Agent(program_of(("agent",), cooperative=kind == "python"))
    assert await outcome(ended, tmp_path, agent=agent) == called


MEANS: dict[Outcome, tuple[int | None, int | None, Diagnosis]] = {
    "exited": (126, None, by_status(126)),
    "signalled": (None, 9, by_status(-9)),
    "ended": (0, None, LEFT),
    "killed": (None, 9, LEFT),
    "lease-expired": (None, 15, LEFT),
    "spawn-failed": (None, None, diagnosis("permission denied")),
    "lost": (None, None, Diagnosis()),
}


def test_every_way_in_which_a_session_may_end_has_a_meaning() -> None:
    """But for a time-out, which is one by itself."""
    assert {*MEANS, "timeout"} == set(get_args(Outcome))


@pytest.mark.anyio
@pytest.mark.parametrize("how", MEANS)
async def test_an_error_has_its_meaning_by_how_the_session_has_ended(tmp_path: Path, how: Outcome) -> None:
    """If we ended the process, our own cause wins, whatever status came of it and whatever was printed (E39)."""
    code, signal_number, means = MEANS[how]
    ended = SessionExit(outcome=how, at_ms=0, code=code, signal=signal_number, message="permission denied")
    if how in {"ended", "killed", "lease-expired"}:
        (tmp_path / "output.log").write_bytes(b"invalid api key\n")
    told = await outcome(ended, tmp_path)
    assert isinstance(told, session.Error)
    assert told.diagnosis == means


@pytest.mark.parametrize(
    ("command", "cooperative", "program"),
    [
        (("claude", "-p"), False, Program.CLAUDE),
        (("/opt/bin/claude",), False, Program.CLAUDE),
        (("claude-like",), False, Program.ANY),
        ((), False, Program.ANY),
        (("python",), True, Program.COOPERATIVE),
    ],
)
def test_a_program_is_known_by_its_name(command: tuple[str, ...], cooperative: bool, program: Program) -> None:  # noqa: FBT001 - one of a table
    """Its exit statuses are read by its own table."""
    assert program_of(command, cooperative=cooperative) is program
