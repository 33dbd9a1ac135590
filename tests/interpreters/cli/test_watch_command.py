"""`lifefold watch` at a terminal of 80 columns and 24 lines, on a fleet that another process runs."""

from pathlib import Path

import pytest

from desk_sandbox import talking
from fleet_sandbox import Sandbox
from terminal import Terminal

OTHERS = tuple(f"other-{number}" for number in range(1, 39))


def crowd(tmp_path: Path) -> Sandbox:
    """Return a fleet of forty tasks: one fails, one waits for approval, and the others wait for that one."""
    sandbox = talking(tmp_path, "fails-1", "asks", *OTHERS).demand("asks", 'approval = "merge"')
    for each in OTHERS:
        sandbox.demand(each, 'depends_on = ["asks"]')
    return sandbox


def test_what_waits_and_what_failed_come_first_and_keys_act_as_commands_do(tmp_path: Path) -> None:
    """Forty tasks on 24 lines; a look at the difference; a rejection with its reason, which the log has."""
    sandbox = crowd(tmp_path)
    with sandbox.running() as run:
        run.until("asks", "PENDING_APPROVAL")
        with Terminal(tmp_path, "watch") as terminal:
            drawn = terminal.until("asks", "is done and waits for your approval", "q quit", "more below")
            lines = [line for line in drawn[drawn.rindex("fleet sandbox") :].splitlines() if line.strip()]
            assert lines[0].startswith("fleet sandbox  ")
            places = [next(n for n, line in enumerate(lines) if words in line) for words in
                      ("> ! asks", "x fails-1", "agent ", "other-1 ")]  # fmt: skip
            assert places == sorted(places)
            assert len(lines) <= 24
            terminal.press("d")
            terminal.until("asks waits for your approval: commit ", "+done by asks", "any key returns")
            terminal.press(" ")
            terminal.until("a approve  r reject  d diff  o output")
            terminal.press("r")
            terminal.until("reject asks: reason:")
            terminal.press("not like this\r")
            terminal.until("asks: rejected")
            run.until("task asks", "FAILED")
            terminal.press("q")
            terminal.rest()
            assert terminal.process.returncode == 0
        run.process.kill()
        run.rest()
    sandbox.kill_all()
    assert "not like this" in sandbox.call("log", "--task", "asks").stdout


def test_a_fleet_without_a_runner_says_so_and_an_agent_is_paused_and_resumed_by_a_key(tmp_path: Path) -> None:
    """The display reads the log alone; commands are stored in it and applied by the next runner."""
    sandbox = talking(tmp_path, "asks").demand("asks", 'approval = "merge"')
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4)
    with Terminal(tmp_path, "watch", str(sandbox.fleet), columns=60, lines=12) as terminal:
        terminal.until("no runner is at work", "waits for your approval")
        terminal.press("j")
        terminal.until("p pause  m message")
        terminal.press("p")
        terminal.until("pause agent, and interrupt its session? y/n")
        terminal.press("y")
        terminal.until("is paused", "agent: ")
        terminal.press("k")
        terminal.until("p resume  ")
        terminal.press("p")
        terminal.until("agent: ")
        terminal.press("\x03")
        terminal.rest()
        assert terminal.process.returncode == 130
    assert sandbox.json("status")["agents"][0]["desired_state"] == "Run"


def test_an_output_that_is_followed_names_the_key_that_returns_and_one_press_of_it_does(tmp_path: Path) -> None:
    """Work that waits has no session that prints, so its output would never end by itself."""
    sandbox = talking(tmp_path, "asks", "one", gates=("one",)).demand("asks", 'approval = "merge"')
    with sandbox.running() as run:
        with sandbox.at_gate("one"):
            run.until("asks", "PENDING_APPROVAL")
            with Terminal(tmp_path, "watch") as terminal:
                terminal.until("asks", "is done and waits for your approval", "q quit")
                terminal.press("o")
                terminal.until("--last 200  (Ctrl-C returns)", "end: success")
                terminal.press("\x03")
                terminal.until("a approve  r reject  d diff  o output")
                assert "any key returns" not in terminal.text
                terminal.press("q")
                terminal.rest()
        run.process.kill()
        run.rest()
    sandbox.kill_all()


@pytest.mark.parametrize("words", [(), ("sandbox",)])
def test_watch_without_a_terminal_names_the_command_that_prints_lines(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A pipe gets no drawing; an unknown fleet is refused with what is known."""
    sandbox = talking(tmp_path, "one")
    sandbox.run()
    assert "accepted: lifefold log --follow, which prints lines" in sandbox.call("watch", *words, code=2).stderr
    with Terminal(tmp_path, "watch", "nowhere") as terminal:
        assert "nowhere: is no log, no fleet file, and no fleet of this machine: " in terminal.rest()
    with Terminal(tmp_path, "watch", env={"TERM": "dumb"}) as terminal:
        assert "watch draws on a terminal, and this is none" in terminal.rest()
