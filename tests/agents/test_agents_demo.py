"""A fleet of three real agent programs ends as it should, through a limit, a permission and a crash of the runner."""

import subprocess
import sys
from pathlib import Path

import pytest

from demo import PROMPTS
from homes import ROOT, is_there


@pytest.mark.agents
@pytest.mark.usefixtures("recorded_place")
def test_a_fleet_of_real_programs_closes_every_task_and_knows_its_cost_to_the_token(tmp_path: Path) -> None:
    """Each task has one conversation, which goes on after the limit."""
    programs = [task.partition("-")[0] for task in PROMPTS]
    if missing := [each for each in programs if not is_there(each)]:
        pytest.skip(f"{', '.join(missing)}: not there; make agents installs them")
    argv = [sys.executable, str(ROOT / "tools/recordings/demo.py"), "--folder", str(tmp_path / "demo")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
