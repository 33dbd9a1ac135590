"""A stand-in for a coding agent: it works in its current folder, prints its progress, and costs nothing.

A real agent reads its prompt and plans its work. This one executes the lines of its prompt that begin with ``script:``,
in order, and nothing else:

- script: take SECONDS: be busy for SECONDS
- script: write FILE TEXT: write a file of one line
- script: solve FILE: write the content that answers.json, beside this program, has for FILE
- script: draft FILE SECONDS: the same by sections, SECONDS each; an interrupted session is continued
- script: fail N: end with status 1 in the first N attempts
- script: hang N: hang in the first N attempts
- script: deaf N: the same, and ignore SIGTERM

Attempts are counted by files in the folder LIFEFOLD_DEMO_STATE. Without it an attempt is the first, or the second if
the prompt reports an earlier failure. The program needs Python 3.8 or newer, and no package.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

LONGEST_HANG_SECONDS = 600
"""The end of a hanging session that no runner ends."""

TERMINATED_STATUS = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Attempt:
    """One attempt at a task: its prompt, its number, and the operator messages in the prompt."""

    prompt: str
    number: int
    messages: list[str]


def say(line: str) -> None:
    """Print one line of progress, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def take(_of: Attempt, seconds: str) -> None:
    """Be busy."""
    parts = max(1, round(float(seconds) / 0.5))
    for part in range(1, parts + 1):
        time.sleep(float(seconds) / parts)
        say(f"working ({part}/{parts})")


def write(_of: Attempt, rest: str) -> None:
    """Write a file of one line."""
    name, _, text = rest.partition(" ")
    _put(Path(name), f"{text}\n")


def solve(_of: Attempt, name: str) -> None:
    """Write a file with its content in answers.json."""
    _put(Path(name), _answer(name))


def draft(of: Attempt, rest: str) -> None:
    """Write a file section by section; an operator message is quoted where it arrived."""
    name, _, seconds = rest.partition(" ")
    path = Path(name)
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    for message in of.messages:
        _append(path, f"> I was told, while I wrote this: {message}\n\n")
        say(f"{name}: noted what I was told: {message}")
    for section in re.split(r"(?m)^(?=#)", _answer(name)):
        heading = section.partition("\n")[0]
        if not heading or f"{heading}\n" in written:
            continue
        say(f"{name}: writing {heading!r}")
        time.sleep(float(seconds))
        _append(path, section)


def fail(of: Attempt, attempts: str) -> None:
    """End with an error in the first attempts."""
    if of.number <= int(attempts):
        say(f"this is attempt {of.number}: I cannot make sense of it, and give up")
        raise SystemExit(1)


def hang(of: Attempt, attempts: str) -> None:
    """Hang in the first attempts."""
    if of.number <= int(attempts):
        say(f"this is attempt {of.number}: let me think about it for a very long time")
        # Sleep continues after a signal whose handler returns.
        time.sleep(LONGEST_HANG_SECONDS)
        raise SystemExit(1)


def deaf(of: Attempt, attempts: str) -> None:
    """Hang, and ignore SIGTERM."""
    if of.number <= int(attempts):
        signal.signal(signal.SIGTERM, _not_now)
    hang(of, attempts)


ACTIONS: dict[str, Callable[[Attempt, str], None]] = {
    action.__name__: action for action in (take, write, solve, draft, fail, hang, deaf)
}


def script(prompt: str) -> list[tuple[str, str]]:
    """Return the actions of a prompt, each with the rest of its line."""
    lines = re.findall(r"(?m)^script: *(\S+) *(.*?) *$", prompt)
    return [(action, rest) for action, rest in lines]


def messages(prompt: str) -> list[str]:
    """Return the operator messages at the end of a prompt."""
    _, _, told = prompt.partition("\nYou have messages:\n")
    return [line[2:] for line in told.splitlines() if line.startswith("- ")]


def attempt_number(task: str, prompt: str) -> int:
    """Count this attempt at the task, and return its number."""
    state = os.environ.get("LIFEFOLD_DEMO_STATE")
    if not state:
        return 2 if "An earlier attempt at this task failed" in prompt else 1
    Path(state).mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        try:
            # Only the first attempt can create the file of a number.
            Path(state, f"{task}.{number}").open("x", encoding="utf-8").close()
        except FileExistsError:
            number += 1
        else:
            return number


def main() -> None:
    """Execute the script of a prompt; exit with 0 after it, or with 2 if the prompt has no valid script."""
    parser = argparse.ArgumentParser(description="a scripted stand-in for a coding agent")
    parser.add_argument("prompt", nargs="?", help="the prompt itself")
    parser.add_argument("--prompt-file", type=Path, help="a file with the prompt")
    parser.add_argument("--task", default="task", help="the task's id; attempts are counted for each")
    given = parser.parse_args()
    prompt = given.prompt_file.read_text(encoding="utf-8") if given.prompt_file else given.prompt or ""
    actions = script(prompt)
    if not actions or any(action not in ACTIONS for action, _ in actions):
        say("I am only a stand-in: my prompt needs lines such as 'script: write hello.txt Hello'")
        raise SystemExit(2)
    signal.signal(signal.SIGTERM, _stop)
    of = Attempt(prompt, attempt_number(given.task, prompt), messages(prompt))
    say(f"task {given.task}, attempt {of.number}: {prompt.splitlines()[0]}")
    for action, rest in actions:
        ACTIONS[action](of, rest)
    say("done")


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    say("told to stop; what is written stays")
    raise SystemExit(TERMINATED_STATUS)


def _not_now(_signal: int, _frame: FrameType | None) -> None:
    say("told to stop, but I am thinking")


def _answer(name: str) -> str:
    answers = json.loads(Path(__file__).with_name("answers.json").read_text(encoding="utf-8"))
    return str(answers[name])


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    say(f"wrote {path} ({len(text.splitlines())} lines)")


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
