"""What is found out about the classes of a fleet's agents before it runs, by loading real modules."""

import os
import re
from pathlib import Path

import anyio
import pytest

from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner.python_targets import LIMITS, unloadable
from lifefold.interpreters.processes.command import Limits

WORKS = """
import os
from lifefold.interpreters.facades.cooperative import Agent

class Craft(Agent):
    def process_work(self):
        raise SystemExit("only loaded, never run")
"""

BROKEN = {
    "missing": (None, r"crafts:Craft: ModuleNotFoundError: No module named 'crafts'; accepted: a subclass of"),
    "without the class": ("x = 1", r"AttributeError: module 'crafts' has no attribute 'Craft'; accepted"),
    "raises": ("import os\n\nraise ValueError('no key')", r"ValueError: no key \(.*/crafts\.py, line 3\); accepted"),
    "no Python": ("class:", r"SyntaxError: invalid syntax \(crafts\.py, line 1\); accepted"),
    "lacks a library": (
        "import nothing_of_that_name",
        r"No module named 'nothing_of_that_name' \(.*/crafts\.py, line 1\)",
    ),
    "no agent": ("class Craft: ...", r"crafts:Craft: it must be a subclass of .*Agent with a method process_work\(\)"),
    "no work": (
        "from lifefold.interpreters.facades.cooperative import Agent\nclass Craft(Agent): ...",
        r"it must be a subclass of .*Agent with a method process_work\(\)",
    ),
    "leaves": ("raise SystemExit(3)", r"crafts:Craft: SystemExit: 3 \("),
    "is gone": ("import os; os._exit(3)", r"the process that loads it has ended with status 3; accepted"),
    "is gone without a word": (
        "import os; os._exit(0)",
        r"the process that loads it has ended with status 0; accepted",
    ),
}


def said(folder: Path, craft: str | None, agents: str = "", limits: Limits = LIMITS) -> tuple[str, ...]:
    """Return what is said about a fleet of one agent, and perhaps others, whose module has this text."""
    fleet = folder / "fleet.toml"
    first = '[[agents]]\nname = "first"\nkind = "python"\ntarget = "crafts:Craft"\n'
    fleet.write_text(f'[fleet]\nname = "f"\n{first}{agents}[[tasks]]\nid = "T1"\nprompt = "do"\n')
    if craft is not None:
        (folder / "crafts.py").write_text(craft)
    return anyio.run(unloadable, load(fleet), limits)


@pytest.mark.parametrize("how", BROKEN)
def test_what_cannot_be_loaded_is_told_with_its_place_and_its_reason(tmp_path: Path, how: str) -> None:
    """File, line and key, what happened and where, and what is accepted."""
    craft, reason = BROKEN[how]
    (wrong,) = said(tmp_path, craft)
    assert wrong.startswith(f"{tmp_path}/fleet.toml:6: agents.first.target: cannot be loaded: ")
    assert re.search(reason, wrong), wrong


def test_nothing_is_said_of_what_can_be_loaded_whatever_it_prints(tmp_path: Path) -> None:
    """No agent is made. The module may read the environment of a session. A thread is not waited for."""
    noise = """
print("loaded, or not")
for name in ("AGENT", "TASK", "ATTEMPT", "PROMPT_FILE", "STATE_FILE", "GRACE_MS"):
    os.environ["LIFEFOLD_" + name]
import threading
threading.Thread(target=threading.Event().wait).start()
"""
    assert said(tmp_path, WORKS + noise) == ()


def test_a_class_is_loaded_in_the_environment_that_its_agent_has(tmp_path: Path) -> None:
    """One that is right for one agent may be wrong for another; agents that are equal in this are asked about once."""
    three = 'count = 3\nkind = "python"\ntarget = "crafts:Craft"\n'
    named = ("second", "third")
    others = "".join(f'[[agents]]\nname = "{name}"\n{three}env = {{ KEY = "{name}" }}\n' for name in named)
    counted = f"\nos.write(os.open({str(tmp_path / 'loaded')!r}, os.O_CREAT | os.O_APPEND | os.O_WRONLY), b'.')"
    wrong = said(tmp_path, WORKS + counted + "\nassert os.environ.get('KEY') != 'third', 'not with this key'", others)
    assert len(wrong) == 1
    assert "agents.third.target: cannot be loaded: crafts:Craft: AssertionError: not with this key" in wrong[0]
    assert (tmp_path / "loaded").read_text() == "..."


def test_what_takes_too_long_to_load_is_not_refused(tmp_path: Path) -> None:
    """Not to know is no proof; and nothing of the process is left."""
    os.mkfifo(tmp_path / "gate")
    assert said(tmp_path, f"open({str(tmp_path / 'gate')!r})", limits=Limits(1_000, 0, 100)) == ()
    with pytest.raises(OSError, match="No such device or address"):  # the pipe has no reader
        os.open(tmp_path / "gate", os.O_WRONLY | os.O_NONBLOCK)


def test_a_fleet_of_commands_loads_nothing(tmp_path: Path) -> None:
    """It has no classes."""
    fleet = tmp_path / "fleet.toml"
    command = '[[agents]]\nname = "a"\ncommand = ["true"]\n'
    fleet.write_text(f'[fleet]\nname = "f"\n{command}[[tasks]]\nid = "T"\nprompt = "x"\n')
    assert anyio.run(unloadable, load(fleet)) == ()


def test_why_a_class_cannot_be_loaded_has_no_secret(tmp_path: Path) -> None:
    """It is printed before the run begins."""
    craft = "import os\nraise ValueError('bad key ' + os.environ['CRAFT_KEY'])"
    (wrong,) = said(tmp_path, craft, 'env = { CRAFT_KEY = "hunter22" }\n')
    assert "ValueError: bad key [redacted CRAFT_KEY]" in wrong
