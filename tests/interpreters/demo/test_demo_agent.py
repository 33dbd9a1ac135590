"""The guarantee: the scripted agent behaves as its prompt says, also where that is bad behaviour; as a real process."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lifefold.interpreters import demo

AGENT = Path(demo.__file__).with_name("agent.py")
TIMEOUT_SECONDS = 60


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    shutil.copy(AGENT, tmp_path / "agent.py")
    (tmp_path / "answers.json").write_text(json.dumps({"a/b.py": "x = 1\n", "g.md": "# one\n\n1\n\n# two\n\n2\n"}))
    return tmp_path


@contextmanager
def started(folder: Path, prompt: str, *, counted: bool = True) -> Generator["subprocess.Popen[str]"]:
    """Start a session; leave none behind."""
    env = {name: value for name, value in os.environ.items() if name != "LIFEFOLD_DEMO_STATE"}
    env |= {"LIFEFOLD_DEMO_STATE": str(folder / "state")} if counted else {}
    command = [sys.executable, "agent.py", "--task", "T1", "--", prompt]
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def session(folder: Path, prompt: str, *, counted: bool = True) -> tuple[int, list[str]]:
    with started(folder, prompt, counted=counted) as process:
        out, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    return process.returncode, out.splitlines()


def read_until(process: "subprocess.Popen[str]", part: str) -> str:
    assert process.stdout is not None
    return next(line for line in process.stdout if part in line)


def test_it_writes_what_it_is_told_and_says_so(folder: Path) -> None:
    status, lines = session(
        folder, "Say it.\nscript: take 0.01\nscript: write d/x.txt Hello, {you}\nscript: solve a/b.py"
    )
    assert (status, lines[0], lines[-1]) == (0, "task T1, attempt 1: Say it.", "done")
    assert lines[1:-1] == ["working (1/1)", "wrote d/x.txt (1 lines)", "wrote a/b.py (1 lines)"]
    assert (folder / "d" / "x.txt").read_text() == "Hello, {you}\n"
    assert (folder / "a" / "b.py").read_text() == "x = 1\n"


def test_it_takes_its_prompt_from_a_file(folder: Path) -> None:
    (folder / "p.md").write_text("Do.\nscript: write x.txt y\n")
    subprocess.run([sys.executable, "agent.py", "--prompt-file", "p.md"], cwd=folder, check=True, capture_output=True)
    assert (folder / "x.txt").exists()


@pytest.mark.parametrize("prompt", ["Write hello.txt", "", "Do.\nscript: dance"])
def test_without_a_script_it_says_that_it_is_only_a_stand_in(folder: Path, prompt: str) -> None:
    status, lines = session(folder, prompt)
    assert status == 2
    assert "only a stand-in" in lines[0]


def test_it_fails_in_the_first_attempts(folder: Path) -> None:
    prompt = "Do.\nscript: fail 2\nscript: write x.txt y"
    assert [session(folder, prompt)[0] for _ in range(3)] == [1, 1, 0]


def test_without_a_folder_to_count_in_the_prompt_tells_the_attempt(folder: Path) -> None:
    prompt = "Do.\nscript: fail 1\nscript: write x.txt y"
    retried = f"{prompt}\n\nAn earlier attempt at this task failed: exit status 1"
    assert [session(folder, text, counted=False)[0] for text in (prompt, prompt, retried)] == [1, 1, 0]


def test_it_hangs_once_and_ends_when_told_to(folder: Path) -> None:
    prompt = "Do.\nscript: hang 1\nscript: write x.txt y"
    with started(folder, prompt) as process:
        read_until(process, "a very long time")
        process.terminate()
        read_until(process, "told to stop")
        assert process.wait(TIMEOUT_SECONDS) == 128 + signal.SIGTERM
    assert session(folder, prompt)[0] == 0


def test_it_takes_no_notice_of_sigterm_once(folder: Path) -> None:
    prompt = "Do.\nscript: deaf 1\nscript: write x.txt y"
    with started(folder, prompt) as process:
        read_until(process, "a very long time")
        for _ in range(2):
            process.terminate()
            read_until(process, "but I am thinking")
        assert process.poll() is None
        process.kill()
        assert process.wait(TIMEOUT_SECONDS) == -signal.SIGKILL
    assert session(folder, prompt)[0] == 0


def test_an_interrupted_draft_goes_on_where_it_was_and_heeds_what_it_was_told(folder: Path) -> None:
    with started(folder, "Write.\nscript: draft g.md 30") as process:
        read_until(process, "writing '# one'")
        (folder / "g.md").write_text("# one\n\n1\n\n")
        process.terminate()
        assert process.wait(TIMEOUT_SECONDS) == 128 + signal.SIGTERM
    status, lines = session(folder, "Write.\nscript: draft g.md 0\n\nYou have messages:\n- be brief\n- and kind")
    assert status == 0
    assert "g.md: noted what I was told: be brief" in lines
    assert (folder / "g.md").read_text() == (
        "# one\n\n1\n\n> I was told, while I wrote this: be brief\n\n"
        "> I was told, while I wrote this: and kind\n\n# two\n\n2\n"
    )
