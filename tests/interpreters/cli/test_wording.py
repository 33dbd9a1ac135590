"""Texts for operators: times, names, and commands as a shell finds them."""

import shlex
from datetime import datetime

import pytest
from msgspec.structs import replace

from lifefold.interpreters.cli import grammar
from lifefold.interpreters.cli.wording import (
    COMMANDS,
    as_typed,
    by_number,
    clock_time,
    coming,
    cut_in_the_middle,
    in_shell,
    is_missing,
    next_of,
    plain_state,
)
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.timers import Timer
from lifefold.interpreters.explain.turn_status import TurnStatus
from lifefold.interpreters.fleet_runner.process_evidence import Evidence


def test_a_time_of_another_day_has_its_date() -> None:
    """And one of today has none."""
    now = datetime.now().astimezone()
    assert len(clock_time(now.timestamp())) == len("12:34:56.789")
    then = datetime(2024, 2, 29, 12, 0, 1, 500_000).astimezone()
    assert clock_time(then.timestamp()) == "2024-02-29 12:00:01.500"


def test_names_are_sorted_by_their_numbers() -> None:
    """Whatever they begin with."""
    names = ["w-10", "w-2", "2x", "a", "w-1b", "10x"]
    assert sorted(names, key=by_number) == ["2x", "10x", "a", "w-1b", "w-2", "w-10"]


def test_what_comes_next_is_said_in_words() -> None:
    """With the time that is left."""
    assert coming(Timer("SessionTimeout", 8_500), 1_000) == "times out in 7s"
    assert coming(Timer("BackoffElapsed", 1_500), 1_000) == "next try now"
    assert coming(Timer("BackoffElapsed", 500), 1_499) == "next try now"
    assert coming(Timer("BackoffElapsed", 500), 1_500) == "next try due"
    assert coming(Timer("GraceExceeded", 3_000), 1_000) == "killed in 2s"
    assert coming(None, 1_000) == "-"


def test_a_session_that_asks_says_so_beside_its_state_until_its_process_is_gone() -> None:
    """A narrow table has no column for the turn, and an agent that waits for an operator is no running one."""
    turn = TurnStatus(1, "RUNNING", 0, "T1", questions=("ann/Q1",))
    agent = replace(AgentStatus("ann", "Run", "Running", 0, "T1", "Working", 0, 1, 0, 0, 0, 1, None, ""), turn=turn)
    assert plain_state(agent, ALIVE, runs=True) == "running, asks"
    assert plain_state(agent, GONE, runs=True) == "running? no process"


def test_a_silence_has_one_length_on_a_screen_while_a_runner_is_at_work() -> None:
    """That of the line about the stuck agent; without a runner the file of the session is newer than the log."""
    stuck = AgentStatus("ann", "Run", "Running", 0, "T1", "Working", 0, 1, 0, 0, 0, 1, None, "", silent_since_ms=20_000)
    evidence = Evidence(7, alive=True, observed_ms=60_000, silent_ms=39_000)
    assert plain_state(stuck, evidence, runs=True) == "running, silent for 40s"
    assert plain_state(stuck, evidence, runs=False) == "running, silent for 39s"


ALIVE, GONE = (Evidence(7, alive=alive, observed_ms=0) for alive in (True, False))


@pytest.mark.parametrize(
    ("state", "evidence", "runs", "said"),
    [
        ("Spawning", None, True, "starting"),
        ("Spawning", None, False, "starting? no process"),
        ("Spawning", GONE, True, "starting? no process"),
        ("Running", None, True, "running? no process"),
        ("Running", GONE, True, "running? no process"),
        ("Running", ALIVE, False, "running"),
    ],
)
def test_the_process_of_a_session_is_missing_only_if_it_is_not_just_being_started(
    state: str, evidence: Evidence | None, *, runs: bool, said: str
) -> None:
    """A runner at work starts the session that the log has; without a runner no session starts."""
    agent = AgentStatus("ann", "Run", state, 0, "T1", "Working", 0, 1, 0, 0, 0, 1, None, "")
    assert plain_state(agent, evidence, runs=runs) == said
    is_gone = is_missing(agent, evidence, runs=runs)
    assert is_gone is said.endswith("no process")
    timed = replace(agent, timer=Timer("SessionTimeout", 8_500))
    assert next_of(timed, 1_000, is_gone=is_gone) == ("-" if is_gone else "times out in 7s")
    interrupted = replace(agent, timer=Timer("GraceExceeded", 8_500))
    assert next_of(interrupted, 1_000, is_gone=is_gone) == "killed in 7s"


@pytest.mark.parametrize(
    ("room", "words"), [(9, "abcdefghi"), (8, "abcd…ghi"), (7, "abc…ghi"), (2, "a…"), (1, "…"), (0, "")]
)
def test_a_name_is_cut_in_its_middle(room: int, words: str) -> None:
    """So that its end is there, too."""
    assert cut_in_the_middle("abcdefghi", room) == words


def test_a_message_names_the_program_as_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name if the shell finds it, else by its path; what is no command stays as it is."""
    assert as_typed("T1: lifefold approve T1") == "T1: lifefold approve T1"
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.argv", ["/opt/x y/lifefold"])
    assert as_typed("T1: lifefold approve T1; `lifefold log`") == (
        "T1: '/opt/x y/lifefold' approve T1; `'/opt/x y/lifefold' log`"
    )
    for text in ("another lifefold is running", "/opt/lifefold run x", "python -m lifefold.interpreters.cli run x"):
        assert as_typed(text) == text


def test_every_command_is_known_to_messages() -> None:
    """Or a message would name a program that the shell does not find."""
    assert sorted(COMMANDS.split("|")) == sorted(grammar.parser().get_default("known"))


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["python3", "-c", "assert slug('A b') == 'a-b'"], """python3 -c "assert slug('A b') == 'a-b'\""""),
        (["sh", "-c", "echo $HOME"], "sh -c 'echo $HOME'"),
        (["echo", "it's $5"], """echo 'it'"'"'s $5'"""),
        (["make", "test"], "make test"),
    ],
)
def test_a_command_is_shown_in_quotes_that_are_easy_to_read(argv: list[str], shown: str) -> None:
    assert in_shell(argv) == shown
    assert shlex.split(shown) == argv
