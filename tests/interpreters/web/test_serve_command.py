"""The commands ``serve`` and ``run --serve``: what they print, and that nothing of them stays."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from asking_log import LEAVE, WORDS, at_work
from fleet_sandbox import Sandbox
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.commands.browsing import NICENESS
from lifefold.interpreters.web.server import opened
from terminal import Terminal
from web_desk import WAIT_S, served


def test_the_printed_address_leads_to_the_desk_until_ctrl_c(tmp_path: Path, state_folder: Path) -> None:
    log = at_work(tmp_path / "fleet.db", LEAVE, WORDS).path
    command = [sys.executable, "-m", "lifefold.interpreters.cli", "serve", "--port", "0", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            address = serving.stdout.readline().removeprefix("the desk is at").strip()
            token = re.search(r"its token is in (.*), which", serving.stdout.readline())
            assert token is not None
            assert Path(token[1]).parent == state_folder / "lifefold"
            page = httpx2.get(address, follow_redirects=True, timeout=WAIT_S)
            assert (page.status_code, "All fleets" in page.text or "is being read" in page.text) in {
                (200, True),
                (503, True),
            }
            own = os.getpriority(os.PRIO_PROCESS, 0)
            assert os.getpriority(os.PRIO_PROCESS, serving.pid) == min(
                19, own + NICENESS
            )  # pages wait before runners do
            serving.send_signal(signal.SIGINT)
            assert serving.wait(WAIT_S) in {0, 130, -signal.SIGINT}
        finally:
            serving.kill()
    assert not Path(token[1]).exists()


def test_a_run_serves_the_desk_beside_it_and_ends_it(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False)
    said = sandbox.call("run", str(sandbox.fleet), "--transitions", "--serve", "0").stdout
    address = re.search(r"the desk is at  (http://127\.0\.0\.1:\d+)/login", said)
    assert address is not None
    assert "1 of 1 tasks closed" in said
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(address[1], timeout=WAIT_S)


def test_a_live_display_shows_the_address_of_its_desk(tmp_path: Path) -> None:
    """The display covers the printed address, so it has the address on a line of its own while the run lasts."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False, gates=("plain-1",))
    with Terminal(tmp_path, "run", str(sandbox.fleet), "--serve", "0") as terminal:
        with sandbox.at_gate("plain-1"):
            drawn = terminal.until("1 running", "login?token=", "AGENT")
            shown = drawn[drawn.rindex("fleet sandbox") :]
            assert re.search(r"\x1b\\http://127\.0\.0\.1:\d+/login\?token=[\w-]{43}\x1b", shown)
        assert "login?token=" not in terminal.rest().rpartition("fleet sandbox")[2]


def test_a_run_goes_on_without_a_desk_that_cannot_begin(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False)
    done = sandbox.call("run", str(sandbox.fleet), "--transitions", "--serve", "99999")
    assert "1 of 1 tasks closed" in done.stdout
    assert "warning: no desk: 127.0.0.1:99999 cannot be used" in done.stderr


def test_a_browser_can_connect_as_soon_as_the_address_is_printed(tmp_path: Path) -> None:
    log = at_work(tmp_path / "fleet.db").path
    with opened([log], port=0) as desk, socket.create_connection(desk.bound.getsockname(), WAIT_S) as connection:
        assert connection.getpeername() == desk.bound.getsockname()


def test_open_streams_end_with_the_desk_and_nothing_is_printed_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served([at_work(tmp_path / "fleet.db").path]) as desk, desk.client.stream("GET", "/events") as answer:
        lines = answer.iter_lines()
        assert next(lines)
        desk.desk.leave()
        list(lines)  # until the end
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["serve", "nothing.db"], "nothing.db"),
        (["serve", "--port", "99999", "fleet.db"], "choose another: --port N"),
    ],
)
def test_a_desk_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    at_work(tmp_path / "fleet.db")
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert why in capsys.readouterr().err
