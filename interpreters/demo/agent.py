"""A stand-in for a coding agent: it works in the folder it is started in, says what it does, and costs nothing.

A real agent reads its prompt and thinks of something. This one does, in order, what the lines of its prompt that begin
with ``script:`` say, and nothing else:

    script: take SECONDS            be busy for so long
    script: write FILE TEXT         write a file of one line
    script: solve FILE              write what answers.json, beside this program, has for the file
    script: draft FILE SECONDS      write it by sections, each so long; go on where an interrupted session stopped
    script: fail N                  end with status 1 in the first N attempts
    script: hang N                  never come to an end in the first N attempts
    script: deaf N                  the same, and take no notice of being told to stop (SIGTERM)

Attempts are counted by files in the folder that LIFEFOLD_DEMO_STATE names. Without it an attempt is the first, or the
second if the prompt says that an earlier one failed. It needs nothing but Python, 3.8 or newer.
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
"""What hangs is to be ended from outside; if nobody does, it is not to lie around for ever."""

TERMINATED_STATUS = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Job:
    """What a session is there for: the prompt's text, the number of the attempt, and what people have told it."""

    prompt: str
    attempt: int
    messages: list[str]


def say(line: str) -> None:
    """Print one line of progress, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def take(_job: Job, seconds: str) -> None:
    """Be busy."""
    parts = max(1, round(float(seconds) / 0.5))
    for part in range(1, parts + 1):
        time.sleep(float(seconds) / parts)
        say(f"working ({part}/{parts})")


def write(_job: Job, rest: str) -> None:
    """Write a file of one line."""
    name, _, text = rest.partition(" ")
    _put(Path(name), f"{text}\n")


def solve(_job: Job, name: str) -> None:
    """Write a file as the answers have it."""
    _put(Path(name), _answer(name))


def draft(job: Job, rest: str) -> None:
    """Write a file section by section; what people have said in between stands where it reached the agent."""
    name, _, seconds = rest.partition(" ")
    path = Path(name)
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    for message in job.messages:
        _append(path, f"> I was told, while I wrote this: {message}\n\n")
        say(f"{name}: noted what I was told: {message}")
    for section in re.split(r"(?m)^(?=#)", _answer(name)):
        heading = section.partition("\n")[0]
        if not heading or f"{heading}\n" in written:
            continue
        say(f"{name}: writing {heading!r}")
        time.sleep(float(seconds))
        _append(path, section)


def fail(job: Job, attempts: str) -> None:
    """End with an error, as long as the attempt is one of the first."""
    if job.attempt <= int(attempts):
        say(f"this is attempt {job.attempt}: I cannot make sense of it, and give up")
        raise SystemExit(1)


def hang(job: Job, attempts: str) -> None:
    """Do nothing for ever, as long as the attempt is one of the first."""
    if job.attempt <= int(attempts):
        say(f"this is attempt {job.attempt}: let me think about it for a very long time")
        # A signal's handler that returns lets sleep go on for what is left of the time.
        time.sleep(LONGEST_HANG_SECONDS)
        raise SystemExit(1)


def deaf(job: Job, attempts: str) -> None:
    """Hang, and take no notice of SIGTERM."""
    if job.attempt <= int(attempts):
        signal.signal(signal.SIGTERM, _not_now)
    hang(job, attempts)


ACTIONS: dict[str, Callable[[Job, str], None]] = {
    action.__name__: action for action in (take, write, solve, draft, fail, hang, deaf)
}


def script(prompt: str) -> list[tuple[str, str]]:
    """Return the actions that a prompt asks for, each with the rest of its line."""
    lines = re.findall(r"(?m)^script: *(\S+) *(.*?) *$", prompt)
    return [(action, rest) for action, rest in lines]


def messages(prompt: str) -> list[str]:
    """Return what people have told the agent, as the end of its prompt has it."""
    _, _, told = prompt.partition("\nYou have messages:\n")
    return [line[2:] for line in told.splitlines() if line.startswith("- ")]


def attempt_number(task: str, prompt: str) -> int:
    """Return which attempt at the task this is, and count it."""
    state = os.environ.get("LIFEFOLD_DEMO_STATE")
    if not state:
        return 2 if "An earlier attempt at this task failed" in prompt else 1
    Path(state).mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        try:
            # The file of a number can be made only once, by whichever attempt comes first.
            Path(state, f"{task}.{number}").open("x", encoding="utf-8").close()
        except FileExistsError:
            number += 1
        else:
            return number


def main() -> None:
    """Do what the prompt's script says; exit 0 if that was possible, 2 if the prompt has no script that makes sense."""
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
    job = Job(prompt, attempt_number(given.task, prompt), messages(prompt))
    say(f"task {given.task}, attempt {job.attempt}: {prompt.splitlines()[0]}")
    for action, rest in actions:
        ACTIONS[action](job, rest)
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
